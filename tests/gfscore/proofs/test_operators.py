"""Every operator: the graph computes what the network computes, and bounds hold at random points and on ascent."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.proofs.balls import ball
from gfscore.proofs.checking.check import margins_at
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import IMAGE, layered
from gfscore.proofs.operators import READERS
from gfscore.proofs.operators.declaration import Activation, Affine
from gfscore.proofs.proving import prove
from gfscore.proofs.tightening import Tightening, margins
from helpers.proofs import cancelling_normalisation, points_in, smallest_margins

SHAPE = (2, 4, 4)
EPS = 0.15
IMAGE_POINTS = 100_000
"""Random points at which the bounds of each operator are tried."""


EXAMPLES = {reader.example: str(operator) for operator, reader in READERS.items()}
"""Networks of the operators; some have theirs in common."""


def network_of(example):
    torch.manual_seed(5)
    return example().eval()


@pytest.fixture(params=EXAMPLES, ids=EXAMPLES.values())
def graph(request):
    return graph_of(network_of(request.param), SHAPE)


@pytest.mark.parametrize("example", EXAMPLES, ids=EXAMPLES.values())
def test_the_graph_computes_the_network_and_its_gradient(example):
    network = network_of(example)
    graph = graph_of(network, SHAPE)
    images = torch.rand(5, *SHAPE, generator=torch.Generator().manual_seed(1), requires_grad=True)
    for image in images:
        expected = network(image[None]).reshape(-1)
        logits = graph.logits(image[None])[0]
        assert torch.allclose(logits, expected, atol=1e-5)
        weights = torch.linspace(-1, 1, len(expected))
        gradients = [torch.autograd.grad((values * weights).sum(), images)[0] for values in (logits, expected)]
        assert torch.allclose(*gradients, atol=1e-5)


def test_the_transpose_of_an_affine_operator_is_that_of_its_function(graph):
    generator = torch.Generator().manual_seed(2)
    for node in graph.nodes[1:]:
        if not isinstance(node.operator, Affine):
            continue
        inputs = []
        for source in node.inputs:
            inputs.append(torch.rand(1, *graph.nodes[source].shape, generator=generator, dtype=torch.float64))
        zeros = [torch.zeros_like(values) for values in inputs]
        linear = node.operator.forward(*inputs) - node.operator.forward(*zeros)
        assert linear.shape == (1, *node.shape)
        rows = torch.rand(3, *node.shape, generator=generator, dtype=torch.float64)
        coefficients = node.operator.transpose(rows)
        assert [values.shape[1:] for values in coefficients] == [values.shape[1:] for values in inputs]
        forward = (rows * linear).flatten(1).sum(1)
        back = sum((values * x).flatten(1).sum(1) for values, x in zip(coefficients, inputs, strict=True))
        assert torch.allclose(forward, back, rtol=1e-12)


def test_lines_and_intervals_enclose_an_activation(graph):
    for node in graph.nodes[1:]:
        if not isinstance(node.operator, Activation):
            continue
        generator = torch.Generator().manual_seed(3)
        ends = torch.randn(2, 400, generator=generator, dtype=torch.float64) * torch.logspace(-6, 1.5, 400)
        low, high = ends.amin(0), ends.amax(0)
        lines = node.operator.lines(low.numpy(), high.numpy())
        below, above = node.operator.interval(low.numpy(), high.numpy())
        for share in torch.linspace(0, 1, 250, dtype=torch.float64):
            z = torch.minimum(low + share * (high - low), high)
            value = node.operator.forward(z).numpy()
            # In more digits than the lines have, so that the sum is not rounded.
            place = z.numpy().astype(np.longdouble)
            assert (lines.lower_slope * place + lines.lower_intercept <= value).all()
            assert (lines.upper_slope * place + lines.upper_intercept >= value).all()
            assert ((below <= value) & (value <= above)).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_bounds_of_margins_hold_at_random_points_and_on_ascent(graph, norm):
    eps = EPS if norm == "linf" else 2 * EPS
    image = torch.rand(SHAPE, generator=torch.Generator().manual_seed(4))
    label = int(graph.logits(image[None]).argmax())
    network = layered(graph)
    tightening = Tightening(network, ball(image.numpy(), eps, norm))
    for _ in network.layers:
        tightening.add_layer(3)
    rivals = torch.arange(graph.classes)
    rivals = rivals[rivals != label].numpy()
    functions = tightening.functions_of(margins(network, label, rivals))
    relaxation = tightening.relaxation
    lower = relaxation.lower(functions, relaxation.branches(len(rivals)), exact=True).lower

    generator = torch.Generator().manual_seed(6)
    smallest = smallest_margins(graph, image, label, (norm, eps), generator)
    assert (lower <= smallest).all()
    for _ in range(IMAGE_POINTS // 20_000):
        logits = graph.logits(points_in(image, eps, norm, generator, 20_000))
        assert (lower <= (logits[:, [label]] - logits[:, rivals]).amin(0)).all()
    # The bounds say something: they are not far below what the ascent finds, against the range of the margins.
    bounds = {IMAGE: (torch.zeros(32, 1).double().numpy(), torch.ones(32, 1).double().numpy())}
    for number, layer in enumerate(network.layers):
        bounds[number] = layer.activation.interval(*layer.before.interval(bounds))
    whole = margins(network, label, rivals).interval(bounds)[0][:, 0]
    assert (lower.numpy() > whole).all()


class Joined(nn.Module):
    """One tensor at several places of another, which is small, and 0 where the second column is brighter."""

    def forward(self, x):
        x = torch.relu(x[:, :, :, 0] - x[:, :, :, 1]).flatten(1)
        return 1e-4 * torch.cat([x, torch.ones_like(x[:, :2]), x, 2 * x, x], dim=1)


def test_a_tensor_may_be_joined_to_itself():
    network = Joined().eval()
    graph = graph_of(network, SHAPE)
    image = torch.rand(SHAPE, generator=torch.Generator().manual_seed(1))
    expected = network(image[None])[0]
    assert torch.allclose(graph.logits(image[None])[0], expected, rtol=1e-5, atol=0)
    lower, upper = margins_at(image.numpy(), 0, PlainNetwork(graph.plain()))
    margins_of_first = (expected[0] - expected[1:]).numpy()
    assert (lower - 1e-10 <= margins_of_first).all() and (margins_of_first <= upper + 1e-10).all()


def test_bounds_count_what_cancels_in_a_batch_normalisation():
    mean, variance = 14458.4404296875, 1.3166390657424927
    network = cancelling_normalisation(mean, variance)
    norm = network[0]
    with localcontext(prec=50):
        exact = float(Decimal(norm.bias.item()) - Decimal(mean) / (Decimal(variance) + Decimal(norm.eps)).sqrt())
    assert 0 < exact < 2e-12
    image = np.zeros((1, 1, 1, 1), dtype=np.float32)
    (proof,) = prove(layered(graph_of(network, (1, 1, 1))), image, np.array([0]), norm="linf", eps=1e-15, budget=100)
    assert proof.lower <= exact


class Decimals(nn.Module):
    """Numbers that no float32 number equals."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(0.1, dtype=torch.float64))

    def forward(self, x):
        x = x.flatten(1)
        x = torch.add(x, x * self.factor, alpha=0.3)
        return torch.sub(x / 0.7, self.factor * torch.relu(x - 0.6), alpha=0.9)


def test_numbers_are_those_that_torch_rounds_to_float32():
    def rounded(value):
        return float(np.float32(value))

    pixels = np.linspace(0, 1, 32)
    values = pixels + rounded(0.3) * rounded(0.1) * pixels
    rectified = np.maximum(values - rounded(0.6), 0)
    expected = values / rounded(0.7) - rounded(0.9) * rounded(0.1) * rectified
    logits = graph_of(Decimals(), SHAPE).logits(torch.from_numpy(pixels).reshape(1, *SHAPE))
    np.testing.assert_allclose(logits[0], expected, rtol=1e-14)


class Doubling(nn.Module):
    """A network whose steps depend on pixels."""

    def forward(self, x):
        x = x.flatten(1)
        return 2 * x if x.sum() > 3 else x


class Noisy(nn.Module):
    def forward(self, x):
        return x.flatten(1) + torch.rand(x.flatten(1).shape)


class Squared(nn.Module):
    def forward(self, x):
        return (x * x).flatten(1)


class InFloat64(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(32, dtype=torch.float64))

    def forward(self, x):
        return (x.flatten(1) * self.scale * 0.1).float()


REFUSED = {
    "gelu": (lambda: nn.Sequential(nn.Flatten(), nn.GELU()), "gelu"),
    "softmax": (lambda: nn.Sequential(nn.Flatten(), nn.Softmax(1)), "softmax"),
    "product of pixels": (Squared, "mul"),
    "padded maxima": (lambda: nn.MaxPool2d(3, 1, padding=1), "max_pool2d_with_indices"),
    "circular padding": (lambda: nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), "reflection_pad2d"),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 2, 2), "convolution"),
    "steps that depend on pixels": (Doubling, "depend on the values of pixels"),
    "float64": (InFloat64, "float64"),
    "another function every time": (Noisy, "answers otherwise|rand"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_bounds_is_refused_by_name(name):
    network, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        graph_of(network().eval(), SHAPE)


def test_batch_normalisation_in_training_mode_is_refused():
    with pytest.raises(InputError, match=r"eval mode|operator"):
        graph_of(nn.Sequential(nn.BatchNorm2d(2), nn.Flatten()).train(), SHAPE)
