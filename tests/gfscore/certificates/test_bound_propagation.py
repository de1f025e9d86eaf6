import numpy as np
import pytest
import torch
from torch import nn

from gfscore.certificates.bound_propagation import certified, certified_radii
from gfscore.errors import InputError


class Halved(nn.Module):
    def forward(self, x):
        return (x - 0.5) / 0.5


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


def exact_linear_radius(network, images, labels):
    """min_j (z_y - z_j) / ||w_y - w_j||_1, for images far from the ends of the pixel range."""
    layer, logits = network[-1], network(images)
    radii = []
    for logit, label in zip(logits, labels, strict=True):
        others = [j for j in range(len(logit)) if j != label]
        radii.append(
            min((logit[label] - logit[j]) / (layer.weight[label] - layer.weight[j]).abs().sum() for j in others)
        )
    return np.array([float(radius) for radius in radii])


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_radius_of_a_linear_classifier_is_exact(k):
    network = linear(k)
    images = 0.45 + 0.1 * torch.rand(10, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    labels = network(images).argmax(1)
    expected = exact_linear_radius(network, images, labels).clip(max=0.4)
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


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 3)),
        nn.Sequential(nn.Conv2d(1, 2, 2, dilation=2), nn.Flatten(), nn.Linear(2, 3)),
        nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU()),
    ],
)
def test_layers_without_bounds_are_refused(network):
    with pytest.raises(InputError, match=r"bounds through|end with a linear layer"):
        certified(network, torch.zeros(1, 1, 2, 2), torch.tensor([0]), eps=0.1)
