"""Audits of any value per sample: what is taken, what is refused, and the numbers."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from gfscore import InputError, audit_logits, audit_values
from gfscore.audit.settings import IntervalSettings
from gfscore.statistics import SCALE
from gfscore.statistics.class_bounds import bounds_of
from gfscore.statistics.margins import scores
from helpers.samples import logits_and_labels

LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
SURVIVED = np.array([1, 0, 1, 1, 1, 0, 0, 1, 1, 1], dtype=bool)


def test_bool_values_have_the_exact_intervals_of_binomial_shares():
    audit = audit_values(SURVIVED, LABELS, value_range=(0, 1), alpha=0.1)
    assert audit.classes["value"].tolist() == pytest.approx([2 / 3, 1 / 2, 1])
    # Clopper and Pearson 1934, both sides of three classes together at .1.
    level = 1 - 0.1 / 3
    for (_, row), (survivors, n) in zip(audit.classes.iterrows(), [(2, 3), (2, 4), (3, 3)], strict=True):
        exact = stats.binomtest(survivors, n).proportion_ci(level, method="exact")
        assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high))
    metrics = audit.metrics.loc["model"]
    assert metrics["value"] == pytest.approx(0.7)
    assert (metrics["wcr"], metrics["wcr_class"]) == (0.5, "1")
    assert "accuracy" not in audit.classes


def test_only_the_type_of_the_values_decides_which_interval_they_get():
    exact = audit_values(SURVIVED, LABELS, value_range=(0, 1)).classes
    for same in (SURVIVED.astype(int), torch.from_numpy(SURVIVED), SURVIVED.tolist(), pd.Series(SURVIVED)):
        pd.testing.assert_frame_equal(audit_values(same, LABELS, value_range=(0, 1)).classes, exact)
    # Numbers with decimals may lie between the ends, whatever these ten are.
    betting = audit_values(SURVIVED.astype(float), LABELS, value_range=(0, 1)).classes
    assert betting["value"].equals(exact["value"])
    assert (betting["low"] < exact["low"]).all()


def test_margin_scores_as_values_give_the_audit_of_their_logits():
    logits, labels = logits_and_labels(4, n=300, k=4)
    by_logits = audit_logits({"a": logits, "b": 2 * logits}, labels)
    values = {"a": scores(logits, labels, activation="softmax"), "b": scores(2 * logits, labels, activation="softmax")}
    by_values = audit_values(values, labels, value_range=(0, SCALE))
    pd.testing.assert_frame_equal(by_values.classes, by_logits.classes.drop(columns="accuracy"))
    pd.testing.assert_frame_equal(by_values.metrics, by_logits.metrics.drop(columns="accuracy"))
    pd.testing.assert_frame_equal(by_values.comparison, by_logits.comparison)
    pd.testing.assert_frame_equal(by_values.ranks, by_logits.ranks)
    assert by_values.judge(0.2).models.equals(by_logits.judge(0.2).models)


def test_undecided_values_widen_the_interval_to_what_they_may_be():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    low = rng.random(400) * 2
    high = np.where(rng.random(400) < 0.2, 3, low)
    audit = audit_values((low, high), labels, value_range=(0, 3))
    assert audit.classes["value"].tolist() == pytest.approx([low[labels == 0].mean(), low[labels == 1].mean()])
    of_low = audit_values(low, labels, value_range=(0, 3)).classes
    of_high = audit_values(high, labels, value_range=(0, 3)).classes
    assert audit.classes["low"].equals(of_low["low"])
    assert audit.classes["high"].equals(of_high["high"])
    assert "before them: undecided values at their smallest" in repr(audit)
    assert "undecided" not in repr(audit_values(low, labels, value_range=(0, 3)))


def test_nothing_known_decides_nothing():
    unknown = (np.zeros(10, dtype=bool), np.ones(10, dtype=bool))
    audit = audit_values({"known": SURVIVED, "unknown": unknown}, LABELS, value_range=(0, 1))
    assert (audit.classes.loc["unknown", ["low", "high"]] == [0, 1]).all(axis=None)
    assert audit.comparison[["low", "high"]].to_numpy().tolist()[0][0] < 0
    assert audit.judge(0.5).models.loc["unknown", "verdict"] == "INCONCLUSIVE"


def test_the_verdict_follows_from_the_bounds_at_the_share_of_alpha_of_each_model():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 500)
    values = {name: rng.random(1000) < share for name, share in {"weak": 0.3, "middle": 0.5, "strong": 0.9}.items()}
    audit = audit_values(values, labels, value_range=(0, 1))
    verdict = audit.judge(0.5)
    assert verdict.models["verdict"].to_dict() == {"weak": "FAIL", "middle": "INCONCLUSIVE", "strong": "PASS"}
    assert verdict.verdict == "FAIL"
    assert str(verdict) == verdict.sentence
    assert verdict.sentence.startswith("FAIL: of 3 models 1 pass, 1 fail, 1 undecided")
    for name, survived in values.items():
        least = min(survived[labels == k].mean() for k in (0, 1))
        assert verdict.models.loc[name, "value"] == pytest.approx(least)
        # Each side of the worst class needs .05 / 3 of its class alone.
        low = min(stats.beta.ppf(0.05 / 3, s, 501 - s) for s in (survived[labels == k].sum() for k in (0, 1)))
        assert verdict.models.loc[name, "low"] == pytest.approx(low)
    assert verdict.models["samples_needed"].notna().tolist() == [False, True, False]
    assert audit.judge(at_most=0.9, statistic="rdi").verdict == "PASS"
    assert audit.judge(np.float32(0.2), statistic="class", class_name="1").verdict == "PASS"
    assert audit.judge("1/5").verdict == "PASS"


def test_names_of_labels_are_the_classes_in_their_order_or_alphabetically():
    words = np.array(["cat", "dog", "frog"])[LABELS]
    expected = audit_values(SURVIVED, LABELS, value_range=(0, 1), class_names=["cat", "dog", "frog"]).classes
    for labels in (words, words.tolist(), pd.Series(words), pd.Series(words).astype("category")):
        pd.testing.assert_frame_equal(audit_values(SURVIVED, labels, value_range=(0, 1)).classes, expected)
    reordered = audit_values(SURVIVED, words, value_range=(0, 1), class_names=["frog", "cat", "dog", "newt"]).classes
    assert reordered.loc["model"].index.tolist() == ["frog", "cat", "dog", "newt"]
    assert reordered.loc[("model", "frog"), "value"] == 1
    assert reordered.loc[("model", "newt"), "n"] == 0
    assert (reordered.loc[("model", "newt"), ["low", "high"]] == [0, 1]).all()


def test_columns_of_a_frame_are_models_and_of_a_frame_of_logits_classes():
    frame = pd.DataFrame({"first": SURVIVED, "second": ~SURVIVED})
    audit = audit_values(frame, LABELS, value_range=(0, 1))
    assert audit.metrics.index.tolist() == ["first", "second"]
    logits, labels = logits_and_labels(0)
    names = list("abcde")
    of_frame = audit_logits(pd.DataFrame(logits, columns=names), pd.Series(np.array(names)[labels]))
    pd.testing.assert_frame_equal(of_frame.classes, audit_logits(logits, labels, class_names=names).classes)


def test_columns_in_another_order_than_the_classes_are_refused():
    logits, labels = logits_and_labels(0)
    names = list("abcde")
    words = np.array(names)[labels]
    frame = pd.DataFrame(logits, columns=names)
    turned = frame[names[::-1]]
    with pytest.raises(InputError, match=r"model: its columns are .*, class_names .*; give both in one order"):
        audit_logits(turned, words, class_names=names)
    for class_names in (None, names, list("vwxyz")):
        with pytest.raises(InputError, match=r"second: its columns are .*, those of an earlier model .*; reorder"):
            audit_logits({"first": frame, "second": turned}, labels, class_names=class_names)
    renamed = audit_logits(frame, labels, class_names=list("vwxyz")).classes
    assert renamed["value"].tolist() == audit_logits(logits, labels).classes["value"].tolist()


def test_the_column_of_the_labels_is_no_class():
    logits, labels = logits_and_labels(0)
    frame = pd.DataFrame(logits, columns=list("abcde")).assign(label=labels)
    with pytest.raises(InputError, match="logits: its column 'label' is that of the labels; leave it out"):
        audit_logits(frame, frame["label"])
    # Names of rows and columns by number are no names.
    assert len(audit_logits(pd.DataFrame(logits), pd.Series(labels, name=0)).classes) == 5


def test_tensors_are_taken_as_they_come_out_of_a_network():
    logits, labels = logits_and_labels(0)
    expected = audit_logits(logits, labels).classes
    tensor = torch.tensor(logits, requires_grad=True) * 1
    pd.testing.assert_frame_equal(audit_logits(tensor, torch.tensor(labels)).classes, expected)
    halves = torch.tensor(logits).to(torch.bfloat16)
    stored = audit_logits(halves.float().numpy(), labels).classes
    pd.testing.assert_frame_equal(audit_logits(halves, labels).classes, stored)


def test_what_float32_rounds_beyond_the_end_of_the_range_is_in_it():
    highest = np.float32(0.1)
    assert float(highest) > 0.1
    audit = audit_values(np.full(10, highest), LABELS, value_range=(0, 0.1))
    assert audit.classes["value"].max() <= 0.1 + 1e-15


def test_what_bfloat16_rounds_beyond_the_end_of_the_range_is_in_it():
    values = torch.full((10,), 0.3, dtype=torch.bfloat16)
    assert values[0].item() > 0.3
    audit = audit_values(values, LABELS, value_range=(0, 0.3))
    assert audit.classes["value"].max() <= 0.3 + 1e-15
    # The same number in float32 has not been rounded.
    with pytest.raises(InputError, match="outside value_range"):
        audit_values(values.float(), LABELS, value_range=(0, 0.3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": SURVIVED[:9]}, "9 values for 10 labels"),
        ({"values": np.zeros((10, 2))}, r"shape \(10, 2\).*dict of names"),
        ({"values": [0.5] * 9 + [np.nan]}, "row 9 is nan, 1 such rows; give a tuple"),
        ({"values": {"net": [0.5] * 9 + [1.5]}}, "values of net: row 9 is 1.5, outside value_range 0 to 1"),
        ({"values": (np.ones(10), np.zeros(10))}, "row 0 has low 1 above high 0"),
        ({"values": ["a"] * 10}, "give real numbers"),
        ({"values": np.ma.masked_array(SURVIVED, mask=[0, 1] * 5)}, "row 1 is masked"),
        ({"values": {}}, "no model"),
        ({"values": {1: SURVIVED, "1": SURVIVED}}, "model name '1' stands more than once"),
        ({"values": pd.DataFrame(np.zeros((10, 2)), columns=["a", "a"])}, "model name 'a' stands more than once"),
        ({"labels": LABELS - 1}, "row 0 has label -1"),
        ({"labels": LABELS.astype(np.int64) + 2**32}, "row 0 has label 4294967296"),
        ({"labels": LABELS + 0.5}, "row 0 is 0.5"),
        ({"labels": LABELS[:, None]}, r"labels have shape \(10, 1\)"),
        ({"labels": np.zeros(10, int)}, "at least 2 classes with samples, got 1"),
        ({"labels": [], "values": []}, "no samples"),
        ({"class_names": ["a", "b"]}, "row 7 has label 2, outside 0..1"),
        ({"class_names": ["a", "b", "a"]}, "class name 'a' stands more than once"),
        ({"labels": ["a", "b", "d"] + ["c"] * 7, "class_names": ["a", "b", "c"]}, "row 2 is 'd', none of the 3"),
        ({"value_range": (1, 0)}, "the lowest first"),
        ({"value_range": (0, np.inf)}, "two finite numbers"),
        ({"value_range": 1}, "must be a pair"),
        ({"value_range": (-1, 1)}, "add 1 to values and range"),
        ({"labels": np.array([0, 1, None] + [1] * 7)}, "labels have dtype object, row 2 is None"),
        ({"alpha": 1}, "alpha must lie strictly between 0 and 1"),
        ({"values": pd.Series(SURVIVED), "labels": pd.Series(LABELS)[::-1]}, "index differs from that of the labels"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_wrong(change, message):
    arguments = {"values": SURVIVED, "labels": LABELS, "value_range": (0, 1)} | change
    with pytest.raises(InputError, match=message) as error:
        audit_values(arguments.pop("values"), arguments.pop("labels"), **arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "needs one threshold"),
        ({"at_most": 0.3}, "more is better"),
        ({"at_least": 0.3, "statistic": "wrc"}, "did you mean 'wcr'"),
        ({"at_least": 0.3, "statistic": "class", "class_name": "9"}, "class '9' is unknown"),
        ({"at_most": 0.3, "statistic": "falsification_rate"}, "falsification_rate.*wcr"),
        ({"at_least": 0.3, "confidence": 1}, "confidence: .*less than 1"),
    ],
)
def test_rules_that_none_can_be_judged_by_are_refused(rule, message):
    audit = audit_values(SURVIVED, LABELS, value_range=(0, 1))
    with pytest.raises(InputError, match=message):
        audit.judge(**rule)


def test_logits_of_several_models_must_be_of_the_same_samples_and_classes():
    logits, labels = logits_and_labels(0)
    with pytest.raises(InputError, match=r"logits of b: .* rows of logits but"):
        audit_logits({"a": logits, "b": logits[1:]}, labels)
    with pytest.raises(InputError, match="logits of b: 4 logits per row"):
        audit_logits({"a": logits, "b": logits[:, 1:]}, labels)
    with pytest.raises(InputError, match="labels are names; give class_names"):
        audit_logits(logits, np.array(list("abcde"))[labels])


def test_seeds_and_settings_are_those_of_the_workflow():
    rng = np.random.default_rng(3)
    values = rng.random(200)
    labels = np.repeat([0, 1], 100)
    audit = audit_values(values, labels, value_range=(0, 1))

    class Measure:
        value_range = (0.0, 1.0)
        binary = False
        error_rate = 0.0

    low, high = bounds_of(values, labels, 2, measure=Measure(), intervals=IntervalSettings()).interval(1 - 0.95)
    np.testing.assert_array_equal(audit.classes["low"], low)
    np.testing.assert_array_equal(audit.classes["high"], high)


def test_whole_numbers_in_a_column_of_objects_are_labels():
    by_number = audit_values(SURVIVED, LABELS, value_range=(0, 1)).classes
    assert audit_values(SURVIVED, LABELS.astype(object), value_range=(0, 1)).classes.equals(by_number)
