"""Metrics of groups from the predictions of one model."""

import pandas as pd
import pytest

from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.metrics import metrics_of_predictions
from gfscore.audit.settings import GroupSettings


def metrics(rows, *, classes, minimum_cell=20):
    """Metrics by class and metric of samples in groups a and b; rows: sample_id, group, label, prediction."""
    samples = pd.DataFrame(rows, columns=["sample_id", "group", "label", "prediction"])
    group_of = {row.sample_id: "ab".index(row.group) for row in samples.itertuples()}
    grouping = Grouping({"side": group_of}, {"side": ["a", "b"]})
    settings = GroupSettings(attributes=["side"], minimum_cell=minimum_cell)
    frame = metrics_of_predictions(samples, grouping, classes, settings=settings, confidence=0.95)
    return frame.set_index(["class_name", "metric"])


@pytest.mark.parametrize("samples", [20, 30, 50])
def test_cells_of_samples_with_seven_copies_are_counted_exactly(samples):
    # Sums of 2/7, 2/7 and 3/7 are a little less than the number of samples.
    rows = []
    for group in "ab":
        for label in range(3):
            for number in range(samples):
                for prediction, copies in enumerate((2, 2, 3)):
                    rows += [(f"{group}{label}-{number}", group, label, prediction)] * copies
    frame = metrics(rows, classes=["cat", "dog", "fox"], minimum_cell=samples)
    assert set(frame.xs("eopp", level="metric")["smallest_cell"]) == {samples}
    assert set(frame.xs("dp", level="metric")["smallest_cell"]) == {3 * samples}
    assert not frame["small"].any()


def test_a_class_without_a_value_has_no_part_in_the_smallest_cell_of_macro_and_worst():
    # No fox is in group b, so that its true positive rate is unknown there.
    counts = {("a", 0): 30, ("a", 1): 25, ("a", 2): 40, ("b", 0): 35, ("b", 1): 50}
    rows = []
    for (group, label), count in counts.items():
        rows += [(f"{group}{label}-{number}", group, label, label) for number in range(count)]
    frame = metrics(rows, classes=["cat", "dog", "fox"])
    assert frame.loc[("fox", "eopp"), "smallest_cell"] == 0 and frame.loc[("fox", "eopp"), "small"]
    for summary in ("macro", "worst"):
        assert frame.loc[(summary, "eopp"), "smallest_cell"] == 25
        assert not frame.loc[(summary, "eopp"), "small"]


def test_macro_of_classes_without_a_value_has_their_smallest_cell():
    rows = [(f"a{number}", "a", number % 2, 0) for number in range(40)]
    frame = metrics(rows, classes=["cat", "dog"])
    assert frame["value"].isna().all()
    assert (frame["smallest_cell"] == 0).all() and frame["small"].all()
