import numpy as np
import pytest
import torch

from gfscore.attacks.goals import target_reached
from gfscore.measures import KINDS
from gfscore.measures.targeted.batch import other_classes
from gfscore.networks.classifier import from_network
from helpers.networks import grey, linear, margins, one_thread, predicted, rounded  # noqa: F401
from helpers.samples import seeds_of

measure_batch = KINDS["targeted"].load()

pytestmark = pytest.mark.usefixtures("one_thread")
EPS = {"linf": 0.03, "l2": 0.15}


def measured(network, images, labels, norm="linf", **changes):
    settings = {"norm": norm, "eps": EPS[norm], "steps": 20, "step_size": EPS[norm] / 4, "restarts": 1} | changes
    parsed = KINDS["targeted"].parse(settings)
    return measure_batch(from_network(network), images, np.asarray(labels), settings=parsed, seeds=seeds_of(images))


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_with_two_classes_the_target_is_reached_exactly_within_eps(norm):
    network, images = linear(2), grey(80)
    labels = predicted(network, images)
    labels[:8] = 1 - labels[:8]
    distance = margins(network, images, labels, norm)
    clear = np.abs(distance - EPS[norm]) > 0.03 * EPS[norm]
    result = measured(network, images[clear], labels[clear], norm)
    np.testing.assert_array_equal(result["value"] == 0, distance[clear] < EPS[norm])
    np.testing.assert_array_equal(result["target"], 1 - labels[clear])
    np.testing.assert_array_equal(result["row"], np.arange(clear.sum()))
    assert 0.1 < result["value"].mean() < 0.9


@pytest.mark.parametrize(("classes", "norm"), [(3, "linf"), (3, "l2"), (12, "linf")])
def test_only_targets_that_can_be_reached_are_and_the_easy_ones_all(classes, norm):
    """Bounds of a linear classifier: the target has to overtake every class; alone, each distance is closed form."""
    network, images = linear(classes), grey(30)
    labels = predicted(network, images)
    weights, bias = (value.detach().double().numpy() for value in network[1].parameters())
    logits = images.reshape(30, -1).astype(float) @ weights.T + bias
    result = measured(network, images, labels, norm)
    order, eps = (1 if norm == "linf" else 2), EPS[norm]
    easy = 0
    for row, target, value in zip(result["row"], result["target"], result["value"], strict=True):
        others = np.delete(np.arange(classes), target)
        gaps, slopes = logits[row, others] - logits[row, target], weights[target] - weights[others]
        if (gaps > eps * np.linalg.norm(slopes, ord=order, axis=1)).any():
            assert value == 1
        # One perturbation that raises the target over all others is proof that it can be reached.
        mean = slopes[gaps > -1].mean(0) if (gaps > -1).any() else slopes.mean(0)
        step = np.sign(mean) if norm == "linf" else mean / np.linalg.norm(mean)
        if (gaps < 0.8 * eps * slopes @ step).all():
            easy += 1
            assert value == 0
    assert easy > 3
    assert len(result["row"]) == 30 * (classes - 1)
    assert (result["distance"] <= eps * 1.0001).all()


def test_every_other_class_is_a_target_once():
    row, target = other_classes(np.array([2, 0]), 3)
    assert row.tolist() == [0, 0, 1, 1]
    assert target.tolist() == [0, 1, 1, 2]


def test_misclassified_samples_are_attacked_too():
    network, images = linear(4), grey(12)
    clean = predicted(network, images)
    labels = (clean + 1) % 4
    result = measured(network, images, labels, steps=1, step_size=1e-6, eps=1e-6)
    # Hardly a perturbation: only what was predicted already is reached.
    np.testing.assert_array_equal(result["value"] == 0, result["target"] == clean[result["row"]])
    np.testing.assert_array_equal(result["prediction"], clean[result["row"]])


def test_a_target_that_the_image_itself_reaches_is_reached_without_gradients():
    """With random starts alone the attack could leave it, and find no way back."""
    network, images = rounded(linear(5), 4), grey(40)
    clean = predicted(network, images)
    labels = (clean + np.arange(40) % 2) % 5
    result = measured(network, images, labels, eps=0.5)
    reached_by_image = clean[result["row"]] == result["target"]
    assert reached_by_image.sum() == 20
    assert (result["value"][reached_by_image] == 0).all()
    assert (result["distance"][reached_by_image] == 0).all()


def test_fewer_targets_at_once_give_the_same_kind_of_answer(monkeypatch):
    network, images = linear(7), grey(20)
    labels = predicted(network, images)
    together = measured(network, images, labels)
    monkeypatch.setattr("gfscore.measures.targeted.batch.TARGETS_AT_ONCE", 2)
    apart = measured(network, images, labels)
    assert apart.keys() == together.keys()
    np.testing.assert_array_equal(apart["target"], together["target"])
    assert np.mean(apart["value"] != together["value"]) < 0.05


def test_a_tie_with_the_true_class_counts_for_the_target():
    logits = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 1.0], [0.0, 3.0, 3.0], [float("nan"), 1.0, 0.0]])
    aims = torch.tensor([[0, 1], [0, 1], [0, 1], [0, 1]])
    assert target_reached(logits, aims).tolist() == [True, False, True, False]
