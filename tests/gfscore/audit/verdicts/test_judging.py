import numpy as np
import pytest
from scipy.stats import binom

from gfscore import InputError
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts import judging
from gfscore.audit.verdicts.candidates import ALL_CLASSES, Candidate, JudgedClasses, candidates_of
from gfscore.audit.verdicts.gate_rules import (
    ALL_SAMPLES,
    CLASSES,
    FALSIFICATION,
    BoundsKey,
    combine,
    parsed_rules,
    statistic_of,
    verdict_of,
)
from gfscore.core.identity import ModelName
from gfscore.core.software import software
from gfscore.measures import named_measures
from gfscore.statistics import SCALE
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples
from gfscore.statistics.intervals import hoeffding_half_width
from helpers.configurations import gate_rule

pytestmark = pytest.mark.seconds(10)

RULE = gate_rule("great", at_least=0.5)
KEY = BoundsKey("m")


def judge(candidates, rules, *, lam):
    """What the gate decides, as verdict.json holds it."""
    return judging.judge(candidates, parsed_rules(rules), lam=lam).model_dump(by_alias=True)


def candidate(values, *, n=1000, model="M", measure="great", value_range=(0.0, SCALE), method="hoeffding", rate=None):
    """Model whose samples all have their class's value, n of each class."""
    values, n = np.asarray(values, dtype=float), np.broadcast_to(n, len(values))
    samples = class_samples(np.repeat(values, n), np.repeat(np.arange(len(values)), n), len(values), seed=0)
    rates = None if rate is None else np.full(len(values), rate)
    bounds = ClassBounds(samples, value_range, method, rates)
    return candidate_of(bounds, [f"class {k}" for k in range(len(values))], key=BoundsKey(measure), model=model)


def candidate_of(bounds, names, *, key=KEY, model="M"):
    return Candidate("none", model, {key: JudgedClasses(bounds, names)})


def verdict_on(values, rule=RULE, **kwargs):
    return judge([candidate(values, **kwargs)], [rule], lam=0.5)


def only_model(verdict):
    return verdict["rules"][0]["models"][0]


def one_side(n=1000, alpha=0.05):
    """Hoeffding's bound on one side of one class."""
    return hoeffding_half_width(n, classes=1, alpha=2 * alpha, width=SCALE)


def test_pass_needs_every_class_at_the_whole_alpha_and_fail_any_class_at_its_share():
    whole, share = one_side(), one_side(alpha=0.05 / 2)
    assert verdict_on([1.0, 0.5 + whole + 1e-9])["verdict"] == "PASS"
    assert verdict_on([1.0, 0.5 + whole - 1e-6])["verdict"] == "INCONCLUSIVE"
    assert verdict_on([1.0, 0.5 - share + 1e-6])["verdict"] == "INCONCLUSIVE"
    assert verdict_on([1.0, 0.5 - share - 1e-9])["verdict"] == "FAIL"


def test_the_worst_class_may_be_decided_by_the_smallest_one():
    """The largest class value has few samples, so its lower bound is the lowest."""
    judged = only_model(verdict_on([0.9, 1.0], n=[1000, 8]))
    assert judged["verdict"] == "INCONCLUSIVE"
    assert judged["low"] == pytest.approx(1.0 - one_side(8))
    assert judged["worst_class"] == "class 0"


def test_alpha_is_split_over_models_rules_and_looks():
    values = [1.0, 0.5 + one_side() + 1e-4]
    several_looks = RULE | {"looks": {"planned": 2, "this": 1}}
    assert judge([candidate(values)], [RULE], lam=0.5)["verdict"] == "PASS"
    for verdict in (
        judge([candidate(values), candidate(values, model="N")], [RULE], lam=0.5),
        judge([candidate(values)], [RULE, RULE], lam=0.5),
        judge([candidate(values)], [several_looks], lam=0.5),
    ):
        assert verdict["verdict"] == "INCONCLUSIVE"
        assert verdict["rules"][0]["alpha"] == pytest.approx(0.025)
        assert only_model(verdict)["low"] == pytest.approx(values[1] - one_side(alpha=0.025))


def test_a_model_that_was_excluded_has_its_share_of_alpha():
    """Which models are left depends on the samples that are judged."""
    values = [1.0, 0.5 + one_side() + 1e-4]
    excluded = [{"model": "none/N", "reason": "accuracy 0.5, 0.9 published"}]
    verdict = judging.judge(
        [candidate(values)], parsed_rules([RULE]), lam=0.5, selection={"excluded": excluded, "warned": []}
    )
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.rules[0].alpha == pytest.approx(0.025)


def test_looks_are_recorded_and_said():
    verdict = verdict_on([1.0, 1.0], RULE | {"looks": {"planned": 3, "this": 2}})
    assert verdict["rules"][0]["looks"] == {"planned": 3, "this": 2}
    assert "95% confidence, at look 2 of 3)" in verdict["sentence"]
    assert "look" not in verdict_on([1.0, 1.0])["sentence"]
    assert "fresh" in verdict["note"]


@pytest.mark.parametrize("statistic", ["wcr", "class_mean"])
def test_a_confidence_and_a_threshold_are_said_in_full(statistic):
    (rule,) = parsed_rules([RULE | {"statistic": statistic, "at_least": 0.9999999, "confidence": 0.9999999}])
    words = rule.words
    assert "at least 0.9999999" in words
    assert "99.99999% confidence" in words


def test_the_software_that_judged_is_recorded():
    assert verdict_on([1.0, 1.0])["software"] == software()


def test_a_class_without_samples_never_passes_and_is_named():
    judged = only_model(verdict_on([0, 1.2, 1.2], n=[0, 10**5, 10**5], rule=RULE | {"at_least": 0.01}))
    assert judged["verdict"] == "INCONCLUSIVE"
    assert judged["classes_without_samples"] == ["class 0"]
    assert judged["low"] == 0
    assert judged["samples_needed_per_class"] is None


@pytest.mark.parametrize("threshold", [0.01, 1.24])
def test_an_aggregate_is_undecided_while_a_declared_class_has_no_samples(threshold):
    rule = gate_rule("great", statistic="value", at_least=threshold)
    judged = only_model(verdict_on([0, 1.2, 1.2], n=[0, 10**5, 10**5], rule=rule))
    assert (judged["verdict"], judged["low"], judged["high"]) == ("INCONCLUSIVE", 0, SCALE)
    assert judged["classes_without_samples"] == ["class 0"]
    assert judged["samples_needed_per_class"] is None


def test_a_class_that_is_called_by_a_number_is_named_as_a_class():
    samples = class_samples(np.ones(30), np.zeros(30, dtype=int), 2, seed=0)
    (rule,) = parsed_rules([gate_rule("great", at_least=0.5)])
    candidate = candidate_of(ClassBounds(samples, (0.0, 1.0), "hoeffding"), ["0", "1"], key=rule.bounds_key)
    assert "; no samples of class 1, so" in judging.judge([candidate], [rule], lam=0.5).sentence


def test_classes_without_samples_are_named_whatever_the_verdict():
    rule = gate_rule("great", statistic="class_mean", at_least=0.5)
    verdict = verdict_on([0, 1.2, 1.2], n=[0, 10**5, 10**5], rule=rule)
    assert verdict["verdict"] == "PASS"
    assert "; no samples of class 0, so that values there may be anything" in verdict["sentence"]
    assert "no samples" not in verdict_on([1.2, 1.2])["sentence"]


@pytest.mark.parametrize(
    ("statistic", "threshold"), [("rdi", 0.1), ("nrgc", 0.1), ("wcr", 0.5), ("fp", 0.5), ("decline", 0.1)]
)
@pytest.mark.parametrize("sizes", [(30, 0), (0, 0)])
def test_a_statistic_of_too_few_classes_with_samples_is_undecided(statistic, threshold, sizes):
    samples = class_samples(np.ones(sizes[0]), np.zeros(sizes[0], dtype=int), 2, seed=0)
    bounds = ClassBounds(samples, (-1.0 if statistic == "decline" else 0.0, 1.0), "hoeffding")
    (rule,) = parsed_rules([gate_rule("great", statistic=statistic) | {statistic_of(statistic).direction: threshold}])
    judged = judging.judge([candidate_of(bounds, ["a", "b"], key=rule.bounds_key)], [rule], lam=0.5)
    (model,) = judged.rules[0].models
    assert model.verdict == "INCONCLUSIVE"
    assert np.isnan(model.value) or (statistic, sizes) == ("decline", (30, 0))


def test_the_samples_that_would_settle_it_do_settle_it():
    judged = only_model(verdict_on([1.0, 0.52]))
    needed = judged["samples_needed_per_class"]
    assert verdict_on([1.0, 0.52], n=needed)["verdict"] == "PASS"
    assert verdict_on([1.0, 0.52], n=int(needed * 0.998))["verdict"] == "INCONCLUSIVE"
    assert only_model(verdict_on([1.0, 0.5]))["samples_needed_per_class"] is None


@pytest.mark.parametrize(("this", "left"), [(1, True), (2, True), (3, False)])
def test_further_samples_are_asked_for_only_while_a_look_is_left(this, left):
    judged = only_model(verdict_on([1.0, 0.52], RULE | {"looks": {"planned": 3, "this": this}}))
    needed = judged["samples_needed_per_class"]
    assert judged["further_samples_needed"] == (2 * (needed - 1000) if left else None)


def test_only_the_class_that_is_judged_needs_further_samples():
    looks = {"planned": 2, "this": 1}
    rule = gate_rule("great", statistic="class", at_least=0.5) | {"class": "class 1", "looks": looks}
    judged = only_model(verdict_on([0.1, 0.52, 0.1], rule))
    assert judged["further_samples_needed"] == judged["samples_needed_per_class"] - 1000
    assert only_model(verdict_on([0, 0.52, 0], rule, n=[0, 1000, 0]))["classes_without_samples"] == []


def test_wrong_labels_widen_the_bounds():
    value = 0.5 + one_side() + 0.01
    assert verdict_on([1.2, value])["verdict"] == "PASS"
    assert verdict_on([1.2, value], rate=0.05)["verdict"] == "INCONCLUSIVE"


def test_the_other_direction():
    rule = gate_rule("great", statistic="rdi", at_most=0.5)
    half = one_side(alpha=0.025)
    passed = verdict_on([1.0, 0.5 + 2 * half + 1e-9], rule)
    assert passed["verdict"] == "PASS"
    assert passed["rules"][0]["at_most"] == 0.5
    assert "RDI of great is at most 0.5" in passed["sentence"]
    assert verdict_on([1.0, 0.5 + 2 * half - 1e-6], rule)["verdict"] == "INCONCLUSIVE"
    assert verdict_on([1.2, 0.1], rule)["verdict"] == "FAIL"


def test_an_aggregate_is_judged_by_a_bound_of_its_own_that_no_union_over_classes_widens():
    values, all_samples = np.linspace(0.4, 0.7, 10), one_side(10 * 1000)
    for statistic in ("value", "class_mean"):
        for shift, verdict in ((1e-6, "PASS"), (-1e-6, "INCONCLUSIVE")):
            rule = gate_rule("great", statistic=statistic, at_least=0.55 - all_samples - shift)
            assert verdict_on(values, rule)["verdict"] == verdict
    # Classes count alike in the class mean, however many samples they have: there the bounds of the classes make it.
    judged = only_model(verdict_on([0.4, 0.8], gate_rule("great", statistic="class_mean", at_least=0.5), n=[1000, 10]))
    sides = [one_side(n, alpha=0.025) for n in (1000, 10)]
    assert judged["value"] == pytest.approx(0.6) and judged["low"] == pytest.approx(0.6 - np.mean(sides))


def test_samples_planned_for_the_aggregate_settle_it():
    rule = gate_rule("great", statistic="value", at_least=0.5)
    needed = only_model(verdict_on([0.2, 0.81], rule))["samples_needed_per_class"]
    assert verdict_on([0.2, 0.81], rule, n=needed)["verdict"] == "PASS"
    assert verdict_on([0.2, 0.81], rule, n=int(needed * 0.998))["verdict"] == "INCONCLUSIVE"


def test_verdict_of_a_rule_from_bounds():
    for low, high, first, second in (
        (0.5, 0.7, "PASS", "INCONCLUSIVE"),
        (0.6, 0.7, "PASS", "FAIL"),
        (0.3, 0.5, "INCONCLUSIVE", "PASS"),
        (0.3, 0.4, "FAIL", "PASS"),
        (float("nan"), float("nan"), "INCONCLUSIVE", "INCONCLUSIVE"),
    ):
        assert verdict_of("at_least", 0.5, low, high) == first
        assert verdict_of("at_most", 0.5, low, high) == second


def test_what_stops_a_pipeline():
    undecided, wrong, right = [1.0, 0.5], [1.0, 0.1], [1.0, 1.0]
    lenient = RULE | {"on_inconclusive": "pass"}
    stops = {
        (name, rule["on_inconclusive"]): verdict_on(values, rule)["stops"]
        for name, values in (("undecided", undecided), ("wrong", wrong), ("right", right))
        for rule in (RULE, lenient)
    }
    assert stops == {
        ("undecided", "stop"): True,
        ("undecided", "pass"): False,
        ("wrong", "stop"): True,
        ("wrong", "pass"): True,
        ("right", "stop"): False,
        ("right", "pass"): False,
    }
    assert verdict_on(undecided, lenient)["verdict"] == "INCONCLUSIVE"
    # One rule that passes does not excuse another that stops.
    assert judge([candidate(undecided)], [lenient, RULE], lam=0.5)["stops"]


def test_only_uncalibrated_values_of_the_measures_in_rules_are_judged():
    def measured(measure, calibration, value):
        labels = np.repeat([0, 1], 50)
        return SampleValues.decided(
            ModelName("d", "L2", "M"),
            named_measures({measure: {"kind": measure}})[measure],
            np.full(100, value),
            ExpectedSamples.each_once(labels.astype(str), labels),
            correct=labels >= 0,
            calibration=calibration,
        )

    found = candidates_of(
        [measured("clean", "none", 1.0), measured("great", "none", 0.5), measured("great", "likelihood", 0.1)],
        ["a", "b"],
        rules=parsed_rules([RULE]),
        intervals=IntervalSettings(),
        label_error_rates=None,
    )
    assert len(found) == 1
    assert (found[0].threat, found[0].model) == ("L2", "M")
    assert list(found[0].judged) == [BoundsKey("great")]
    judged = found[0].judged[BoundsKey("great")]
    assert judged.names == ["a", "b"] and judged.counts.by_class["measured"] == [50, 50]
    assert judged.bounds.samples.summary.mean.tolist() == [0.5, 0.5]


def test_an_unknown_class_gets_the_nearest_name():
    rule = gate_rule("great", statistic="class", at_least=0.5) | {"class": "clas 1"}
    with pytest.raises(InputError, match="class 'clas 1' is unknown; did you mean 'class 1'"):
        verdict_on([1.0, 1.0], rule)


def test_combine():
    assert combine(["PASS", "PASS"]) == "PASS"
    assert combine(["PASS", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert combine(["INCONCLUSIVE", "FAIL"]) == "FAIL"
    assert combine([]) == "INCONCLUSIVE"


def test_the_sentence_counts_models():
    models = [candidate(v, model=name) for v, name in (([1.0, 1.2], "A"), ([0.0, 1.2], "B"), ([0.5, 1.2], "C"))]
    verdict = judge(models, [RULE], lam=0.5)
    assert verdict["sentence"].startswith(
        "FAIL: of 3 models 1 pass, 1 fail, 1 undecided (rule: every class has a mean great of at least 0.5"
    )
    assert verdict["rules"][0]["interval"] == "hoeffding"
    assert verdict["rules"][0]["range"] == (0.0, SCALE)


# Error rates on planted cases

PLANTED = {
    # Every class just at the wrong side, one class only, and few samples in it; truths of wcr at_least 0.3.
    "all classes just below": (np.full(8, 0.299), 60),
    "one class just below": (np.r_[0.299, np.full(7, 0.6)], 60),
    "few samples of the class below": (np.r_[0.299, np.full(7, 0.6)], np.r_[12, np.full(7, 200)]),
}


def drawn(rng, rates, n, method):
    """Candidate with 0/1 values, or with values in [0, 1] of the same means and a rare large one among small ones."""
    n = np.broadcast_to(n, len(rates))
    labels = np.repeat(np.arange(len(rates)), n)
    if method == "clopper_pearson":
        values = (rng.random(len(labels)) < rates[labels]) * 1.0
    else:
        values = rng.beta(0.3, 0.3 * (1 - rates[labels]) / rates[labels])
    bounds = ClassBounds(class_samples(values, labels, len(rates), seed=0), (0.0, 1.0), method)
    return candidate_of(bounds, [str(k) for k in range(len(rates))])


def decide(one, rule, *, rules=1, models=1):
    """Verdict of judge on one model, without planning further samples, which takes most of the time."""
    judged = one.judged[KEY]
    statistic = statistic_of(rule["statistic"], class_name=rule.get("class"), class_names=judged.names, lam=0.5)
    alpha = (1 - rule["confidence"]) / (rules * models * rule["looks"]["planned"])
    direction = "at_least" if "at_least" in rule else "at_most"
    return verdict_of(direction, rule[direction], *statistic.bounds(judged.bounds, alpha))


def test_the_quick_verdict_is_that_of_judge():
    rng = np.random.default_rng(0)
    seen = set()
    for threshold in (0.1, 0.3, 0.5):
        rule = gate_rule("m", at_least=threshold)
        one = drawn(rng, np.full(3, 0.3), 60, "clopper_pearson")
        verdict = judge([one, one], [rule, rule], lam=0.5)
        assert only_model(verdict)["verdict"] == decide(one, rule, rules=2, models=2)
        seen.add(verdict["verdict"])
    assert seen == {"PASS", "INCONCLUSIVE", "FAIL"}


@pytest.mark.parametrize("method", ["betting", "clopper_pearson"])
@pytest.mark.parametrize("case", PLANTED)
def test_false_passes_stay_below_alpha(case, method):
    rng, trials, alpha = np.random.default_rng(0), 150 if method == "betting" else 400, 0.2
    rule = gate_rule("m", at_least=0.3) | {"confidence": 1 - alpha}
    wrong = sum(decide(drawn(rng, *PLANTED[case], method), rule) == "PASS" for _ in range(trials))
    assert wrong <= binom.ppf(0.999, trials, alpha)


def test_the_planted_case_uses_up_alpha_so_that_a_looser_gate_would_be_caught():
    rng, trials, alpha = np.random.default_rng(0), 1500, 0.2
    rates, n = PLANTED["one class just below"]
    passed = 0
    for _ in range(trials):
        bounds = drawn(rng, rates, n, "clopper_pearson").judged[KEY].bounds
        passed += bounds.lower(2 * alpha).min() >= 0.3
    assert passed > binom.ppf(0.999, trials, alpha)


@pytest.mark.parametrize("method", ["betting", "clopper_pearson"])
def test_false_fails_stay_below_alpha_over_all_classes(method):
    rng, trials, alpha = np.random.default_rng(1), 150 if method == "betting" else 400, 0.2
    rule = gate_rule("m", at_least=0.3) | {"confidence": 1 - alpha}
    wrong = sum(decide(drawn(rng, np.full(8, 0.3), 60, method), rule) == "FAIL" for _ in range(trials))
    assert wrong <= binom.ppf(0.999, trials, alpha)


@pytest.mark.parametrize("statistic", ["rdi", "nrgc", "fp", "value", "class_mean", "class"])
@pytest.mark.parametrize("direction", ["at_least", "at_most"])
def test_every_statistic_errs_with_at_most_alpha_on_both_sides(statistic, direction):
    """The threshold lies just beside the truth, on either side: passing one and failing the other is wrong."""
    rng, trials, alpha = np.random.default_rng(2), 250, 0.3
    rates = np.array([0.2, 0.35, 0.5, 0.8])
    truth = {"rdi": 0.6, "nrgc": 0.263514, "fp": 0.4625 - 0.3, "value": 0.4625, "class_mean": 0.4625, "class": 0.35}
    sign = 1 if direction == "at_least" else -1
    missed = {"PASS": 0, "FAIL": 0}
    for _ in range(trials):
        one = drawn(rng, rates, 80, "clopper_pearson")
        for wrong, shift in (("PASS", 1e-4), ("FAIL", -1e-4)):
            rule = gate_rule("m", statistic=statistic) | {
                direction: truth[statistic] + sign * shift,
                "confidence": 1 - alpha,
                "class": "1",
            }
            missed[wrong] += decide(one, rule) == wrong
    for wrong, count in missed.items():
        assert count <= binom.ppf(0.999, trials, alpha), wrong


@pytest.mark.parametrize("method", ["betting", "clopper_pearson"])
def test_looking_again_after_adding_samples_keeps_false_passes_below_alpha(method):
    rng, alpha, looks = np.random.default_rng(3), 0.3, 4
    trials = 60 if method == "betting" else 300
    wrong = unplanned = 0
    rates, labels = np.r_[0.299, np.full(3, 0.6)], np.repeat(np.arange(4), 160)
    rank = np.arange(len(labels)) % 160
    for _ in range(trials):
        values = (rng.random(len(labels)) < rates[labels]) * 1.0
        passed = {looks: False, 1: False}
        for this in range(1, looks + 1):
            seen = rank < 160 * this // looks
            bounds = ClassBounds(class_samples(values[seen], labels[seen], 4, seed=0), (0.0, 1.0), method)
            one = candidate_of(bounds, list("abcd"))
            for planned in (looks, 1):
                rule = gate_rule("m", at_least=0.3, confidence=1 - alpha, looks={"planned": planned, "this": this})
                passed[planned] |= decide(one, rule) == "PASS"
        wrong += passed[looks]
        unplanned += passed[1]
    assert wrong <= binom.ppf(0.999, trials, alpha)
    # Looking until it passes, without having planned to, is what goes wrong.
    assert unplanned > wrong
    if method == "clopper_pearson":
        assert unplanned > binom.ppf(0.999, trials, alpha)


def test_over_models_and_rules_together_no_verdict_is_wrong_more_often_than_alpha():
    rng, runs, alpha = np.random.default_rng(0), 300, 0.2
    rules = [
        gate_rule("m", at_least=0.3) | {"confidence": 1 - alpha},
        gate_rule("m", statistic="rdi", at_most=0.5) | {"confidence": 1 - alpha},
    ]
    rates = [np.array([0.299, 0.9]), np.array([0.3, 0.8]), np.array([0.299, 0.299])]
    truths = [["FAIL", "PASS", "FAIL"], ["FAIL", "PASS", "PASS"]]
    wrong = 0
    for _ in range(runs):
        models = [drawn(rng, rate, 40, "clopper_pearson") for rate in rates]
        wrong += any(
            decide(model, rule, rules=2, models=3) not in ("INCONCLUSIVE", truth)
            for rule, expected in zip(rules, truths, strict=True)
            for model, truth in zip(models, expected, strict=True)
        )
    assert wrong <= binom.ppf(0.999, runs, alpha)


def falsified_candidate(violated, labels=None, classes=1):
    labels = np.zeros(len(violated), dtype=int) if labels is None else labels
    samples = class_samples(violated.astype(float), labels, classes, seed=0)
    key = BoundsKey("great", FALSIFICATION, ALL_SAMPLES if classes == 1 else CLASSES)
    names = [ALL_CLASSES] if classes == 1 else [f"class {k}" for k in range(classes)]
    return candidate_of(ClassBounds(samples, (0.0, 1.0), "clopper_pearson"), names, key=key)


def test_a_falsification_rate_of_all_samples_is_judged_without_a_union_over_classes():
    rule = gate_rule("great", statistic="falsification_rate", at_most=0.1)
    judged = only_model(judge([falsified_candidate(np.arange(60) < 1)], [rule], lam=0.5))
    # The largest p with P(Binomial(60, p) <= 1) = 0.05.
    assert binom.cdf(1, 60, judged["high"]) == pytest.approx(0.05)
    assert judged["verdict"] == "PASS" and judged["value"] == pytest.approx(1 / 60)
    assert judged["worst_class"] == "all classes"
    nothing = only_model(judge([falsified_candidate(np.zeros(0, dtype=bool))], [rule], lam=0.5))
    assert nothing["verdict"] == "INCONCLUSIVE" and (nothing["low"], nothing["high"]) == (0, 1)
    assert nothing["worst_class"] is None and nothing["samples_needed_per_class"] is None


def test_a_falsification_rate_of_a_class_names_the_most_refuted_one_as_the_worst():
    labels = np.repeat([0, 1, 2], 30)
    rule = gate_rule("great", statistic="falsification_rate", at_most=0.5) | {"class": "class 0"}
    judged = only_model(judge([falsified_candidate(labels == 1, labels, 3)], [rule], lam=0.5))
    assert judged["verdict"] == "PASS" and judged["value"] == 0
    assert judged["worst_class"] == "class 1"


def test_a_rate_at_the_threshold_passes_and_fails_wrongly_with_probability_alpha_at_most():
    rng, rule = np.random.default_rng(0), gate_rule("great", statistic="falsification_rate", at_most=0.2)
    verdicts = [judge([falsified_candidate(rng.random(80) < 0.2)], [rule], lam=0.5)["verdict"] for _ in range(300)]
    for wrong in ("PASS", "FAIL"):
        assert verdicts.count(wrong) <= binom.ppf(0.999, 300, 0.05)
