"""Proofs of known networks, whose radii can be computed by hand."""

import time

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.proofs import proving
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.proving import prove
from helpers.networks import margins
from helpers.proofs import random_network

pytestmark = pytest.mark.seconds(10)


def proofs_of(network, images, labels, **settings):
    layers = layered(graph_of(network, tuple(images.shape[1:])))
    settings = {"norm": "linf", "budget": 3000} | settings
    return list(prove(layers, np.asarray(images), np.asarray(labels), **settings))


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("k", [2, 4])
def test_a_linear_classifier_is_proven_up_to_its_radius_and_no_further(k, norm):
    torch.manual_seed(k)
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, k)).eval()
    images = 0.45 + 0.1 * torch.rand(8, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    labels = network(images).argmax(1)
    radii = margins(network, images.numpy(), labels.numpy(), norm)
    for image, label, radius in zip(images, labels, radii, strict=True):
        # Beyond, the pixel range is what bounds the ball.
        if radius > 0.4:
            continue
        for share, proven in ((0.999, True), (1.001, False)):
            (proof,) = proofs_of(network, image[None], label[None], norm=norm, eps=float(share * radius))
            assert proof.proven == proven


def test_the_pixel_range_is_cut_off_the_ball():
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([[1.0], [0.0]])
        network[1].bias[:] = torch.tensor([0.125, 0.0])
    # The margin x + 1/8 is positive for every pixel value there is.
    (proof,) = proofs_of(network, torch.zeros(1, 1, 1, 1), [0], eps=0.9)
    assert proof.proven
    assert proof.lower == pytest.approx(0.125)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_constant_input_of_a_sigmoid_counts_with_its_output_of_one_half(norm):
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2), nn.Sigmoid(), nn.Linear(2, 2)).eval()
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([[8.0], [0.0]])
        network[1].bias[:] = 0
        network[3].weight[:] = torch.tensor([[1.0, -1.5], [0.0, 0.0]])
        network[3].bias[:] = 0
    # The margin sigmoid(8 x) - 3/4 is 0.17 at x = 0.3 and negative at x = 0.1.
    image = torch.full((1, 1, 1, 1), 0.5)
    assert proofs_of(network, image, [0], norm=norm, eps=0.2)[0].proven
    assert not proofs_of(network, image, [0], norm=norm, eps=0.4)[0].proven


def test_a_tie_and_a_wrong_prediction_are_not_proven():
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([[0.0], [0.0]])
        network[1].bias[:] = torch.tensor([0.5, 0.5])
    tie, wrong = proofs_of(network, torch.zeros(2, 1, 1, 1), [0, 1], eps=0.1)
    for proof in (tie, wrong):
        assert (proof.proven, proof.decided_by, proof.certificate) == (False, "prediction", None)


def between_methods(offset):
    """Logits |x - y| + offset and 0, the first by four ReLUs; |x - y| is 0 where x = y."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).eval()
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
        network[1].bias[:] = 0
        network[3].weight[:] = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
        network[3].bias[:] = torch.tensor([offset, 0.0])
    return network


def test_each_method_proves_what_those_before_it_do_not():
    image = torch.full((1, 1, 1, 2), 0.5)
    # Intervals: each ReLU is at least 0.
    assert proofs_of(between_methods(0.01), image, [0], eps=0.1)[0].decided_by == "ibp"

    # relu(z) - relu(z) + .1: intervals let the terms move apart, linear bounds cancel them.
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        network[1].weight[:] = 1.0
        network[1].bias[:] = 0.2
        network[3].weight[:] = torch.tensor([[1.0, -1.0], [0.0, 0.0]])
        network[3].bias[:] = torch.tensor([0.1, 0.0])
    assert proofs_of(network, torch.full((1, 1, 1, 1), 0.5), [0], eps=0.4)[0].decided_by == "crown"

    # c - |x - y| with |x - y| <= .2 in the ball: the chord of each ReLU adds .1, so that splits are needed.
    network = between_methods(0.3)
    with torch.no_grad():
        network[3].weight.neg_()
    assert proofs_of(network, image, [0], eps=0.1)[0].proven
    with torch.no_grad():
        network[3].bias[0] = 0.21
    proof = proofs_of(network, image, [0], eps=0.1)[0]
    assert (proof.proven, proof.lower) == (True, pytest.approx(0.01, abs=1e-6))


def test_what_is_proven_does_not_depend_on_the_batch_and_grows_with_the_budget():
    network = random_network(3, relu_only=True)
    images = torch.rand(8, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1)
    together = proofs_of(network, images, labels, eps=0.06)
    for place, proof in enumerate(together):
        (alone,) = proofs_of(network, images[[place]], labels[[place]], eps=0.06)
        assert (alone.proven, alone.lower, alone.evaluations) == (proof.proven, proof.lower, proof.evaluations)
    smaller = proofs_of(network, images, labels, eps=0.2, budget=0)
    assert all(large.proven or not small.proven for large, small in zip(together, smaller, strict=True))


def test_proofs_do_not_depend_on_the_number_of_cores():
    network = random_network(3, relu_only=True)
    images = torch.rand(8, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1)
    threads = torch.get_num_threads()
    one = proofs_of(network, images, labels, eps=0.2, budget=20_000)
    three = proofs_of(network, images, labels, eps=0.2, budget=20_000, cores=3)
    assert torch.get_num_threads() == threads
    assert any(proof.branches for proof in one)
    for alone, beside in zip(one, three, strict=True):
        assert (alone.lower, alone.evaluations) == (beside.lower, beside.evaluations)
        assert (alone.certificate is None) == (beside.certificate is None)
        if alone.certificate is not None:
            assert alone.certificate.to_bytes() == beside.certificate.to_bytes()


def test_what_is_not_begun_is_dropped_where_a_search_fails(monkeypatch):
    network = random_network(3, relu_only=True)
    images = torch.rand(8, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    started = []

    def broken(search, *_arguments):
        started.append(search)
        if len(started) == 1:
            raise MemoryError("no memory")
        time.sleep(0.1)

    monkeypatch.setattr(proving._Search, "run", broken)
    with pytest.raises(MemoryError):
        proofs_of(network, images, network(images).argmax(1), eps=0.2, cores=2)
    assert len(started) < len(images)


def test_without_a_budget_intervals_and_crown_are_all_that_is_tried():
    network = random_network(3, relu_only=True)
    images = torch.rand(12, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1)
    methods = set()
    for proof in proofs_of(network, images, labels, eps=0.2, budget=0):
        methods.add(proof.decided_by)
        assert proof.branches == 0
        # Each input of an activation from above and from below, and the margins.
        assert proof.evaluations <= 2 * activations_of(network) + 2 * 2
    assert methods <= {None, "ibp", "crown"}
    assert None in methods


def activations_of(network):
    layers = layered(graph_of(network, (2, 4, 4))).layers
    return sum(layer.before.size for layer in layers)


def test_how_many_parts_are_split_at_once_changes_nothing_that_is_proven(monkeypatch):
    network = random_network(3, relu_only=True)
    images = torch.rand(8, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1)
    whole = proofs_of(network, images, labels, eps=0.2, budget=20_000)
    assert any(proof.branches > 4 for proof in whole)
    monkeypatch.setitem(proving.BATCHES, "cpu", 2)
    for few, many in zip(proofs_of(network, images, labels, eps=0.2, budget=20_000), whole, strict=True):
        assert few.proven == many.proven
        if few.proven:
            # The parts of a proof do not depend on the order in which they are split.
            assert few.branches == many.branches
            assert few.lower == pytest.approx(many.lower, abs=1e-4)


def test_the_budget_ends_branch_and_bound():
    network = random_network(3, relu_only=True)
    images = torch.rand(6, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    labels = network(images).argmax(1)
    for proof in proofs_of(network, images, labels, eps=0.3, budget=4000):
        # A round of 128 parts is finished.
        assert proof.evaluations < 4000 + 128 * 2 * 13
        decided = proof.proven or proof.counterexample is not None
        assert decided == (proof.decided_by is not None)
        assert (proof.certificate is not None) == proof.proven
