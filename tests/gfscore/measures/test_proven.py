"""The measure `proven` on a small network of digits, beside the attacks of the same ball."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from gfscore.core.errors import InputError
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.adversarial.batch import measure_batch as attack
from gfscore.measures.proven import Proven, batch
from gfscore.measures.proven.batch import measure_batch
from gfscore.networks.classifier import from_network
from gfscore.proofs.certificates import Certificate, Claim, image_digest
from gfscore.proofs.checking.check import check, margins_at
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.checking.trees import Refused
from gfscore.proofs.counterexamples import distance, from_bytes
from gfscore.proofs.graph import graph_of
from helpers.samples import seeds_of

EPS = 0.06


@pytest.fixture(scope="module")
def digits():
    """A convolutional network trained for two seconds, and 40 images that it was not trained on."""
    data = load_digits()
    images = torch.tensor(data.images / 16, dtype=torch.float32)[:, None]
    labels = torch.tensor(data.target)
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 24), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(24, 10))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(120):
        rows = torch.randint(1000, (200,))
        # Steps against the gradient's sign make most samples robust in a small ball.
        points = images[rows].requires_grad_()
        (gradient,) = torch.autograd.grad(functional.cross_entropy(network(points), labels[rows]), points)
        moved = (points.detach() + EPS * gradient.sign()).clamp(0, 1)
        loss = functional.cross_entropy(network(moved), labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval(), images[1200:1240].numpy(), labels[1200:1240].numpy()


@pytest.fixture(scope="module")
def columns(digits):
    network, images, labels = digits
    settings = Proven(eps=EPS, budget=5000)
    return measure_batch(from_network(network), images, labels, settings=settings, seeds=seeds_of(images))


def test_what_is_proven_survives_attacks_and_most_is_decided(digits, columns):
    network, images, labels = digits
    settings = Adversarial(eps=EPS)
    attacked = attack(from_network(network), images, labels, settings=settings, seeds=seeds_of(images))
    assert (columns["value"] <= attacked["value"]).all()
    assert (columns["value"] == 1).sum() >= 15
    assert (columns["status"] == "open").sum() <= 8


def test_columns_agree_with_the_status(columns):
    status, lower = columns["status"], columns["lower"]
    proven, refuted = status == "proven", np.isin(status, ["refuted", "refuted_float32"])
    assert (columns["value"] == proven).all()
    assert (lower[proven] > 0).all()
    assert np.isnan(lower[refuted]).all()
    assert not (lower[status == "open"] > 0).any()
    assert [value is None for value in columns["decided_by"]] == (status == "open").tolist()
    assert set(columns["decided_by"][refuted]) <= {"attack", "prediction", "branches"}
    by_branches = columns["decided_by"] == "branches"
    assert (columns["evaluations"][refuted & ~by_branches] == 0).all()
    # Points that attacks found are broken by more than rounding errors.
    assert (status == "refuted").any() and not (status == "refuted_float32").any()


def test_without_an_attack_branches_refute(digits):
    network, images, labels = digits
    settings = Proven(eps=EPS, budget=5000, attacks=[])
    alone = measure_batch(from_network(network), images, labels, settings=settings, seeds=seeds_of(images))
    by_branches = (alone["status"] == "refuted") & (alone["decided_by"] == "branches")
    assert by_branches.any()
    # The point that refutes is classified otherwise.
    assert (alone["prediction"][by_branches] != labels[by_branches]).all()


def plain_of(network):
    return PlainNetwork(graph_of(network, (1, 8, 8)).plain())


def test_every_proof_has_a_certificate_that_an_independent_check_accepts(digits, columns):
    network, images, labels = digits
    plain = plain_of(network)
    for row, content in enumerate(columns["certificate"]):
        assert (content is None) == (columns["status"][row] != "proven")
        if content is not None:
            certificate = Certificate.from_bytes(content)
            claim = Claim(plain.digest, image_digest(images[row]), int(labels[row]), "linf", EPS)
            lower = check(certificate, claim, plain, images[row])
            assert lower >= columns["lower"][row] - 1e-6 > 0
            # Rounding errors of float32 are small against margins of about 1.
            assert lower - 1e-2 < columns["lower32"][row] < lower
    assert np.isnan(columns["lower32"][columns["status"] != "proven"]).all()


def not_confirmed(*_, float32=False):
    return -0.25


def refused(*_, float32=False):
    raise Refused("another network")


@pytest.mark.parametrize(("check_margin", "lower"), [(not_confirmed, -0.25), (refused, -np.inf)])
def test_a_proof_that_the_checker_does_not_confirm_does_not_count(digits, columns, monkeypatch, check_margin, lower):
    network, images, labels = digits
    proven = np.flatnonzero(columns["status"] == "proven")[:2]
    monkeypatch.setattr(batch, "smallest_margin", check_margin)
    settings = Proven(eps=EPS, budget=5000)
    again = measure_batch(
        from_network(network), images[proven], labels[proven], settings=settings, seeds=seeds_of(images[proven])
    )
    assert list(again["status"]) == ["open", "open"]
    assert list(again["lower"]) == [lower, lower]
    assert list(again["value"]) == [0, 0]
    assert list(again["certificate"]) == [None, None]


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_counterexamples_lie_in_the_ball_to_the_last_bit_and_are_surely_misclassified(digits, norm):
    network, images, labels = digits
    plain = plain_of(network)
    eps = {"linf": EPS, "l2": 0.4}[norm]
    settings = Proven(norm=norm, eps=eps, budget=200)
    columns = measure_batch(from_network(network), images, labels, settings=settings, seeds=seeds_of(images))
    attacked = columns["decided_by"] == "attack"
    assert attacked.sum() >= 3
    for row in np.flatnonzero(attacked):
        point = from_bytes(columns["counterexample"][row], images[row].shape)
        assert distance(point, images[row], norm) <= eps and point.min() >= 0 and point.max() <= 1
        _, upper = margins_at(point, labels[row], plain)
        assert (upper <= 0).any()
    # A sample that is wrong undisturbed is its own counterexample.
    assert all(content is None for content in columns["counterexample"][~attacked])


def test_a_larger_budget_proves_no_less(digits, columns):
    network, images, labels = digits
    settings = Proven(eps=EPS, budget=0)
    less = measure_batch(from_network(network), images, labels, settings=settings, seeds=seeds_of(images))
    assert (less["value"] <= columns["value"]).all()


def test_an_operator_without_bounds_is_refused_by_name(digits):
    _, images, labels = digits
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.GELU(), nn.Linear(8, 10)).eval()
    with pytest.raises(InputError, match="gelu"):
        measure_batch(from_network(network), images[:2], labels[:2], settings=Proven(), seeds=seeds_of(images[:2]))
