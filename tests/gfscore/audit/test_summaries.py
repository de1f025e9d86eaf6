"""Rows of the tables of an audit from the measured values of one model."""

from dataclasses import replace

import numpy as np
import pytest

from gfscore.audit.class_scores import MOST_PAIRED, class_pair_table, class_score_table
from gfscore.audit.model_summary import model_summary_table
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import DisparitySettings, IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.tables.parquet_tables import typed_frame
from gfscore.workflow.catalogue import CATALOGUE

NO = float("nan")
NAMES = ["cat", "dog", "frog"]
TEST = {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05, "test": "anytime", "budget": 3000}
INTERVALS = IntervalSettings()


def model_named(name):
    return ModelName("toy", "none", name)


@pytest.mark.parametrize("undecided", [False, True])
def test_undecided_samples_leave_no_p_value_of_disparity(undecided):
    # No class differs from another for sure: the samples of the first one may be all robust.
    labels = np.repeat([0, 1, 2], 100).astype(np.int32)
    values = (labels > 0) * 1.0
    expected = ExpectedSamples.each_once(np.arange(300).astype(str), labels)
    sure = named_measures({"sure": TEST})["sure"]
    measured = SampleValues.decided(model_named("m"), sure, values, expected, correct=labels >= 0)
    if undecided:
        measured = replace(measured, high=np.ones(300))
    classes = class_score_table([measured], NAMES, intervals=INTERVALS, label_error_rates=None)
    settings = DisparitySettings(permutations=99)
    row = model_summary_table([measured], classes, {measured.model: {}}, settings, INTERVALS).iloc[0]
    expected = NO if undecided else 0.01
    np.testing.assert_array_equal([row[f"{name}_p"] for name in ("rdi", "nrgc", "wcr")], [expected] * 3)
    assert (row["rdi_low"] > 0) == (not undecided)


def test_shuffles_are_enough_for_the_number_of_models():
    # With 19 shuffles no p-value is below 1/20, and Holm over 60 models would never find one significant.
    labels = np.repeat([0, 1, 2], 40).astype(np.int32)
    expected = ExpectedSamples.each_once(np.arange(120).astype(str), labels)
    clean = named_measures({"clean": {"kind": "clean"}})["clean"]
    first = SampleValues.decided(model_named("m0"), clean, (labels > 0) * 1.0, expected, correct=labels >= 0)
    scores = class_score_table([first], NAMES, intervals=INTERVALS, label_error_rates=None)
    accuracies = {model_named(f"m{index}"): {} for index in range(60)}
    row = model_summary_table([first], scores, accuracies, DisparitySettings(permutations=19), INTERVALS).iloc[0]
    assert row["rdi_p"] * 60 == pytest.approx(0.05)


def class_scores(values, low, high, **key):
    names = [f"c{k}" for k in range(len(values))]
    key = {"dataset": "toy", "threat": "none", "model": "m", "measure": "clean", "calibration": "none"} | key
    return typed_frame(
        CATALOGUE["class_scores"],
        [
            {**key, "class_index": k, "class_name": name, "value": values[k], "low": low[k], "high": high[k]}
            for k, name in enumerate(names)
        ],
    )


def pairs_of(*given, **key):
    return class_pair_table(class_scores(*given, **key))


def test_each_pair_of_classes_stands_once_the_stronger_first_with_bounds_of_the_difference():
    rows = pairs_of([0.5, 0.9, 0.2], [0.25, 0.75, 0.0], [0.75, 1.0, 0.25])
    assert rows[["stronger_name", "weaker_name"]].to_numpy().tolist() == [["c1", "c0"], ["c1", "c2"], ["c0", "c2"]]
    assert rows[["stronger_index", "weaker_index"]].to_numpy().tolist() == [[1, 0], [1, 2], [0, 2]]
    assert rows["difference"].tolist() == pytest.approx([0.4, 0.7, 0.3])
    # L of the stronger minus U of the weaker: only c1 and c2 surely differ. U minus L for the other end.
    assert rows["low"].tolist() == [0, 0.5, 0]
    assert rows["high"].tolist() == [0.75, 1, 0.75]


def test_ties_keep_the_order_of_the_classes_and_a_class_without_samples_is_in_no_pair():
    rows = pairs_of([0.5, NO, 0.5], [0.25, 0, 0.25], [0.75, 1, 0.75])
    assert rows[["stronger_index", "weaker_index", "difference", "low"]].to_numpy().tolist() == [[0, 2, 0, -0.5]]


def test_classes_without_bounds_have_differences_without():
    rows = pairs_of([0.5, 0.25], [NO, NO], [NO, NO], measure="great", calibration="likelihood", temperature=2.0)
    assert rows["difference"].tolist() == [0.25]
    assert rows[["low", "high"]].isna().all(axis=None)
    assert (rows["calibration"][0], rows["temperature"][0]) == ("likelihood", 2)


def test_more_classes_than_a_reader_can_pair_have_no_rows():
    for classes, pairs in ((MOST_PAIRED, MOST_PAIRED * (MOST_PAIRED - 1) / 2), (MOST_PAIRED + 1, 0)):
        values = np.arange(classes) / classes
        assert len(pairs_of(values, values, values)) == pairs
