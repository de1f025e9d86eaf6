"""Bounds of random networks against corners, points and ascent; GFSCORE_FUZZED_BOUNDS sets how many are tried."""

import os
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from gfscore.proofs.balls import ball
from gfscore.proofs.checking.check import smallest_margin
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove
from gfscore.proofs.slopes import improved, rounded
from gfscore.proofs.tightening import CPU, Tightening, as_branches, margins
from helpers.proofs import Products, corners, points_in, random_network, small_dense, smallest_margins

BOUNDS = int(os.environ.get("GFSCORE_FUZZED_BOUNDS", "8000"))
"""Bounds that are tried at least: of margins on ascent, of inputs of layers at points and corners of the ball."""

IMAGES = 3


def bounded(network, image, label, eps, norm):
    """Lower bounds of all margins with optimised slopes, and bounds of the inputs of every layer."""
    tightening = Tightening(network, ball(image.numpy(), eps, norm))
    for _ in network.layers:
        tightening.add_layer(2)
    rivals = np.array([j for j in range(network.classes) if j != label])
    functions = tightening.functions_of(margins(network, label, rivals))
    relaxation = tightening.relaxation
    if not relaxation.unit_count:
        return relaxation.lower(functions, relaxation.branches(len(rivals)), exact=True).lower, tightening.states
    fast = relaxation.to(torch.float32, CPU)
    search = improved(fast, functions.to(torch.float32, CPU), fast.branches(len(rivals)), steps=3, rate=0.2)
    slopes = as_branches(rounded(search.branches.slopes))
    return relaxation.lower(functions, slopes, exact=True).lower, tightening.states


def inputs_of_layers(network, points):
    """Values (size, n) of the inputs of every layer at points (n, C, H, W) float64."""
    values = {-1: points.flatten(1).T.numpy()}
    results = []
    for number, layer in enumerate(network.layers):
        before = layer.before.bias[:, None]
        for source, matrix in layer.before.weights.items():
            before = before + matrix @ values[source]
        results.append(before)
        values[number] = layer.activation.forward(torch.from_numpy(before)).numpy()
    return results


def test_no_point_of_random_networks_violates_a_bound():
    tried = 0
    seed = 0
    while tried < BOUNDS:
        seed += 1
        graph = graph_of(random_network(seed), (2, 4, 4))
        network = layered(graph)
        generator = torch.Generator().manual_seed(seed)
        for number in range(IMAGES):
            norm = ("linf", "l2")[(seed + number) % 2]
            eps = float(10 ** (-1.7 + torch.rand(1, generator=generator)))
            image = torch.rand(2, 4, 4, generator=generator)
            label = int(graph.logits(image[None]).argmax())
            lower, states = bounded(network, image, label, eps, norm)
            smallest = smallest_margins(graph, image, label, (norm, eps), generator, starts=4)
            assert (lower <= smallest).all(), (seed, norm, eps)

            points = points_in(image, eps, norm, generator, 64)
            for state, inputs in zip(states, inputs_of_layers(network, points), strict=True):
                # Values at points are rounded themselves.
                slack = 1e-12 * (1 + np.abs(inputs).max())
                assert (state.low[:, None] <= inputs + slack).all(), (seed, norm, eps)
                assert (state.high[:, None] >= inputs - slack).all(), (seed, norm, eps)
                tried += 2 * len(inputs)
            tried += len(lower)


def test_lines_above_exceed_paired_units_by_what_bounds_gain():
    """At corners and points of the ball, for coefficients that are drawn; pairs of every layer have to be among them."""
    layers_with_pairs = set()
    for seed in range(1, 40):
        graph = graph_of(random_network(seed), (2, 4, 4))
        network = layered(graph)
        generator = torch.Generator().manual_seed(seed)
        image = torch.rand(2, 4, 4, generator=generator)
        eps = 0.03
        tightening = Tightening(network, ball(image.numpy(), eps, "linf"))
        for _ in network.layers:
            tightening.add_layer(2)
        shares = torch.rand(512, image.numel(), generator=generator, dtype=torch.float64).round()
        low, high = tightening.relaxation.ball.low.T, tightening.relaxation.ball.high.T
        points = torch.cat([low + shares * (high - low), points_in(image, eps, "linf", generator, 512).flatten(1)])
        inputs_by_layer = inputs_of_layers(network, points.reshape(-1, *image.shape))
        for place, block in enumerate(tightening.relaxation.blocks):
            if not len(block.pairs.first):
                continue
            layers_with_pairs.add(place)
            inputs = torch.from_numpy(inputs_by_layer[block.layer][block.places])
            excess = block.upper_slope * inputs + block.upper_intercept - inputs.clamp(min=0)
            coefficients = -torch.rand(len(inputs), 20, generator=generator, dtype=torch.float64)
            signs = torch.rand(coefficients.shape, generator=generator) < 0.2
            gains, _ = block.pairs.gains(coefficients, signs.to(torch.int8))
            exceeded = (-coefficients * ~signs).T @ excess
            assert (gains > 0).any()
            assert (exceeded >= gains[:, None]).all(), seed
    assert {0, 1} <= layers_with_pairs


class ReluBesideSigmoid(nn.Module):
    """Three pixels to two ReLUs and three sigmoids, and these five to two classes."""

    def __init__(self):
        super().__init__()
        self.to_relu = nn.Linear(3, 2)
        self.to_sigmoid = nn.Linear(3, 3)
        self.to_logits = nn.Linear(5, 2)

    def forward(self, x):
        pixels = x.flatten(1)
        units = [torch.relu(self.to_relu(pixels)), torch.sigmoid(self.to_sigmoid(pixels))]
        return self.to_logits(torch.cat(units, 1))


@pytest.mark.parametrize(("seed", "eps"), [(6, 0.875), (54, 0.75), (70, 0.75), (94, 0.46)])
def test_no_curve_is_split(seed, eps):
    torch.manual_seed(seed)
    network = ReluBesideSigmoid().eval()
    with torch.no_grad():
        for layer in network.children():
            layer.weight *= 3
    graph = graph_of(network, (1, 1, 3))
    image = torch.rand(1, 1, 3)
    label = graph.logits(image[None]).argmax(1)
    (proof,) = prove(layered(graph), image[None].numpy(), label.numpy(), norm="linf", eps=eps, budget=3000)
    assert proof.branches > 1
    smallest = smallest_margins(graph, image, int(label), ("linf", eps), torch.Generator().manual_seed(seed), starts=64)
    assert proof.lower <= smallest.min()
    if proof.certificate is not None:
        plain = PlainNetwork(graph.plain())
        assert smallest_margin(proof.certificate, proof.certificate.claim, plain, image.numpy()) > 0


@pytest.mark.parametrize("seed", range(8))
def test_no_corner_and_no_point_of_a_proven_ball_is_classified_otherwise(seed):
    network = small_dense(seed)
    graph = graph_of(network, (1, 1, 3))
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(6, 1, 1, 3, generator=generator)
    labels = graph.logits(images).argmax(1)
    for eps in (0.05, 0.15, 0.4):
        proofs = list(prove(layered(graph), images.numpy(), labels.numpy(), norm="linf", eps=eps, budget=5000))
        for image, label, proof in zip(images, labels, proofs, strict=True):
            points = torch.cat([corners(image, eps), points_in(image, eps, "linf", generator, 500)])
            logits = graph.logits(points)
            rivals = [j for j in range(3) if j != label]
            smallest = (logits[:, [int(label)]] - logits[:, rivals]).min()
            assert proof.lower <= smallest
            assert not proof.proven or smallest > 0


@pytest.mark.usefixtures("not_compared")
def test_bounds_count_products_that_are_too_small_for_float64():
    image = np.array([[[[0.8, 0.2]]]], dtype=np.float32)

    # The product of the small factors is 1e-352, which the large ones make 2e-83.
    layers = layered(graph_of(Products([3e38] * 7 + [1e-44] * 8), (1, 1, 2)))
    (proof,) = prove(layers, image, np.array([0]), norm="linf", eps=0.05, budget=100)
    assert proof.lower < 0

    # The same with a ReLU after each product; the smaller ones come first.
    network = [nn.Flatten()]
    for factor in [1e-44] * 8 + [3e38] * 8:
        network += [nn.Linear(2, 2, bias=False), nn.ReLU()]
        network[-2].weight.data = factor * torch.eye(2)
    logits = nn.Linear(2, 2)
    logits.weight.data = torch.tensor([[-1.0, 0], [0, 0]])
    logits.bias.data = torch.tensor([1e-44, 0])
    layers = layered(graph_of(nn.Sequential(*network, logits), (1, 1, 2)))
    (proof,) = prove(layers, image, np.array([0]), norm="linf", eps=0.05, budget=100)
    factor = Fraction(network[1].weight[0, 0].item()) ** 8 * Fraction(network[-2].weight[0, 0].item()) ** 8
    assert Fraction(proof.lower) <= Fraction(logits.bias[0].item()) - factor * Fraction(image[0, 0, 0, 0].item())


def exact_margin(network, image, label, eps):
    """Smallest margin of a network of two hidden layers in an l_inf ball, by a linear programme for all signs."""
    _, first, _, second, _, third = network
    low = (image.double() - eps).clamp(0, 1).flatten().numpy()
    high = (image.double() + eps).clamp(0, 1).flatten().numpy()
    w1, b1 = first.weight.detach().double().numpy(), first.bias.detach().double().numpy()
    w2, b2 = second.weight.detach().double().numpy(), second.bias.detach().double().numpy()
    w3, b3 = third.weight.detach().double().numpy(), third.bias.detach().double().numpy()
    best = np.inf
    for signs in product((0, 1), repeat=len(b1)):
        on = np.array(signs)
        conditions, limits = [(1 - 2 * on)[:, None] * w1], [(2 * on - 1) * b1]
        a2, c2 = w2 * on @ w1, w2 @ (on * b1) + b2
        if linprog(np.zeros(len(low)), conditions[0], limits[0], bounds=list(zip(low, high, strict=True))).status:
            continue
        for second_signs in product((0, 1), repeat=len(b2)):
            on2 = np.array(second_signs)
            matrix = np.concatenate([conditions[0], (1 - 2 * on2)[:, None] * a2])
            limit = np.concatenate([limits[0], (2 * on2 - 1) * c2])
            for rival in range(len(b3)):
                if rival == label:
                    continue
                weights = (w3[label] - w3[rival]) * on2
                answer = linprog(weights @ a2, matrix, limit, bounds=list(zip(low, high, strict=True)))
                if answer.status == 0:
                    best = min(best, answer.fun + weights @ c2 + b3[label] - b3[rival])
    return best


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_branch_and_bound_decides_what_all_signs_decide(seed):
    network = small_dense(seed, width=3)
    graph = graph_of(network, (1, 1, 3))
    image = torch.rand(1, 1, 3, generator=torch.Generator().manual_seed(seed))
    label = int(graph.logits(image[None]).argmax())
    # The largest radius at which the margin is positive, by bisection on the exact one.
    low, high = 0.0, 1.0
    for _ in range(7):
        eps = (low + high) / 2
        low, high = (eps, high) if exact_margin(network, image, label, eps) > 0 else (low, eps)
    layers = layered(graph)
    for eps, robust in ((0.98 * low, True), (1.02 * high, False)):
        if not 0 < eps < 0.98:
            continue
        (proof,) = prove(layers, image.numpy()[None], np.array([label]), norm="linf", eps=eps, budget=20_000)
        assert proof.proven == robust
        if not robust:
            logits = graph.logits(torch.from_numpy(proof.counterexample)[None].double())[0]
            others = [j for j in range(3) if j != label]
            assert logits[label] <= logits[others].max() + 1e-6
            assert np.abs(proof.counterexample - image.numpy()).max() <= eps * (1 + 1e-5)
