"""Training methods in favour of the worst class, against their formulas."""

import numpy as np
import pytest
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.training.loop import train_classifier
from gfscore.training.methods import cfa, dafa, frl
from gfscore.training.objectives import EpochEnd, HeldOut, Setup, Threat
from helpers.trainings import small_training

STILL = Threat("linf", eps=1e-6, step_size=1e-6, steps=1)


def setup_of(network, *, classes, epochs=10, threat=STILL):
    return Setup(classes, threat, torch.Generator().manual_seed(0), network, epochs)


def held_out(labels, clean, robust):
    labels, clean, robust = torch.tensor(labels), torch.tensor(clean) > 0, torch.tensor(robust) > 0
    return lambda: HeldOut(labels, clean, robust)


# ---- FRL ----


def test_frl_weights_are_the_factors_of_class_errors_in_the_lagrangian():
    # mean error + sum_k m_k (error_k - mean error) for m = (.3, 0, .15, 0): the mean of m is .1125.
    weights = frl.class_weights(torch.tensor([0.3, 0.0, 0.15, 0.0]))
    np.testing.assert_allclose(weights, [0.4375, 0.1375, 0.2875, 0.1375], rtol=1e-6)


def test_frl_multipliers_are_positive_and_their_sum_is_limited():
    np.testing.assert_allclose(frl.limited(torch.tensor([-0.2, 0.1, 0.3]), largest_sum=0.5), [0, 0.1, 0.3])
    np.testing.assert_allclose(frl.limited(torch.tensor([-0.2, 0.3, 0.7]), largest_sum=0.5), [0, 0.15, 0.35])


def test_frl_raises_the_multiplier_of_a_class_that_errs_beyond_the_tolerance():
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    coefficients = frl.FrlCoefficients(tolerance=0.1, rate=0.5, warmup=0.5)
    objective = frl.frl(setup_of(network, classes=2), coefficients)
    # Class 0: clean errors 2 of 4, class 1: none, all: 1/4. Boundary errors: class 0 1/4, class 1 3/4, all 1/2.
    outcomes = held_out([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 1])
    objective.after_epoch(EpochEnd(network, 4, outcomes))
    assert objective.memory["natural"].tolist() == objective.memory["boundary"].tolist() == [0, 0]

    objective.after_epoch(EpochEnd(network, 5, outcomes))
    np.testing.assert_allclose(objective.memory["natural"], [0.5 * (0.5 - 0.25 - 0.1), 0], rtol=1e-6)
    np.testing.assert_allclose(objective.memory["boundary"], [0, 1.0 * (0.75 - 0.5 - 0.1)], rtol=1e-6)

    # The loss of images alone, since nothing is perturbed: weights (.5 +- .0375) of class 0 and 1.
    images = torch.rand(4, 1, 2, 2)
    labels = torch.tensor([0, 1, 1, 0])
    losses = nn.functional.cross_entropy(network(images), labels, reduction="none").detach()
    natural = torch.tensor([0.5375, 0.4625])[labels]
    boundary = torch.tensor([0.425, 0.575])[labels]
    expected = (natural * losses).sum() / (natural + boundary).sum()
    assert objective(network, images, labels).item() == pytest.approx(expected.item(), rel=1e-4)


# ---- CFA ----


def test_cfa_gives_a_class_the_radius_and_beta_of_its_robust_accuracy():
    # The network answers 1 whatever it sees: class 0 is never robust, class 1 always.
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    with torch.no_grad():
        network[1].weight.zero_()
        network[1].bias.copy_(torch.tensor([0.0, 1.0]))
    coefficients = cfa.CfaCoefficients(beta=6, radius=0.3, regularisation=0.5, warmup=0.2, threshold=1)
    objective = cfa.cfa(setup_of(network, classes=2), coefficients)
    images = torch.rand(4, 1, 2, 2)
    labels = torch.tensor([0, 1, 1, 1])
    outcomes = held_out([0, 1], [0, 1], [0, 1])
    losses = nn.functional.cross_entropy(network(images), labels, reduction="none").detach()
    assert objective(network, images, labels).item() == pytest.approx(losses.mean().item() / 7, rel=1e-5)

    objective.after_epoch(EpochEnd(network, 1, outcomes))
    assert objective.memory["radius"].tolist() == [1, 1]
    objective(network, images, labels)
    objective.after_epoch(EpochEnd(network, 2, outcomes))
    np.testing.assert_allclose(objective.memory["radius"], [0.3, 1.3], rtol=1e-6)
    np.testing.assert_allclose(objective.memory["beta"], [3, 9], rtol=1e-6)
    expected = (losses / torch.tensor([4.0, 10, 10, 10])).mean()
    assert objective(network, images, labels).item() == pytest.approx(expected.item(), rel=1e-5)


def test_cfa_averages_the_epochs_whose_worst_class_reaches_the_threshold(capsys):
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    objective = cfa.cfa(setup_of(network, classes=2), cfa.CfaCoefficients(threshold=0.5, decay=0.75))
    fair = held_out([0, 0, 1, 1], [1, 1, 1, 1], [1, 0, 1, 0])
    unfair = held_out([0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0])

    def epoch(value, outcomes):
        nn.init.constant_(network[1].weight, value)
        objective.after_epoch(EpochEnd(network, 1, outcomes))

    epoch(5.0, unfair)
    objective.finish(network)
    assert "not averaged" in capsys.readouterr().out
    assert network[1].weight[0, 0] == 5

    epoch(1.0, fair)
    epoch(7.0, unfair)
    epoch(2.0, fair)
    objective.finish(network)
    assert network[1].weight[0, 0].item() == pytest.approx(0.75 * 1 + 0.25 * 2)


# ---- DAFA ----


def test_dafa_weights_agree_with_sums_by_hand():
    # Class 0 is hardest, 2 easiest. Row k: mean output of images of class k.
    similarity = torch.tensor([[0.4, 0.5, 0.1], [0.3, 0.6, 0.1], [0.05, 0.15, 0.8]])
    # What 0 takes from 1 is .5 * .6, from 2 .1 * .8; what 1 takes from 2 is .1 * .8. The sum of the weights stays 3.
    np.testing.assert_allclose(dafa.class_weights(similarity, scale=1), [1.38, 0.78, 0.84], rtol=1e-6)
    np.testing.assert_allclose(dafa.class_weights(similarity, scale=0.5), [1.19, 0.89, 0.92], rtol=1e-6)


def test_dafa_weighs_by_the_outputs_of_the_last_epoch_of_its_warm_up():
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    with torch.no_grad():
        network[1].weight.zero_()
        network[1].bias.copy_(torch.tensor([0.2, 0.8]).log())
    objective = dafa.dafa(setup_of(network, classes=2), dafa.DafaCoefficients(warmup=0.2))
    images = torch.rand(3, 1, 2, 2)
    labels = torch.tensor([0, 1, 1])
    plain = objective(network, images, labels).item()
    assert plain == pytest.approx(-(np.log(0.2) + 2 * np.log(0.8)) / 3, rel=1e-5)
    objective.after_epoch(EpochEnd(network, 1, None))
    assert objective.memory["weights"].tolist() == [1, 1]
    objective(network, images, labels)
    objective.after_epoch(EpochEnd(network, 2, None))
    # W_0 = 1 + .8 * .8, W_1 = 1 - .8 * .8.
    np.testing.assert_allclose(objective.memory["weights"], [1.64, 0.36], rtol=1e-6)
    weighted = -(1.64 * np.log(0.2) + 2 * 0.36 * np.log(0.8)) / 3
    assert objective(network, images, labels).item() == pytest.approx(weighted, rel=1e-5)
    objective.after_epoch(EpochEnd(network, 3, None))
    np.testing.assert_allclose(objective.memory["weights"], [1.64, 0.36], rtol=1e-6)


def test_dafa_refuses_a_scale_that_leaves_a_class_no_radius():
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    with torch.no_grad():
        network[1].weight.zero_()
        network[1].bias.copy_(torch.tensor([0.4, 0.6]).log())
    objective = dafa.dafa(setup_of(network, classes=2), dafa.DafaCoefficients(warmup=0.1, scale=7))
    objective(network, torch.rand(2, 1, 2, 2), torch.tensor([0, 1]))
    with pytest.raises(InputError, match=r"scale 7 gives class 1 the weight -1\.52"):
        objective.after_epoch(EpochEnd(network, 1, None))


# ---- images that are held out ----


def test_a_class_without_images_to_hold_out_is_refused(colours):
    settings = small_training("FRL", coefficients={"held_out": 0.01})
    with pytest.raises(InputError, match=r"held_out 0\.01 no image of class \d is held out; raise it"):
        train_classifier(*colours, settings, classes=3)


def test_images_that_are_held_out_are_not_trained_on(colours):
    images, labels = colours
    settings = small_training("FRL", epochs=1, batch_size=len(labels))
    batches = []

    class Recorded(np.ndarray):
        def __getitem__(self, rows):
            batches.append(np.asarray(rows))
            return np.asarray(super().__getitem__(rows))

    first = train_classifier(images.view(Recorded), labels, settings, classes=3)
    trained_on, held = batches
    assert sorted([*trained_on, *held]) == list(range(len(labels)))
    np.testing.assert_allclose(np.bincount(labels[held]), np.bincount(labels) / 4, atol=1)

    changed = images.copy()
    changed[held] = 0
    second = train_classifier(changed, labels, settings, classes=3)
    for one, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other)
