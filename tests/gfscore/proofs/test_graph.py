"""A graph is that of its network on every image, and a network that is not computed by fixed steps has none."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import from_network
from gfscore.networks.passes import counted, watched
from gfscore.networks.wrappers import in_blocks
from gfscore.proofs import graph as graphs
from gfscore.proofs.graph import graph_of
from gfscore.proofs.operators import READERS
from gfscore.proofs.operators.elementwise import Sum
from helpers.proofs import random_network

SHAPE = (1, 2, 2)
NEGATION = torch.ops.aten.neg.default


class Network(nn.Module):
    """A function of the pixels (n, 4) and of a linear layer."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.layer = nn.Linear(4, 2)

    def forward(self, images):
        return self.function(images.flatten(1), self.layer)


def refuse(function, words):
    with pytest.raises(InputError, match=words):
        graph_of(Network(function).eval(), SHAPE)


def brighter_above(x):
    """By how much pixels of the first row are brighter than those below, (n, 2)."""
    return torch.relu(x[:, :2] - x[:, 2:])


FALSE_READINGS = {
    "of small logits": lambda x, layer: 1e-4 * layer(-x),
    "of a small logit beside a large one": lambda x, layer: torch.cat([1e-4 * layer(-x), 1e4 * layer(x)], dim=1),
    "of what is 0 on an image that grows brighter": lambda x, _: -brighter_above(x),
}


@pytest.mark.parametrize("name", FALSE_READINGS)
def test_a_false_reading_is_noticed(name, monkeypatch):
    def doubled(builder, call):
        return builder.add(Sum((-2.0,)), [call.symbol("self")], call.shape)

    network = Network(FALSE_READINGS[name]).eval()
    graph_of(network, SHAPE)
    monkeypatch.setitem(READERS, NEGATION, replace(READERS[NEGATION], read=doubled))
    with pytest.raises(InputError, match="answers otherwise"):
        graph_of(network, SHAPE)


READING = {
    "numpy": lambda x: x.detach().numpy(),
    "__array__": np.asarray,
    "__dlpack__": np.from_dlpack,
}


@pytest.mark.parametrize("name", READING)
def test_numbers_read_by_another_library_are_refused(name):
    # Rarely enough for no comparison to notice it.
    refuse(lambda x, layer: -layer(x) if READING[name](x).sum() == 1.234 else layer(x), f"{name}.*values of pixels")


def test_numbers_of_weights_may_be_read():
    graph_of(Network(lambda x, layer: layer(x) * float(layer.weight.detach().numpy().max())).eval(), SHAPE)


OUTSIDE = {
    "another thread": lambda x, layer: layer(x) + 1e-9 * in_another_thread(x.square),
    "a generator of another library": lambda x, layer: layer(x) + float(np.random.default_rng().normal()) * 1e-9,
}


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()[:, :2]


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_computed_outside_the_trace_is_refused_however_small(name):
    refuse(OUTSIDE[name], "answers otherwise")


def test_a_hook_of_the_network_is_part_of_its_graph():
    network = Network(lambda x, layer: layer(x)).eval()
    plain = graph_of(network, SHAPE)
    network.register_forward_hook(lambda _network, _inputs, logits: logits * (1 + 1e-6))
    assert graph_of(network, SHAPE).digest != plain.digest


def test_passes_of_a_trace_are_neither_counted_nor_checked():
    network = Network(lambda x, layer: layer(x)).eval()
    plain = graph_of(network, SHAPE)
    classifier = from_network(network, classes=2)
    with counted(classifier), watched(classifier):
        assert graph_of(network, SHAPE).digest == plain.digest


WINDOWS = {"convolution": nn.Conv2d(1, 1, 1), "avg_pool2d": nn.AvgPool2d(1)}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_in_batches_of_a_fixed_size_are_refused(name):
    network = nn.Sequential(WINDOWS[name], nn.Flatten(), nn.Linear(4, 2))
    graph_of(network.eval(), SHAPE)
    with pytest.raises(InputError, match=f"{name}.* on 3 images at a time; make the network take any number"):
        graph_of(in_blocks(network, 3), SHAPE)


def test_another_answer_in_batches_is_refused():
    refuse(lambda x, layer: layer(x) if len(x) == 1 else -layer(x), "answers otherwise")


RANDOM = {
    "rand": lambda x, layer: layer(x + 1e-9 * torch.rand(1)),
    "bernoulli": lambda x, layer: layer(nn.functional.dropout(x, 1e-9, training=True)),
    "normal_functional": lambda x, layer: layer(x) + 1e-9 * torch.empty(1, 2).normal_(),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_steps_are_refused_by_name_however_little_they_change(name):
    refuse(RANDOM[name], f"{name}.*random numbers")


UNWRITTEN = {
    "of a shape": lambda x, layer: layer(x) + 0 * torch.empty(1, 2),
    "like an image": lambda x, layer: layer(x + 0 * torch.empty_like(x)),
    "in part": lambda x, layer: layer(x) + 0 * nn.functional.pad(torch.empty(1, 1), (1, 0)),
}


@pytest.mark.parametrize("name", UNWRITTEN)
def test_memory_that_nothing_is_written_to_is_refused(name):
    refuse(UNWRITTEN[name], "answers otherwise")


def test_new_memory_may_be_written_to():
    graph_of(Network(lambda x, layer: layer(x) + torch.empty(1, 2).fill_(0.5)).eval(), SHAPE)


def test_a_network_of_single_images_has_a_graph():
    graph_of(Network(lambda x, layer: layer(x.reshape(4)[None])).eval(), SHAPE)


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_rounding_is_no_other_answer(scale):
    for seed in range(10):
        network = random_network(seed)
        with torch.no_grad():
            network[-1].weight *= scale
        graph_of(network, (2, 4, 4))


def test_large_networks_are_compared_on_fewer_images(monkeypatch):
    sizes = []
    network = random_network(0)
    network.register_forward_hook(lambda _network, given, _logits: sizes.append(len(given[0])))
    graph_of(network, (2, 4, 4))
    assert max(sizes) == graphs.MOST_IMAGES
    sizes.clear()
    monkeypatch.setattr(graphs, "NUMBERS", 1)
    graph_of(network, (2, 4, 4))
    assert max(sizes) == graphs.FEWEST_IMAGES
