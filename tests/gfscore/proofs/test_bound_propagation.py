import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.proofs.bound_propagation import certified, certified_radii
from helpers.networks import margins


class Halved(nn.Module):
    def forward(self, x):
        return (x - 0.5) / 0.5


class Negative(nn.Module):
    def forward(self, x):
        return 1 - x


class Endless(nn.Module):
    def forward(self, x):
        return torch.log(x)


class Skipping(nn.Sequential):
    """A block that adds its input to its output."""

    def forward(self, x):
        return x + super().forward(x)


class Doubled(nn.Conv2d):
    """A layer that does not compute what its weights say."""

    def forward(self, x):
        return super().forward(2 * x)


def convolution(kernel=2, **options):
    torch.manual_seed(0)
    layer = nn.Conv2d(1, 4, kernel, **options)
    width = layer(torch.zeros(1, 1, 4, 4)).numel()
    return nn.Sequential(layer, nn.ReLU(), nn.Flatten(), nn.Linear(width, 3)).eval()


def linear(k=3, pixels=4, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, k))


def small(seed, k=3):
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 3, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(Halved(), nn.Sequential(*layers), nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, k)).eval()


def images_and_labels(network, n=12, side=4, channels=1):
    torch.manual_seed(9)
    images = torch.rand(n, channels, side, side)
    return images, network(images).argmax(1)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_radius_of_a_linear_classifier_is_exact(k):
    network = linear(k)
    images = 0.45 + 0.1 * torch.rand(10, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    labels = network(images).argmax(1)
    expected = margins(network, images.numpy(), labels.numpy(), "linf").clip(max=0.4)
    found = certified_radii(network, images, labels, largest=0.4, steps=16)
    assert (found <= expected + 1e-9).all()
    assert found == pytest.approx(expected, abs=1e-4)


def test_nothing_is_proven_for_a_wrong_prediction():
    network = linear(3)
    images = torch.full((2, 1, 2, 2), 0.5)
    wrong = (network(images).argmax(1) + 1) % 3
    assert not certified(network, images, wrong, eps=0.0).any()
    assert certified_radii(network, images, wrong, largest=0.5).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_proven_ball_is_classified_otherwise(seed):
    network = small(seed)
    images, labels = images_and_labels(network)
    radii = certified_radii(network, images, labels, largest=0.5)
    # Most are proven for some radius, so that the check below checks something.
    assert (radii > 0.01).mean() > 0.5
    generator = torch.Generator().manual_seed(seed)
    for _ in range(300):
        signs = torch.rand(images.shape, generator=generator) * 2 - 1
        # Corners of the ball among the points: there piecewise linear functions are extreme.
        signs = torch.where(torch.rand(len(images), 1, 1, 1, generator=generator) < 0.7, signs.sign(), signs)
        moved = (images + torch.tensor(radii).float().reshape(-1, 1, 1, 1) * signs).clamp(0, 1)
        with torch.no_grad():
            assert (network(moved).argmax(1) == labels)[torch.tensor(radii) > 0].all()


def test_linear_bounds_prove_more_than_interval_arithmetic():
    # z = (relu(a) - relu(a), 0.1): interval arithmetic lets the two terms move apart, linear bounds cancel them.
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        network[1].weight[:] = 1.0
        network[1].bias[:] = 0.2
        network[3].weight[:] = torch.tensor([[1.0, -1.0], [0.0, 0.0]])
        network[3].bias[:] = torch.tensor([0.1, 0.0])
    images = torch.full((1, 1, 1, 1), 0.5)
    assert certified(network, images, torch.tensor([0]), eps=0.4).all()


def test_the_pixel_range_is_cut_off_the_ball():
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([[1.0], [0.0]])
        network[1].bias[:] = torch.tensor([0.1, 0.0])
    # The margin x + .1 is positive for every pixel value there is.
    assert certified(network, torch.zeros(1, 1, 1, 1), torch.tensor([0]), eps=5.0).all()


def broken_inside(network, images, labels, radii, *, draws=300):
    """Samples (n,) bool that a gradient ascent from the image, or a corner of its ball, turns into another class."""
    reach = torch.as_tensor(radii).float().reshape(-1, 1, 1, 1)
    broken = torch.zeros(len(images), dtype=torch.bool)
    generator = torch.Generator().manual_seed(3)
    moved = images.clone()
    for _ in range(draws):
        moved = moved.detach().requires_grad_()
        logits = network(moved)
        broken |= logits.argmax(1) != labels
        own = logits.gather(1, labels[:, None])[:, 0]
        margin = own - logits.scatter(1, labels[:, None], -torch.inf).amax(1)
        step = torch.autograd.grad(margin.sum(), moved)[0].sign() * reach / 4
        jump = torch.randint(0, 2, images.shape, generator=generator) * 2 - 1
        stay = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.8
        moved = torch.where(stay, moved.detach() - step, images + reach * jump)
        moved = torch.minimum(torch.maximum(moved, images - reach), images + reach).clamp(0, 1)
    return broken & (reach.flatten() > 0)


PADDED = ({"padding": 1}, {"padding": (0, 2), "stride": (2, 1)}, {"padding": 2, "bias": False})


@pytest.mark.parametrize("options", PADDED)
def test_nothing_breaks_inside_the_radii_of_padded_convolutions(options):
    network = convolution(3, **options)
    images, labels = images_and_labels(network, n=30)
    radii = certified_radii(network, images, labels, largest=0.5)
    assert (radii > 0.01).mean() > 0.5
    assert not broken_inside(network, images, labels, radii).any()
    # The check can fail: somewhat farther out there are other classes.
    assert broken_inside(network, images, labels, 6 * radii + 0.05).any()


def test_a_linear_layer_on_rows_of_pixels_has_bounds():
    torch.manual_seed(4)
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)).eval()
    images, labels = images_and_labels(network, n=20)
    radii = certified_radii(network, images, labels, largest=0.5)
    assert (radii > 0.01).mean() > 0.5
    assert not broken_inside(network, images, labels, radii).any()


REFUSED = {
    "sigmoid": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.Sigmoid(), nn.Linear(3, 3)),
    "dilation": lambda: convolution(dilation=2),
    "groups": lambda: nn.Sequential(nn.Conv2d(2, 4, 2, groups=2), nn.Flatten(), nn.Linear(36, 3)),
    "padding in words": lambda: convolution(3, padding="same"),
    "no padding in words": lambda: convolution(3, padding="valid"),
    "circular": lambda: convolution(3, padding=1, padding_mode="circular"),
    "reflect": lambda: convolution(3, padding=1, padding_mode="reflect"),
    "replicate": lambda: convolution(3, padding=1, padding_mode="replicate"),
    "a layer with another forward": lambda: nn.Sequential(Doubled(1, 2, 4), nn.Flatten(), nn.Linear(2, 3)),
    "a residual block": lambda: nn.Sequential(nn.Flatten(), Skipping(nn.Linear(16, 16), nn.ReLU()), nn.Linear(16, 3)),
    "a residual block in front": lambda: nn.Sequential(
        Skipping(nn.Conv2d(1, 1, 3, padding=1), nn.ReLU()), nn.Flatten(), nn.Linear(16, 3)
    ),
    "no linear layer at the end": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.ReLU()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_layers_without_bounds_are_refused(name):
    with pytest.raises(InputError, match=r"no bounds for|end with a linear layer"):
        certified(REFUSED[name](), torch.full((1, 1, 4, 4), 0.5), torch.tensor([0]), eps=0.1)


@pytest.mark.parametrize(
    ("front", "image", "eps"),
    [(Negative(), 0.5, 0.1), (Endless(), 0.05, 0.1), (Halved(), float("nan"), 0.1), (Halved(), 0.5, -0.1)],
)
def test_a_map_in_front_that_gives_no_bounds_is_refused(front, image, eps):
    network = nn.Sequential(front, nn.Flatten(), nn.Linear(16, 3))
    with pytest.raises(InputError, match="before the first layer"):
        certified(network, torch.full((1, 1, 4, 4), image), torch.tensor([0]), eps=eps)
