import numpy as np
import pytest

from gfscore import InputError
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import CHUNK_ELEMENTS, ROWS, class_scores_by_temperature
from gfscore.statistics.margins import ACTIVATIONS, BLOCK_ELEMENTS, FEW_CLASSES, predictions, scores
from made import adversarial_logits, logits_and_labels

EVERY_ACTIVATION = sorted(ACTIVATIONS)
TEMPERATURES = np.array([0.01, 0.07, 0.3, 1.0, 2.7, 10.0])


def direct(logits, labels, classes, activation):
    return np.array(
        [
            class_values(scores(logits, labels, activation=activation, temperature=t), labels, classes).mean
            for t in TEMPERATURES
        ]
    )


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, FEW_CLASSES, FEW_CLASSES + 1, 300])
def test_class_scores_are_the_means_of_the_scores(activation, dtype, k):
    logits, labels = logits_and_labels(k, n=2 * k + 400, k=k)
    logits = logits.astype(dtype)
    got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
    np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize(("n", "k"), [(CHUNK_ELEMENTS + 3, 3), (BLOCK_ELEMENTS // 20 + 1, 20), (ROWS + 1, 70)])
def test_blocks_do_not_matter(activation, n, k):
    logits, labels = logits_and_labels(1, n=2 * n, k=k, signal=6.0)
    assert (predictions(logits, labels) == labels).sum() > n
    got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
    np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [3, 100])
def test_huge_logits_and_ties(activation, k):
    for seed in range(8):
        logits, labels = adversarial_logits(seed, n=60, k=k)
        got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
        np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11, atol=1e-300)


def test_classes_that_a_temperature_leaves_nothing_of_are_skipped_without_a_trace():
    # Rivals 0, 100, 200, ... logits behind: at T = 1 each but the first adds less than rounding.
    k = 400
    logits = np.tile(-100.0 * np.arange(k), (3, 1))
    logits[:, 0] = 1.0
    got = class_scores_by_temperature(logits, np.zeros(3, int), k, activation="softmax")(np.array([0.5, 1.0, 50.0]))
    expected = direct_softmax(logits, np.array([0.5, 1.0, 50.0]))
    np.testing.assert_allclose(got[:, 0], expected, rtol=1e-14)
    assert np.isnan(got[:, 1:]).all()


def direct_softmax(logits, temperatures):
    z = logits[0].astype(np.longdouble)
    powers = np.exp((z - z[0]) / temperatures[:, None].astype(np.longdouble))
    return (np.sqrt(np.pi / 2) * (1 - powers[:, 1]) / powers.sum(axis=1)).astype(float)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_nothing_right_scores_zero_and_a_class_without_samples_has_no_score(activation):
    logits = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    got = class_scores_by_temperature(logits, np.array([0, 0]), 3, activation=activation)(TEMPERATURES)
    assert (got[:, 0] == 0).all()
    assert np.isnan(got[:, 1:]).all()


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [4, 90])
def test_inputs_are_left_as_they_were(activation, k):
    logits, labels = logits_and_labels(10, k=k)
    before = logits.copy(), labels.copy()
    scores_at = class_scores_by_temperature(logits, labels, k, activation=activation)
    np.testing.assert_array_equal(scores_at(TEMPERATURES), scores_at(TEMPERATURES))
    np.testing.assert_array_equal(logits, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_refusals():
    with pytest.raises(InputError, match="activation 'relu' is unknown"):
        class_scores_by_temperature(np.eye(2), np.arange(2), 2, activation="relu")
    scores_at = class_scores_by_temperature(np.eye(2), np.arange(2), 2, activation="softmax")
    with pytest.raises(InputError, match="temperature must be a positive number"):
        scores_at([1.0, 0])
