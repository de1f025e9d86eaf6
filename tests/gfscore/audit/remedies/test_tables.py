import numpy as np
import pytest

from gfscore.audit.judgement import verdicts_by_model
from gfscore.audit.remedies.gains import PairedOutcomes, ReferenceClasses
from gfscore.audit.remedies.tables import Choice, MeasuredRemedy, remedy_tables
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import DisparitySettings
from gfscore.audit.step_params import TableSettings
from gfscore.audit.tabulation import Tabulation
from gfscore.audit.values import SampleValues
from gfscore.audit.verdicts.gate_rules import parsed_rules
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from helpers.configurations import gate_rule
from helpers.synthetic_audits import INTERVALS, LAM

MEASURE = "adversarial-linf"
CLASSES = ["zero", "one", "two"]
N = 200


def values_of(shares, model):
    """Values of N samples of each class, of which the first `shares` are robust."""
    labels = np.repeat(np.arange(len(shares)), N)
    robust = np.tile(np.arange(N), len(shares)) < N * np.take(shares, labels)
    names = np.array([f"s{row}" for row in range(len(labels))])
    settings = {MEASURE: {"kind": "adversarial", "eps": 0.1}}
    return SampleValues.decided(
        ModelName("judging", "none", model),
        named_measures(settings)[MEASURE],
        robust,
        ExpectedSamples.each_once(names, labels),
        correct=robust,
    )


def remedy(before, after, *, model="M", halfway=None, weights=None):
    original = values_of(before, model)
    adjusted = {1.0: values_of(after, f"{model}-adjusted")}
    if halfway:
        adjusted[0.5] = values_of(halfway, f"{model}-half")
    return MeasuredRemedy(
        original=original,
        adjusted=adjusted,
        clean=PairedOutcomes.decided(np.ones(len(original.low)), original.low, original.labels, classes=3),
        choice=Choice(
            offsets=np.array([2.0, -0.5, -1.5]),
            reference=ReferenceClasses(np.array(before), np.array(after)),
            objective="worst_class",
            class_weights=weights,
            forwards=1200,
        ),
        audit_forwards=300,
    )


def tables_of(*remedies, verdicts=None):
    return remedy_tables(remedies, CLASSES, verdicts=verdicts or {}, intervals=INTERVALS)


def test_classes_say_who_gains_and_who_pays():
    classes = tables_of(remedy([0.1, 0.6, 0.8], [0.4, 0.6, 0.5]))["remedy_classes"]
    assert classes["class_name"].tolist() == CLASSES and classes["n"].eq(N).all()
    assert classes["change"].tolist() == pytest.approx([0.3, 0.0, -0.3])
    assert classes["offset"].tolist() == [2.0, -0.5, -1.5]
    assert classes["low"][0] > 0 > classes["low"][1] and classes["high"][1] > 0 > classes["high"][2]
    model = tables_of(remedy([0.1, 0.6, 0.8], [0.4, 0.6, 0.5]))["remedy_models"].iloc[0]
    assert (model["gaining"], model["losing"]) == (1, 1)


def test_numbers_of_a_model_by_hand():
    model = tables_of(remedy([0.1, 0.6, 0.8], [0.4, 0.6, 0.5]))["remedy_models"].iloc[0]
    assert (model["dataset"], model["model"], model["measure"]) == ("judging", "M", MEASURE)
    assert model["helps"] and 0 < model["worst_low"] < 0.3 < model["worst_high"]
    assert [model["worst_class_before"], model["worst_class_after"]] == ["zero", "zero"]
    assert model["mean_change"] == pytest.approx(0) and model["rdi_change"] == pytest.approx(-0.5)
    assert model["rdi_low"] < -0.5 < model["rdi_high"] < 0
    assert (model["clean_before"], model["clean_after"]) == pytest.approx((1, 0.5))
    # The worst class gains three times of itself, and the mean loses nothing.
    assert model["rho"] == pytest.approx(3)
    assert (model["choosing_forwards"], model["audit_forwards"]) == (1200, 300)


def test_no_gain_is_no_help():
    model = tables_of(remedy([0.3, 0.6, 0.8], [0.32, 0.6, 0.8]))["remedy_models"].iloc[0]
    assert not model["helps"] and model["worst_change"] > 0 > model["worst_low"]


def test_weights_of_classes_weigh_means():
    tables = tables_of(remedy([0.1, 0.6, 0.8], [0.4, 0.6, 0.5], weights=[1, 0, 3]))
    model, curve = tables["remedy_models"].iloc[0], tables["remedy_curve"]
    assert model["mean_before"] == pytest.approx((0.1 + 3 * 0.8) / 4)
    assert curve["mean"].tolist() == pytest.approx([model["mean_before"], model["mean_after"]])


def test_curves_of_models_by_strength():
    curve = tables_of(
        remedy([0.1, 0.6, 0.8], [0.4, 0.6, 0.5], halfway=[0.3, 0.6, 0.7]),
        remedy([0.2, 0.6, 0.8], [0.3, 0.6, 0.7], model="O"),
    )["remedy_curve"]
    first, second = curve[curve["model"] == "M"], curve[curve["model"] == "O"]
    assert first["strength"].tolist() == [0, 0.5, 1] and second["strength"].tolist() == [0, 1]
    assert first["worst"].tolist() == pytest.approx([0.1, 0.3, 0.4])
    assert first["worst_class"].tolist() == ["zero", "zero", "zero"]
    assert (curve["worst_low"] <= curve["worst"]).all() and (curve["worst"] <= curve["worst_high"]).all()


def test_bounds_hold_for_all_models_together():
    first = remedy([0.1, 0.6, 0.8], [0.2, 0.6, 0.7], halfway=[0.15, 0.6, 0.75])
    alone = tables_of(first)
    joint = tables_of(first, *[remedy([0.2, 0.6, 0.8], [0.3, 0.6, 0.7], model=f"M{number}") for number in range(3)])
    fourth = INTERVALS.model_copy(update={"confidence": 1 - (1 - INTERVALS.confidence) / 4})
    strict = remedy_tables([first], CLASSES, verdicts={}, intervals=fourth)
    for name, bounds in {
        "remedy_classes": [""],
        "remedy_models": ["worst_", "rdi_"],
        "remedy_curve": ["mean_"],
    }.items():
        rows = joint[name][joint[name]["model"] == "M"]
        assert rows["confidence"].eq(INTERVALS.confidence).all()
        for bound in bounds:
            columns = [f"{bound}low", f"{bound}high"]
            np.testing.assert_allclose(rows[columns], strict[name][columns])
            assert (alone[name][columns[0]] > rows[columns[0]].to_numpy()).all()


def test_the_rules_of_the_gate_are_asked_before_and_after():
    rules = parsed_rules([gate_rule(MEASURE, at_least=0.25), gate_rule("clean", at_least=0.9)])
    made = remedy([0.1, 0.6, 0.8], [0.5, 0.6, 0.5])
    asked = {"models": 2, "intervals": INTERVALS, "label_error_rates": None, "fp_lambda": LAM}
    verdicts = verdicts_by_model([made.original, made.judged], CLASSES, rules=rules, **asked)
    model = tables_of(made, verdicts=verdicts)["remedy_models"].iloc[0]
    assert (model["verdict_before"], model["verdict_after"]) == ("FAIL", "PASS")

    assert verdicts_by_model([made.original], CLASSES, rules=rules[1:], **asked) == {}
    model = tables_of(made)["remedy_models"].iloc[0]
    assert model[["verdict_before", "verdict_after"]].isna().all()


def test_the_gates_other_rules_and_wrong_labels_count_in_the_verdict_on_a_remedy():
    values = [values_of([0.4, 0.6, 0.5], "M")]
    asked = {"models": 1, "intervals": INTERVALS, "label_error_rates": None, "fp_lambda": LAM}
    lowest = values[0].bounds(3, intervals=INTERVALS).lower(0.05).min()
    rule = gate_rule(MEASURE, at_least=float(lowest) - 1e-6)
    other = gate_rule("clean", at_least=0.9)
    assert verdicts_by_model(values, CLASSES, rules=parsed_rules([rule]), **asked) == {"none/M": "PASS"}
    assert verdicts_by_model(values, CLASSES, rules=parsed_rules([rule, other]), **asked) == {"none/M": "INCONCLUSIVE"}
    asked["label_error_rates"] = [0.2, 0.2, 0.2]
    assert verdicts_by_model(values, CLASSES, rules=parsed_rules([rule]), **asked) == {"none/M": "INCONCLUSIVE"}


def test_the_remedy_of_a_model_that_was_excluded_counts_in_what_is_said_of_the_others():
    # The samples decide which models are excluded, so that those left are judged as strictly as all would be.
    made = remedy([0.1, 0.6, 0.8], [0.5, 0.6, 0.5])
    lowest = made.judged.bounds(3, intervals=INTERVALS).lower(0.05 / 2).min()
    settings = {"intervals": INTERVALS, "disparity": DisparitySettings(fp_lambda=LAM)}
    settings["gate"] = [gate_rule(MEASURE, at_least=float(lowest) - 1e-6)]
    for planned, verdict in ((1, "PASS"), (2, "INCONCLUSIVE")):
        tabulation = Tabulation(
            audit_values=None,
            class_names=CLASSES,
            settings=TableSettings.model_construct(**settings, remedies=planned * [None]),
            accuracies={},
            remedies=[made],
        )
        tables = tabulation._remedy_tables()
        assert tables["remedy_models"].iloc[0]["verdict_after"] == verdict
        share = INTERVALS.model_copy(update={"confidence": 1 - (1 - INTERVALS.confidence) / planned})
        alone = remedy_tables([made], CLASSES, verdicts={}, intervals=share)["remedy_classes"]
        np.testing.assert_array_equal(tables["remedy_classes"]["low"], alone["low"])
