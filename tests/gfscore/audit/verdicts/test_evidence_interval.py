"""Robust accuracy between proofs and attacks: intervals by class and model, and what a gate decides of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from gfscore.audit.class_scores import class_score_table
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import DisparitySettings, IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.candidates import candidates_of
from gfscore.audit.verdicts.gate_rules import parsed_rules, statistic_of
from gfscore.audit.verdicts.judging import judge
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.show.page.first_screen import settling
from helpers.configurations import gate_rule

ENTRIES = {"proof": {"kind": "proven"}, "attack": {"kind": "adversarial", "eps": "2/255"}, "band": {"kind": "robust"}}
MODEL = ModelName("toy", "none", "net")
INTERVALS = IntervalSettings()
ALPHA = 0.05
TAU = 0.5
RULE = gate_rule("band", at_least=TAU)


def band(proven, survived, n):
    """Values of a model of whose n samples of each class so many are proven, and so many survive every attack."""
    labels = np.repeat(np.arange(len(proven)), n)
    places = np.concatenate([np.arange(size) for size in np.broadcast_to(n, len(proven))])
    low = (places < np.asarray(proven)[labels]).astype(float)
    high = (places < np.asarray(survived)[labels]).astype(float)
    return values_of(low, high, labels)


def values_of(low, high, labels):
    expected = ExpectedSamples.each_once(np.arange(len(labels)).astype(str), labels)
    return SampleValues(
        model=MODEL,
        measure=named_measures(ENTRIES)["band"],
        expected=expected,
        low=low,
        high=high,
        correct=high == 1,
        predicted=labels,
        missing=np.zeros(len(labels), dtype=bool),
    )


def names_of(values):
    return [f"class {k}" for k in np.unique(values.labels)]


def judged(values, rule=RULE):
    """What a gate of one rule decides of the only model."""
    rules = parsed_rules([rule])
    candidates = candidates_of([values], names_of(values), rules=rules, intervals=INTERVALS, label_error_rates=None)
    return judge(candidates, rules, lam=0.5).rules[0].models[0]


def lower(count, n, alpha):
    return beta.ppf(alpha, count, n - count + 1) if count else 0.0


def upper(count, n, alpha):
    return beta.ppf(1 - alpha, count + 1, n - count) if count < n else 1.0


# ---- intervals ----


def test_a_class_lies_between_its_proofs_and_its_survivors_with_clopper_and_pearsons_ends():
    proven, survived, n = [62, 0, 100], [81, 40, 100], 100
    frame = class_score_table([band(proven, survived, n)], list("abc"), intervals=INTERVALS, label_error_rates=None)
    assert frame["value"].tolist() == [0.62, 0, 1] and frame["value_most"].tolist() == [0.81, 0.4, 1]
    side = ALPHA / (2 * 3)
    assert frame["low"].tolist() == pytest.approx([lower(count, n, side) for count in proven])
    assert frame["high"].tolist() == pytest.approx([upper(count, n, side) for count in survived])


def test_a_model_lies_between_all_its_proofs_and_survivors_and_so_does_its_worst_class():
    values = band([62, 30, 70], [81, 90, 75], [100, 100, 200])
    scores = class_score_table([values], list("abc"), intervals=INTERVALS, label_error_rates=None)
    settings = DisparitySettings(permutations=99)
    (row,) = model_summary_table([values], scores, {MODEL: {}}, settings, INTERVALS).to_dict("records")
    assert (row["value"], row["value_most"]) == pytest.approx((162 / 400, 246 / 400))
    # The worst class by proofs is not the one by attacks.
    assert (row["wcr"], row["wcr_most"]) == pytest.approx((0.3, 0.375))
    assert row["value_alone_low"] == pytest.approx(lower(162, 400, ALPHA / 2), abs=1e-3)
    assert row["value_alone_high"] == pytest.approx(upper(246, 400, ALPHA / 2), abs=1e-3)
    assert row["wcr_low"] == scores["low"].min() and row["wcr_high"] == scores["high"].min()


def simulated(rng, shares, n, *, decided):
    """A band of n samples of each class, robust with these probabilities, of which a share is decided."""
    labels = np.repeat(np.arange(len(shares)), n)
    robust = rng.random(len(labels)) < np.asarray(shares)[labels]
    known = rng.random(len(labels)) < decided
    return values_of((robust & known).astype(float), (robust | ~known).astype(float), labels)


@pytest.mark.parametrize("decided", [1.0, 0.7])
def test_all_classes_lie_between_their_ends_as_often_as_promised(decided):
    rng = np.random.default_rng(0)
    shares, times = np.array([0.2, 0.5, 0.9]), 1000
    missed = 0
    for _ in range(times):
        low, high = simulated(rng, shares, 40, decided=decided).bounds(3, intervals=INTERVALS).interval(ALPHA)
        missed += not ((low <= shares) & (shares <= high)).all()
    assert missed <= ALPHA * times + 3 * np.sqrt(ALPHA * (1 - ALPHA) * times)


@pytest.mark.parametrize(("worst", "wrong"), [(TAU - 1e-9, "PASS"), (TAU, "FAIL")])
def test_a_gate_errs_no_more_often_than_it_says(worst, wrong):
    rng = np.random.default_rng(1)
    times = 200
    errors = 0
    for _ in range(times):
        shares = [worst, 0.9, 0.9] if wrong == "PASS" else [worst] * 3
        errors += judged(simulated(rng, shares, 60, decided=1.0)).verdict == wrong
    assert errors <= ALPHA * times + 3 * np.sqrt(ALPHA * (1 - ALPHA) * times)


# ---- the gate ----


@pytest.mark.parametrize(
    ("proven", "survived", "word"),
    [
        ([90, 62], [95, 95], "PASS"),
        ([90, 10], [95, 35], "FAIL"),
        # Attacks that fail pass nothing, and proofs that are not found fail nothing.
        ([90, 30], [95, 95], "INCONCLUSIVE"),
        ([90, 5], [95, 60], "INCONCLUSIVE"),
    ],
)
def test_pass_takes_proofs_and_fail_takes_attacks(proven, survived, word):
    model = judged(band(proven, survived, 100))
    assert model.verdict == word
    assert (model.value, model.value_most) == (min(proven) / 100, min(survived) / 100)
    assert model.low == pytest.approx(min(lower(count, 100, ALPHA) for count in proven))
    assert model.high == pytest.approx(min(upper(count, 100, ALPHA / 2) for count in survived))


@pytest.mark.parametrize(
    ("proven", "survived", "tied"),
    [
        ([10, 50, 60], [40, 80, 90], ["class 0"]),
        # Attacks leave least of class 1, but nothing says that no other is weaker.
        ([0, 0, 0], [98, 60, 95], []),
        # The class that fails need not be the one of which least is proven.
        ([0, 10, 60], [80, 12, 60], []),
        ([30, 30, 30], [30, 30, 90], ["class 0", "class 1"]),
    ],
)
def test_a_worst_class_is_named_where_open_samples_cannot_make_another_one_the_worst(proven, survived, tied):
    values = band(proven, survived, 100)
    assert judged(values).worst_class == (tied[0] if tied else None)
    scores = class_score_table([values], names_of(values), intervals=INTERVALS, label_error_rates=None)
    settings = DisparitySettings(permutations=99)
    (row,) = model_summary_table([values], scores, {MODEL: {}}, settings, INTERVALS).to_dict("records")
    assert row["wcr_tied"] == tied and pd.isna(row["wcr_class"]) == (not tied)


@pytest.mark.parametrize("statistic", ["rdi", "nrgc", "fp", "class_mean", "value", "wcr", "class"])
def test_a_statistic_lies_between_its_ends_whatever_open_samples_are_worth(statistic):
    rng = np.random.default_rng(0)
    values = band([62, 30, 70], [81, 90, 75], [100, 100, 200])
    named = {"class": "class 1"} if statistic == "class" else {}
    rule = gate_rule("band", statistic=statistic, **named | {statistic_of(statistic).direction: 0.3})
    model = judged(values, rule)
    assert model.value < model.value_most
    is_open = values.high > values.low
    for share in (0, 0, 0.5, 1, 1):
        decided = np.where(is_open & (rng.random(3)[values.labels] < share), values.high, values.low)
        known = judged(values_of(decided, decided, values.labels), rule)
        assert known.value == known.value_most
        assert model.value - 1e-12 <= known.value <= model.value_most + 1e-12


def test_what_would_settle_several_models_with_open_samples():
    rules = parsed_rules([RULE])
    values = band([0, 0], [95, 90], 100)
    (candidate,) = candidates_of([values], names_of(values), rules=rules, intervals=INTERVALS, label_error_rates=None)
    two = [candidate, replace(candidate, model="another")]
    words = "each has 185 open samples; deciding these alone could settle all of them"
    assert settling(judge(two, rules, lam=0.5).rules[0]) == words


def test_open_samples_are_the_cause_where_more_of_the_same_samples_would_decide_nothing():
    model = judged(band([90, 30], [95, 90], 100))
    assert model.samples_needed_per_class is None
    # The five of the class that surely reaches the threshold leave nothing open.
    assert model.open_samples.cause and model.open_samples.count == 60
    assert (model.open_samples.if_lowest, model.open_samples.if_highest) == ("FAIL", "PASS")
    assert "60" in model.reason_undecided


def test_too_few_samples_are_the_cause_where_more_of_the_same_would_decide_it():
    model = judged(band([90, 54], [95, 54], 100))
    assert model.open_samples is None and model.samples_needed_per_class > 100
    few_open = judged(band([90, 54], [95, 58], 100))
    assert few_open.samples_needed_per_class == model.samples_needed_per_class
    assert few_open.open_samples.count == 4 and not few_open.open_samples.cause


def test_both_are_the_cause_where_neither_alone_would_decide_it():
    model = judged(band([90, 48], [90, 54], 100))
    assert model.samples_needed_per_class is None
    assert model.open_samples.cause and not model.open_samples.may_settle


def test_a_rule_on_one_class_counts_the_open_samples_of_that_class():
    rule = gate_rule("band", statistic="class", at_least=TAU) | {"class": "class 1"}
    model = judged(band([10, 30], [90, 90], 100), rule)
    assert model.open_samples.count == 60 and model.open_samples.cause


def test_the_sentence_counts_the_models_by_cause():
    rules = parsed_rules([RULE])
    candidates = []
    for proven, survived in ((30, 80), (20, 90), (53, 53)):
        values = band([90, proven], [90, survived], 100)
        (candidate,) = candidates_of(
            [values], names_of(values), rules=rules, intervals=INTERVALS, label_error_rates=None
        )
        candidates.append(candidate)
    sentence = judge(candidates, rules, lam=0.5).sentence
    assert "3 undecided (2 for open samples, at most 70, 1 for too few samples)" in sentence
