import numpy as np
import pytest
from scipy.stats import norm

from gfscore.audit.agreement.falsification import Distances, falsification
from gfscore.core.errors import InputError
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.margins import scores
from gfscore.statistics.scale import SCALE

IDS = np.array(["a", "b", "c", "d", "e"])
LABELS = np.array([0, 0, 1, 1, 0])
# Sigmoid margins of saturated logits are 1, so g = B = 1.2533, for all but "d", which is wrong, and "e", at 0.6.
LOGITS = np.array([[99.0, -99.0], [99.0, -99.0], [-99.0, 99.0], [99.0, -99.0], [np.log(4), -np.log(4)]])


def distances(**changes):
    given = {
        "sample_id": np.array(["c", "a", "d", "e", "b"]),
        "value": np.array([2.0, 0.5, 0.0, 0.75, 1.0]),
        "censored": np.array([True, False, False, False, False]),
        "norm": "l2",
        "largest": 2.0,
    }
    return Distances(**(given | changes))


def falsified(measured=None, **changes):
    measured = distances() if measured is None else measured
    return falsification(IDS, LABELS, LOGITS, measured, **{"activation": "sigmoid", **changes})


def test_rates_by_hand():
    result = falsified()
    first, second = result.classes
    # Class 0: a and b have g = 1.2533 above 0.5 and 1.0; e has g = 0.6 B = 0.752 above 0.75. Class 1: c is censored,
    # d misclassified.
    assert (first.n, first.correct, first.violations, first.censored) == (3, 3, 3, 0)
    assert (second.n, second.correct, second.violations, second.censored) == (2, 1, 0, 1)
    assert first.rate == 1
    assert second.rate == 0
    assert result.model.rate == 3 / 4
    assert (result.model.low, result.model.high) == clopper_pearson(3, 4, alpha=0.05)
    assert result.model.mean_score == pytest.approx(SCALE * 3.6 / 5)
    assert result.model.mean_distance == pytest.approx(4.25 / 5)


def test_a_distance_equal_to_the_score_or_censored_below_it_contradicts_nothing():
    exact = distances(sample_id=np.array(["a", "b"]), value=np.array([SCALE, 0.1]), censored=np.array([False, True]))
    assert falsified(exact).model.violations == 0


def test_a_subset_is_joined_by_sample_id():
    only = distances(sample_id=np.array(["e"]), value=np.array([0.76]), censored=np.array([False]))
    result = falsified(only)
    assert result.model.n == 1
    assert result.model.rate == 0
    assert result.classes[1].n == 0
    assert np.isnan(result.classes[1].rate)
    assert np.isnan(result.classes[1].mean_score)


def test_a_large_temperature_drives_the_rate_to_zero():
    rates = [falsified(temperature=t).model.rate for t in (0.1, 1.0, 1e4)]
    assert rates == [3 / 4, 3 / 4, 0]


def test_a_sample_that_only_one_measurement_calls_correct_is_not_counted():
    value = np.array([2.0, 0.0, 0.0, 0.75, 1.0])
    assert falsified(distances(value=value)).model.correct == 3


def test_two_kinds_of_wrong_input_are_refused():
    with pytest.raises(InputError, match="linf"):
        falsified(distances(norm="linf"))
    with pytest.raises(InputError, match="'z'"):
        falsified(distances(sample_id=np.array(["c", "a", "d", "e", "z"])))
    with pytest.raises(InputError, match="repeated"):
        falsified(distances(sample_id=np.array(["c", "a", "a", "e", "b"])))


def test_the_score_of_a_sign_classifier_is_refuted_in_the_mean():
    """Identity generator, sign classifier on a standard normal input: distances are |z|, the score tends to B."""
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    logits = 1e6 * np.stack([-z, z], axis=1)
    found = Distances(np.arange(len(z)).astype(str), np.abs(z), np.zeros(len(z), bool), "l2", 8.0)
    result = falsification(found.sample_id, (z > 0).astype(int), logits, found, activation="sigmoid")
    assert result.model.mean_score == pytest.approx(SCALE, abs=1e-3)
    assert result.model.mean_distance == pytest.approx(np.sqrt(2 / np.pi), abs=1e-3)
    assert result.model.rate == pytest.approx(2 * norm.cdf(SCALE) - 1, abs=1e-3)


def test_the_score_of_a_shallow_sigmoid_is_refuted_in_the_mean():
    """Uniform pixel, logits +-10 (x - 1/2): mean distance 1/4, mean score 0.9092."""
    x = (np.arange(20_000) + 0.5) / 20_000
    logits = 10 * np.stack([0.5 - x, x - 0.5], axis=1)
    found = Distances(np.arange(len(x)).astype(str), np.abs(x - 0.5), np.zeros(len(x), bool), "l2", 8.0)
    result = falsification(found.sample_id, (x > 0.5).astype(int), logits, found, activation="sigmoid")
    assert result.model.mean_score == pytest.approx(0.9092, abs=1e-4)
    assert result.model.mean_distance == pytest.approx(0.25, abs=1e-4)
    assert result.model.rate == 1


@pytest.mark.parametrize(("shift", "surely"), [(0.0, False), (1e-6, False), (-0.25, False), (0.25, True)])
def test_the_p_value_of_the_means_needs_more_than_a_larger_mean(shift, surely):
    # Score and distance have one mean, or one that is larger by the shift; the largest distance searched is 1.
    rng = np.random.default_rng(3)
    score = rng.uniform(0.3, 0.7, 400)
    logits = np.stack([score / SCALE * 2, np.zeros(400)], axis=1)
    found = scores(logits, np.zeros(400, int), activation="softmax", temperature=1.0)
    value = np.clip(rng.permutation(found) - shift, 1e-9, 1)
    measured = Distances(np.arange(400).astype(str), value, np.zeros(400, bool), "l2", 1.0)
    model = falsification(np.arange(400).astype(str), np.zeros(400, int), logits, measured, activation="softmax").model
    assert (model.p_mean <= 0.05) == surely
