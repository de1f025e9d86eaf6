"""The rule that no class declines since the last release: pairs, bounds, and verdicts with known truth."""

import numpy as np
import pandas as pd
import pytest

from gfscore import InputError
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.declines import paired
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.measures.declaration import Measure
from gfscore.statistics.betting import lower_bounds
from gfscore.statistics.error_rates import SequentialTest
from helpers.simulated_releases import (
    differences_of,
    paired_outcomes,
    rule_verdict_on,
    shares_of_verdicts,
    verdict_on,
)

D = 0.02
REPEATS = 250
ALPHA = 0.05
TOLERATED = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / REPEATS)


@pytest.mark.parametrize("discordance", [D, 0.1, 0.3, 0.5])
def test_a_wrong_verdict_is_no_likelier_than_alpha_whatever_share_of_the_pairs_differs(discordance):
    """2,000 repeats of more designs: benchmarks/run.py regression_gate."""
    design = {"discordance": discordance, "per_class": 150, "at_most": D, "repeats": REPEATS}
    # The others are better, so that the class that declines by exactly d alone stands between the model and PASS.
    one_class_at_d = shares_of_verdicts([D, -D, -D], **design)
    assert one_class_at_d["PASS"] <= TOLERATED
    every_class_at_d = shares_of_verdicts([D, D, D], **design)
    assert max(every_class_at_d["PASS"], every_class_at_d["FAIL"]) <= TOLERATED
    assert shares_of_verdicts([0.0, 0.0, 0.0], **design)["FAIL"] <= TOLERATED


def test_a_decline_far_beyond_the_limit_fails_and_none_passes():
    rng = np.random.default_rng(0)
    for declines, expected in [([0.0, 0.0], "PASS"), ([0.3, -0.1], "FAIL"), ([0.1, 0.0], "INCONCLUSIVE")]:
        differences = paired_outcomes(rng, declines, discordance=0.3, per_class=1000)
        judged = verdict_on(differences, 2, at_most=0.1)
        assert judged.verdict == expected
        assert judged.low <= judged.value <= judged.high
        assert judged.value == pytest.approx(max(declines), abs=0.06)
        assert (judged.samples_needed_per_class is not None) == (expected == "INCONCLUSIVE")
    assert judged.worst_class == "class 0", "the class that declines most, not the weakest one"


def test_bounds_are_those_of_betting_on_paired_differences_each_side_at_its_level():
    """Of equal differences no order matters: by hand, each class alone for PASS, at alpha / K for FAIL."""
    labels = np.repeat([0, 1], 50)
    judged = verdict_on(differences_of(np.ones(100), np.ones(100), labels), 2, at_most=0.1)
    # Differences of 0 lie in the middle of [-1, 1].
    middle = np.full(100, 0.5)
    for end, alpha in ((judged.high, 0.05), (-judged.low, 0.025)):
        bound = lower_bounds(1 - middle, np.array([50, 50]), alpha=alpha)[0]
        assert end == pytest.approx(1 - 2 * bound, abs=1e-9)


def test_no_class_declines_by_more_than_the_length_of_the_measures_range():
    labels = np.repeat([0, 1], 50)
    rule = rule_verdict_on(differences_of(np.ones(100), np.zeros(100), labels), 2, at_most=0.1)
    assert rule.range == (-1, 1) and rule.models[0].value == 1


def test_an_undecided_pair_counts_as_the_worst_for_pass_and_as_the_best_for_fail():
    labels = np.zeros(400, dtype=int)
    labels[200:] = 1
    equal = np.ones(400)
    later = np.where(np.arange(400) % 5 == 0, 0.0, 1.0)
    assert verdict_on(differences_of(equal, later, labels, later_high=equal), 2, at_most=0.1).verdict == "INCONCLUSIVE"
    assert verdict_on(differences_of(equal, later, labels), 2, at_most=0.1).verdict == "FAIL"
    assert verdict_on(differences_of(equal, equal, labels), 2, at_most=0.1).verdict == "PASS"


def test_wrong_labels_and_tests_and_certificates_that_err_widen_the_bounds():
    labels = np.repeat([0, 1], 500)
    differences = differences_of(np.ones(1000), np.ones(1000), labels)
    plain = verdict_on(differences, 2, at_most=0.1)
    mislabelled = verdict_on(differences, 2, at_most=0.1, label_error_rates=np.full(2, 0.05))
    assert mislabelled.high == pytest.approx((plain.high + 0.05) / 0.95)
    test = SequentialTest(kappa=0.01, alpha=0.05, name="anytime", budget=1000)
    tested = Measure(title="", value_range=(0.0, 1.0), unit="", explanation="", binary=True, test=test)
    erring = verdict_on(differences_of(np.ones(1000), np.ones(1000), labels, measure=tested), 2, at_most=0.1)
    assert erring.high == pytest.approx((plain.high + 0.05) / 0.95)
    certified = Measure(title="", value_range=(0.0, 1.0), unit="", explanation="", alpha=0.05)
    erring = verdict_on(differences_of(np.ones(1000), np.ones(1000), labels, measure=certified), 2, at_most=0.1)
    assert erring.high == pytest.approx((plain.high + 0.05) / 0.95)


def test_a_class_without_pairs_cannot_pass():
    differences = paired_outcomes(np.random.default_rng(0), [0.0, 0.0], discordance=0.02, per_class=2000)
    assert verdict_on(differences, 2, at_most=0.1).verdict == "PASS"
    judged = verdict_on(differences, 3, at_most=0.1)
    assert judged.verdict == "INCONCLUSIVE" and judged.classes_without_samples == ["class 2"]


def test_a_range_of_another_length_scales_values_and_bounds():
    labels = np.repeat([0, 1], 100)
    rng = np.random.default_rng(0)
    earlier, later = rng.random(200), rng.random(200)
    unit = verdict_on(differences_of(earlier, later, labels), 2, at_most=0.1)
    wide = Measure(title="", value_range=(1.0, 3.0), unit="", explanation="")
    stretched = verdict_on(differences_of(1 + 2 * earlier, 1 + 2 * later, labels, measure=wide), 2, at_most=0.2)
    assert (stretched.low, stretched.value, stretched.high) == pytest.approx(
        (2 * unit.low, 2 * unit.value, 2 * unit.high)
    )


# ---- pairs ----

MODEL = ModelName("toy", "none", "net")


def later_values(names, labels, values):
    expected = ExpectedSamples.each_once(np.array(names), np.array(labels))
    measure = named_measures({"clean": {"kind": "clean"}})["clean"]
    return SampleValues.decided(MODEL, measure, values, expected, correct=np.ones(len(names), dtype=bool))


def earlier_rows(names, labels, values):
    return pd.DataFrame({"sample_id": names, "label": labels, "low": values, "high": values, "missing": False})


def test_samples_are_paired_by_name_whatever_their_order_and_those_of_one_release_alone_left_out():
    later = later_values(["a", "b", "c", "d"], [0, 0, 1, 1], [1.0, 0.0, 1.0, 1.0])
    earlier = earlier_rows(["d", "x", "b", "a"], [1, 1, 0, 0], [0.0, 1.0, 1.0, 1.0])
    differences = paired(earlier, later, where="release")
    assert list(differences.sample_id) == ["a", "b", "d"]
    assert list(differences.low) == list(differences.high) == [0.0, -1.0, 1.0]
    assert list(differences.counts(2)["expected"]) == [2, 1]


def test_releases_without_a_common_sample_or_with_other_labels_are_refused():
    later = later_values(["a", "b"], [0, 1], [1.0, 0.0])
    with pytest.raises(InputError, match="no sample in common"):
        paired(earlier_rows(["c"], [0], [1.0]), later, where="release")
    with pytest.raises(InputError, match="sample 'b' has another label"):
        paired(earlier_rows(["a", "b"], [0, 0], [1.0, 1.0]), later, where="release")
