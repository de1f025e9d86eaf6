"""Objectives of the training methods against their formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gfscore.training.methods.erm_da import Warp, warp
from gfscore.training.methods.mart import mart_loss
from gfscore.training.methods.prl import conditional_value_at_risk
from gfscore.training.methods.trades import TradesCoefficients, trades, trades_loss
from gfscore.training.methods.worst_class import WorstClassCoefficients, exponentiated_gradient, worst_class
from gfscore.training.objectives import Setup, Threat, class_means, divergence


def setup_of(network, threat, *, classes, epochs=1):
    return Setup(classes, threat, torch.Generator().manual_seed(0), network, epochs)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture
def logits():
    rng = np.random.default_rng(5)
    return rng.normal(0, 3, (6, 4)), rng.normal(0, 3, (6, 4)), rng.integers(0, 4, 6)


def test_trades_loss_agrees_with_its_formula(logits):
    clean, adversarial, y = logits
    p, q, rows = softmax(clean), softmax(adversarial), np.arange(6)
    expected = np.mean(-np.log(p[rows, y]) + 6 * np.sum(p * np.log(p / q), axis=1))
    found = trades_loss(torch.tensor(clean), torch.tensor(adversarial), torch.tensor(y), beta=6)
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_mart_loss_agrees_with_its_formula(logits):
    clean, adversarial, y = logits
    p, q = softmax(clean), softmax(adversarial)
    terms = []
    for i in range(6):
        strongest_wrong = max(q[i, k] for k in range(4) if k != y[i])
        boosted = -np.log(q[i, y[i]]) - np.log(1 - strongest_wrong)
        weighted = sum(p[i, k] * np.log(p[i, k] / q[i, k]) for k in range(4)) * (1 - p[i, y[i]])
        terms.append(boosted + 5 * weighted)
    found = mart_loss(torch.tensor(clean), torch.tensor(adversarial), torch.tensor(y), lam=5)
    assert found.item() == pytest.approx(np.mean(terms), rel=1e-10)


def test_mart_loss_stays_finite_on_a_confident_error():
    clean = torch.tensor([[0.0, 60.0, 0.0]], requires_grad=True)
    loss = mart_loss(clean, clean, torch.tensor([0]), lam=5)
    loss.backward()
    assert loss.item() == pytest.approx(60 + 60 - np.log(2), rel=1e-5)
    assert torch.isfinite(clean.grad).all()


def test_divergence_is_that_of_clean_from_adversarial_and_not_the_reverse():
    p, q = torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]).log()
    assert divergence(p, q).item() == pytest.approx(0.9 * np.log(1.8) + 0.1 * np.log(0.2), rel=1e-5)
    assert divergence(q, p).item() == pytest.approx(-0.5 * np.log(4 * 0.09), rel=1e-5)


def test_trades_perturbs_towards_the_largest_divergence_not_the_largest_loss():
    # The logit of class 1 over class 0 is 4 x: at x = 0.75 the model errs on label 0. Cross-entropy rises towards
    # x = 1, but the divergence from the clean prediction is largest at the other end of the ball, x = 0.5.
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[0.0], [4.0]]))
        network[1].bias.zero_()
    threat = Threat("linf", eps=0.25, step_size=0.1, steps=20)
    objective = trades(setup_of(network, threat, classes=2), TradesCoefficients(beta=6))
    images = torch.full((32, 1, 1, 1), 0.75)
    found = objective(network, images, torch.zeros(32, dtype=torch.long)).item()
    p, q = 1 / (1 + np.exp(-3)), 1 / (1 + np.exp(-2))
    away = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert found <= -np.log(1 - p) + 6 * away + 1e-5
    r = 1 / (1 + np.exp(-4))
    towards = p * np.log(p / r) + (1 - p) * np.log((1 - p) / (1 - r))
    assert towards < away
    # Starts above the image climb to the far end, x = 1, the others to x = 0.5.
    assert found > -np.log(1 - p) + 6 * (towards + 0.2 * (away - towards))


def tail_mean(losses, rho):
    """CVaR by sorting: mean of the largest rho M values, the last of them taken in part."""
    mass, total = rho * len(losses), 0.0
    for loss in sorted(losses, reverse=True):
        share = min(1.0, mass)
        total, mass = total + share * loss, mass - share
    return total / (rho * len(losses))


@settings(max_examples=100, deadline=None)
@given(
    losses=st.lists(st.floats(0, 50, width=32), min_size=1, max_size=25),
    rho=st.one_of(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 1.0]), st.floats(0.05, 1)),
)
def test_inner_minimisation_of_prl_reaches_the_sorted_tail_mean(losses, rho):
    found = conditional_value_at_risk(torch.tensor([losses], dtype=torch.float64), rho=rho)
    assert found.item() == pytest.approx(tail_mean(losses, rho), rel=1e-6, abs=1e-5)


def test_gradient_of_prl_is_a_weighting_of_the_losses():
    for losses, rho, expected in (
        ([2.0, 2.0, 2.0, 2.0], 0.5, [0.25, 0.25, 0.25, 0.25]),  # ties share
        ([4.0, 1.0, 3.0, 2.0], 1.0, [0.25, 0.25, 0.25, 0.25]),  # the average case
        ([4.0, 1.0, 3.0, 2.0], 0.375, [2 / 3, 0, 1 / 3, 0]),  # a tail of one and a half samples
        ([1.0, 9.0, 3.0, 7.0, 5.0, 0.0, 2.0, 4.0, 6.0, 8.0], 0.3, [0, 1 / 3, 0, 1 / 3, 0, 0, 0, 0, 0, 1 / 3]),
        ([5.0], 1.0, [1.0]),
    ):
        row = torch.tensor([losses], requires_grad=True)
        conditional_value_at_risk(row, rho=rho).sum().backward()
        np.testing.assert_allclose(row.grad[0], expected, atol=1e-6)


def test_class_weights_move_to_the_class_of_highest_loss():
    weights, losses = torch.full((3,), 1 / 3), torch.tensor([0.2, 1.0, 0.5])
    once = exponentiated_gradient(weights, losses, rate=2.0)
    expected = np.exp(2 * losses.numpy())
    np.testing.assert_allclose(once, expected / expected.sum(), rtol=1e-5)
    for _ in range(50):
        weights = exponentiated_gradient(weights, losses, rate=2.0)
    assert weights[1] > 0.999
    assert weights.min() > 0
    for _ in range(50):
        weights = exponentiated_gradient(weights, torch.tensor([1.0, 0.2, 0.5]), rate=2.0)
    assert weights.argmax() == 0


def test_class_means_know_absent_classes():
    means, present = class_means(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 2, 2]), classes=4)
    assert means.tolist() == [1.0, 0.0, 4.0, 0.0]
    assert present.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_worst_class_objective_tends_to_the_loss_of_the_worst_class(colours):
    images, labels = torch.from_numpy(colours[0]), torch.from_numpy(colours[1])
    network = nn.Sequential(nn.Flatten(), nn.Linear(384, 3))
    still = Threat("linf", eps=1e-6, step_size=1e-6, steps=3)
    objective = worst_class(setup_of(network, still, classes=3), WorstClassCoefficients(rate=5.0, floor=0))
    with torch.no_grad():
        losses = nn.functional.cross_entropy(network(images), labels, reduction="none")
    worst = max(losses[labels == k].mean().item() for k in range(3))
    values = [objective(network, images, labels).item() for _ in range(60)]
    assert losses.mean().item() < values[0] < values[-1] == pytest.approx(worst, rel=1e-3)


def test_warp_without_limits_changes_nothing():
    images = torch.rand(4, 2, 9, 8)
    still = warp(images, Warp(rotation=0, shift=0, scale=0, flip=False), generator=torch.Generator())
    torch.testing.assert_close(still, images, atol=1e-5, rtol=0)


def test_warp_with_flip_mirrors_about_half_of_the_images():
    images = torch.rand(200, 1, 8, 8)
    mirrored = warp(images, Warp(rotation=0, shift=0, scale=0, flip=True), generator=torch.Generator().manual_seed(0))
    same = torch.isclose(mirrored, images, atol=1e-5).all(dim=(1, 2, 3))
    flipped = torch.isclose(mirrored, images.flip(3), atol=1e-5).all(dim=(1, 2, 3))
    assert (same ^ flipped).all()
    assert 70 < flipped.sum() < 130


def test_warp_moves_by_at_most_the_shift():
    images = torch.zeros(300, 1, 16, 16)
    images[:, :, 8, 8] = 1
    moved = warp(images, Warp(rotation=0, shift=0.125, scale=0, flip=False), generator=torch.Generator().manual_seed(0))
    rows, columns = (moved[:, 0].sum(0) > 1e-6).nonzero(as_tuple=True)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (6, 10, 6, 10)  # 0.125 of 16 is 2 pixels
