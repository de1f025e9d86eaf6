import numpy as np
import pandas as pd
import pytest

from gfscore.intervals import hoeffding_half_width
from gfscore.margins import SCALE
from gfscore.verdict import combine, judge

RULE = {"measure": "great", "at_least": 0.5, "confidence": 0.95}
MEASURES = {"great": {"kind": "great"}, "clean": {"kind": "clean"}}


def table(values, *, n=1000, model="M", measure="great", calibration="none", rate=None):
    """class_scores of one model with the given class values."""
    values = np.asarray(values, dtype=float)
    return pd.DataFrame(
        {
            "threat": "none",
            "model": model,
            "measure": measure,
            "calibration": calibration,
            "class_index": np.arange(len(values)),
            "class_name": [f"class {k}" for k in range(len(values))],
            "n": np.broadcast_to(n, len(values)),
            "value": values,
            "variance": 0.0,
            "label_error_rate": np.nan if rate is None else rate,
        }
    )


def verdict_of(values, rule=RULE, **kwargs):
    return judge(table(values, **kwargs), [rule], measures=MEASURES)


def half_width(n=1000, classes=2, alpha=0.05):
    return hoeffding_half_width(n, classes=classes, alpha=alpha, width=SCALE)


def test_pass_needs_the_lower_bound_and_fail_the_upper_bound():
    half = half_width()
    assert verdict_of([1.0, 0.5 + half + 1e-9])["verdict"] == "PASS"
    assert verdict_of([1.0, 0.5 + half - 1e-6])["verdict"] == "INCONCLUSIVE"
    assert verdict_of([1.0, 0.5 - half + 1e-6])["verdict"] == "INCONCLUSIVE"
    assert verdict_of([1.0, 0.5 - half - 1e-9])["verdict"] == "FAIL"


def test_the_worst_class_may_be_decided_by_the_smallest_one():
    """The largest class value has few samples, so its lower bound is the lowest."""
    judged = verdict_of([0.9, 1.0], n=[1000, 10])["rules"][0]["models"][0]
    assert judged["verdict"] == "INCONCLUSIVE"
    assert judged["low"] == pytest.approx(1.0 - half_width(10))
    assert judged["worst_class"] == "class 0"


def test_alpha_is_split_over_models_and_rules():
    half = half_width()
    values = [1.0, 0.5 + half + 1e-4]
    alone = judge(table(values), [RULE], measures=MEASURES)
    together = judge(pd.concat([table(values), table(values, model="N")]), [RULE], measures=MEASURES)
    twice = judge(table(values), [RULE, RULE], measures=MEASURES)
    assert alone["verdict"] == "PASS"
    assert together["verdict"] == twice["verdict"] == "INCONCLUSIVE"
    assert twice["rules"][0]["models"][0]["low"] == pytest.approx(0.5 + half + 1e-4 - half_width(alpha=0.025))


def test_a_class_without_samples_never_passes_and_is_named():
    judged = verdict_of([np.nan, 1.2], n=[0, 10**6], rule={**RULE, "at_least": 0.01})["rules"][0]["models"][0]
    assert judged["verdict"] == "INCONCLUSIVE"
    assert judged["classes_without_samples"] == ["class 0"]
    assert judged["low"] == 0


def test_the_samples_that_would_settle_it_do_settle_it():
    judged = verdict_of([1.0, 0.53])["rules"][0]["models"][0]
    needed = judged["samples_needed_per_class"]
    assert verdict_of([1.0, 0.53], n=needed)["verdict"] == "PASS"
    assert verdict_of([1.0, 0.53], n=needed - 1)["verdict"] == "INCONCLUSIVE"
    assert verdict_of([1.0, 0.5])["rules"][0]["models"][0]["samples_needed_per_class"] is None


def test_wrong_labels_widen_the_bounds():
    value = 0.5 + half_width() + 0.01
    assert verdict_of([1.2, value])["verdict"] == "PASS"
    assert verdict_of([1.2, value], rate=0.05)["verdict"] == "INCONCLUSIVE"


def test_only_uncalibrated_rows_of_the_measure_are_judged():
    frame = pd.concat([table([1.0, 1.0]), table([0, 0], calibration="likelihood"), table([0, 0], measure="clean")])
    assert judge(frame, [RULE], measures=MEASURES)["verdict"] == "PASS"


def test_combine():
    assert combine(["PASS", "PASS"]) == "PASS"
    assert combine(["PASS", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert combine(["INCONCLUSIVE", "FAIL"]) == "FAIL"
    assert combine([]) == "INCONCLUSIVE"


def test_the_sentence_counts_models():
    frame = pd.concat([table([1.0, 1.2], model="A"), table([0.0, 1.2], model="B"), table([0.5, 1.2], model="C")])
    assert judge(frame, [RULE], measures=MEASURES)["sentence"].startswith(
        "FAIL: of 3 models 1 pass, 1 fail, 1 undecided (rule: every class has a mean great of at least 0.5"
    )


def test_false_passes_and_fails_stay_below_alpha():
    """Simulation: three models with a worst class exactly at the threshold, or just beside it, 20 samples a class."""
    rng = np.random.default_rng(0)
    rule = {"measure": "clean", "at_least": 0.8, "confidence": 0.9}
    wrong = 0
    runs = 400
    for _ in range(runs):
        rates = [[0.79, 0.95], [0.8, 0.8], [0.99, 0.79]]
        frames = [
            table(rng.binomial(20, rate) / 20, n=20, model=str(index), measure="clean")
            for index, rate in enumerate(rates)
        ]
        judged = judge(pd.concat(frames), [rule], measures=MEASURES)["rules"][0]["models"]
        truths = ["FAIL", "PASS", "FAIL"]
        wrong += any(
            model["verdict"] != "INCONCLUSIVE" and model["verdict"] != truth
            for model, truth in zip(judged, truths, strict=True)
        )
    assert wrong / runs <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / runs)
