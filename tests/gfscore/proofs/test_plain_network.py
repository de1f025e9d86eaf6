"""Networks as the checker of certificates computes with them: the functions of the networks that they were read from."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.proofs.checking.plain_network import PlainNetwork, PlainNode, added, whole
from gfscore.proofs.graph import graph_of
from gfscore.proofs.operators import READERS

SHAPE = (2, 4, 4)
EXAMPLES = {reader.example: str(operator) for operator, reader in READERS.items()}


def plain_of(network, shape=SHAPE):
    return PlainNetwork(graph_of(network.eval(), shape).plain())


def dilated():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, stride=(2, 1), padding=(3, 2), dilation=(2, 1), groups=2), nn.Flatten())


def windows_of(shape, generator):
    """The whole of a node, and windows of images."""
    yield whole(shape)
    if len(shape) == 4:
        for _ in range(3):
            pieces = []
            for size in shape[2:]:
                start = int(generator.integers(size))
                pieces.append(slice(start, int(generator.integers(start + 1, size + 1))))
            yield (*whole(shape)[:2], *pieces)


def in_whole(coefficients, shape):
    nothing = np.zeros((*shape, coefficients[0].shape[-1])), whole(shape)
    return added(nothing, coefficients)[0]


@pytest.mark.parametrize("make", [*EXAMPLES, dilated], ids=[*EXAMPLES.values(), "dilated"])
def test_coefficients_are_carried_back_by_the_transpose_of_what_is_computed_forward(make):
    torch.manual_seed(1)
    generator = np.random.default_rng(0)
    network = plain_of(make())
    for index, operator in network.operators.items():
        node = network.nodes[index]
        shapes = [network.nodes[source].shape for source in node.inputs]
        inputs = [generator.normal(size=(*shape, 3)) for shape in shapes]
        forward = operator.forward(inputs)
        assert forward.shape == (*node.shape, 3)
        for window in windows_of(node.shape, generator):
            rows = generator.normal(size=(*(piece.stop - piece.start for piece in window), 5))
            back = operator.transpose(rows, window)
            by_output = np.einsum("ir,ic->rc", rows.reshape(-1, 5), forward[window].reshape(-1, 3))
            by_input = 0
            for coefficients, values, shape in zip(back, inputs, shapes, strict=True):
                dense = in_whole(coefficients, shape)
                by_input = by_input + np.einsum("ir,ic->rc", dense.reshape(-1, 5), values.reshape(-1, 3))
            np.testing.assert_allclose(by_input, by_output, atol=1e-12)


@pytest.mark.parametrize("make", [*EXAMPLES, dilated], ids=[*EXAMPLES.values(), "dilated"])
def test_a_network_is_stored_and_read_with_its_digest(make):
    torch.manual_seed(1)
    network = plain_of(make())
    content = network.to_bytes()
    again = PlainNetwork.from_bytes(content)
    assert again.digest == network.digest
    assert again.to_bytes() == content


def test_damaged_networks_are_refused():
    content = plain_of(dilated()).to_bytes()
    for damaged in (b"", content[:100], content[:-30]):
        with pytest.raises(InputError, match="damaged"):
            PlainNetwork.from_bytes(damaged)
    image = PlainNode("image", {}, {}, (), (1, 2))
    with pytest.raises(InputError, match="order"):
        PlainNetwork([image, PlainNode("relu", {}, {}, (1,), (1, 2))])
    for other in ((1, 3), (2, 1)):
        with pytest.raises(InputError, match="shapes"):
            PlainNetwork([image, PlainNode("relu", {}, {}, (0,), other)])
    with pytest.raises(InputError, match="erf"):
        PlainNetwork([image, PlainNode("erf", {}, {}, (0,), (1, 2))])


@pytest.mark.parametrize("number_type", [np.int8, np.int64, np.float16])
def test_weights_of_a_type_that_bounds_are_not_computed_in_are_refused(number_type):
    """The magnitude of -128 in int8 is -128."""
    network = plain_of(dilated())
    nodes = list(network.nodes)
    nodes[1] = replace(nodes[1], arrays=nodes[1].arrays | {"weight": nodes[1].arrays["weight"].astype(number_type)})
    with pytest.raises(InputError, match=np.dtype(number_type).name):
        PlainNetwork.from_bytes(PlainNetwork(nodes).to_bytes())


def other_shape(node):
    return replace(node, shape=(*node.shape[:-1], node.shape[-1] + 1))


def rows_and_columns_exchanged(node):
    return replace(node, shape=(*node.shape[:-2], node.shape[-1], node.shape[-2]))


def place_from_the_end(node):
    return replace(node, arrays=node.arrays | {"places0": node.arrays["places0"] - 2})


FALSE = [
    ("convolution", other_shape),
    ("convolution", rows_and_columns_exchanged),
    ("rearrangement", other_shape),
    ("rearrangement", place_from_the_end),
    ("linear", other_shape),
    ("sum", other_shape),
    ("scale", other_shape),
]


@pytest.mark.parametrize(("kind", "change"), FALSE)
def test_a_network_that_would_compute_otherwise_back_than_forward_is_refused(kind, change):
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 3, (2, 3)), nn.BatchNorm2d(3), nn.LeakyReLU(), nn.Flatten(), nn.Linear(18, 3)]
    nodes = list(plain_of(nn.Sequential(*layers)).nodes)
    (number, *_) = [index for index, node in enumerate(nodes) if node.kind == kind]
    nodes[number] = change(nodes[number])
    with pytest.raises((InputError, ValueError)):
        PlainNetwork(nodes)
