import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from gfscore.audit.agreement.falsification import falsification
from gfscore.statistics import SCALE
from gfscore.statistics.margins import scores
from gfscore.statistics.proportions import clopper_pearson

IDS = np.array(["a", "b", "c", "d", "e"])
LABELS = np.array([0, 0, 1, 1, 0])
# Sigmoid margins of saturated logits are 1, so g = B = 1.2533, for all but "d", which is wrong, and "e", at 0.6.
LOGITS = np.array([[99.0, -99.0], [99.0, -99.0], [-99.0, 99.0], [99.0, -99.0], [np.log(4), -np.log(4)]])


def distances(**changes):
    given = {
        "sample_id": np.array(["c", "a", "d", "e", "b"]),
        "value": np.array([2.0, 0.5, 0.0, 0.75, 1.0]),
        "censored": np.array([True, False, False, False, False]),
    }
    return pd.DataFrame(given | changes)


def falsified(measured=None, **changes):
    """Falsification of class 0, of class 1, and of all samples."""
    measured = distances() if measured is None else measured
    settings = {"activation": "sigmoid", "largest": 2.0, **changes}
    return falsification(IDS, LABELS, LOGITS, measured, **settings).to_dict("records")


def test_rates_by_hand():
    first, second, model = falsified()
    # Class 0: a and b have g = 1.2533 above 0.5 and 1.0; e has g = 0.6 B = 0.752 above 0.75. Class 1: c is censored,
    # d misclassified.
    counts = ("n", "correct", "violations", "censored", "rate")
    assert [first[name] for name in counts] == [3, 3, 3, 0, 1]
    assert [second[name] for name in counts] == [2, 1, 0, 1, 0]
    assert model["rate"] == 3 / 4
    assert (model["low"], model["high"]) == clopper_pearson(3, 4, alpha=0.05)
    assert model["mean_score"] == pytest.approx(SCALE * 3.6 / 5)
    assert model["mean_distance"] == pytest.approx(4.25 / 5)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        # A distance equal to the score, or censored below it, contradicts nothing.
        ({"sample_id": ["a", "b"], "value": [SCALE, 0.1], "censored": [False, True]}, (2, 2, 0)),
        # A subset is joined by sample_id.
        ({"sample_id": ["e"], "value": [0.76], "censored": [False]}, (1, 1, 0)),
        # A sample that only one measurement calls correct is not counted.
        ({"value": np.array([2.0, 0.0, 0.0, 0.75, 1.0])}, (5, 3, 2)),
    ],
)
def test_only_samples_correct_by_both_with_an_example_nearer_than_the_score_contradict_it(changes, counts):
    *_, model = falsified(distances(**changes) if len(changes) == 1 else pd.DataFrame(changes))
    assert (model["n"], model["correct"], model["violations"]) == counts


def test_a_class_without_samples_has_no_rate_and_no_means():
    _, second, _ = falsified(pd.DataFrame({"sample_id": ["e"], "value": [0.76], "censored": [False]}))
    assert (second["n"], second["p_mean"]) == (0, 1)
    assert np.isnan([second[name] for name in ("rate", "low", "high", "mean_score", "mean_distance")]).all()


def test_a_large_temperature_drives_the_rate_to_zero():
    rates = [falsified(temperature=t)[-1]["rate"] for t in (0.1, 1.0, 1e4)]
    assert rates == [3 / 4, 3 / 4, 0]


def known(value, labels, logits, *, activation="sigmoid", largest=8.0):
    names = np.arange(len(value)).astype(str)
    found = pd.DataFrame({"sample_id": names, "value": value, "censored": False})
    return falsification(names, labels, logits, found, activation=activation, largest=largest).iloc[-1]


def test_the_score_of_a_sign_classifier_is_refuted_in_the_mean():
    """Identity generator, sign classifier on a standard normal input: distances are |z|, the score tends to B."""
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    logits = 1e6 * np.stack([-z, z], axis=1)
    model = known(np.abs(z), (z > 0).astype(int), logits)
    assert model["mean_score"] == pytest.approx(SCALE, abs=1e-3)
    assert model["mean_distance"] == pytest.approx(np.sqrt(2 / np.pi), abs=1e-3)
    assert model["rate"] == pytest.approx(2 * norm.cdf(SCALE) - 1, abs=1e-3)


def test_the_score_of_a_shallow_sigmoid_is_refuted_in_the_mean():
    """Uniform pixel, logits +-10 (x - 1/2): mean distance 1/4, mean score 0.9092."""
    x = (np.arange(20_000) + 0.5) / 20_000
    logits = 10 * np.stack([0.5 - x, x - 0.5], axis=1)
    model = known(np.abs(x - 0.5), (x > 0.5).astype(int), logits)
    assert model["mean_score"] == pytest.approx(0.9092, abs=1e-4)
    assert model["mean_distance"] == pytest.approx(0.25, abs=1e-4)
    assert model["rate"] == 1


@pytest.mark.parametrize(("shift", "surely"), [(0.0, False), (1e-6, False), (-0.25, False), (0.25, True)])
def test_the_p_value_of_the_means_needs_more_than_a_larger_mean(shift, surely):
    # Score and distance have one mean, or one that is larger by the shift; the largest distance searched is 1.
    rng = np.random.default_rng(3)
    score = rng.uniform(0.3, 0.7, 400)
    logits = np.stack([score / SCALE * 2, np.zeros(400)], axis=1)
    found = scores(logits, np.zeros(400, int), activation="softmax", temperature=1.0)
    value = np.clip(rng.permutation(found) - shift, 1e-9, 1)
    model = known(value, np.zeros(400, int), logits, activation="softmax", largest=1.0)
    assert (model["p_mean"] <= 0.05) == surely
