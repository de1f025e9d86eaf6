"""Differences between groups: which two of them surely differ."""

import pandas as pd
import pytest

from gfscore.audit.groups.scores import group_gaps
from gfscore.audit.tables import TABLES, AuditTables
from gfscore.audit.verdicts.findings import _of_groups
from gfscore.tables.parquet_tables import typed_frame


def group_rows(*, values, half_widths, small, models=1):
    frames = []
    for index in range(models):
        frame = pd.DataFrame({"value": values, "half_width": half_widths, "small": small})
        frame = frame.assign(low=frame["value"] - frame["half_width"], high=frame["value"] + frame["half_width"])
        frame["group"] = [f"group-{position}" for position in frame.index]
        names = {"dataset": "d", "threat": "none", "model": f"model-{index}", "measure": "clean", "attribute": "site"}
        frames.append(frame.assign(**names, class_index=-1, n=50, confidence=0.95))
    return pd.concat(frames, ignore_index=True)


def finding_on(rows):
    class_scores = typed_frame(TABLES["class_scores"], [])
    tables = AuditTables(class_scores, pd.DataFrame(), pd.DataFrame(), others={"group_scores": rows})
    (finding,) = _of_groups(tables, "clean")
    return finding


def test_a_group_of_few_samples_makes_no_other_two_differ():
    rows = group_rows(values=[0.0, 0.6, 0.7], half_widths=[0.2, 0.1, 0.1], small=[True, False, False])
    (gaps,) = group_gaps(rows).to_dict("records")
    assert gaps["gap_low"] == pytest.approx(0.4) and gaps["sampled_gap"] == pytest.approx(0.1)
    assert pd.isna(gaps["sure_gap"])
    finding = finding_on(rows)
    assert not finding.numbers["sure"]
    assert finding.sentence.startswith("No difference") and "clean" in finding.sentence


def test_the_groups_that_differ_are_named_although_another_scores_lower():
    rows = group_rows(values=[0.3, 0.35, 0.7], half_widths=[0.5, 0.1, 0.1], small=[False, False, False])
    finding = finding_on(rows)
    assert (finding.subject["lowest"], finding.subject["highest"]) == ("group-1", "group-2")
    assert (finding.numbers["low_value"], finding.numbers["high_value"]) == (0.35, 0.7)
    assert finding.sentence.endswith("0.700 on group-2 (95% confidence)")


def test_groups_of_one_value_are_two_groups():
    rows = group_rows(values=[1.0, 1.0], half_widths=[0.1, 0.1], small=[False, False])
    (gaps,) = group_gaps(rows).to_dict("records")
    assert (gaps["lowest"], gaps["highest"], gaps["gap"]) == ("group-0", "group-1", 0)
    assert "1.00 on group-0, 1.00 on group-1" in finding_on(rows).sentence


def test_one_group_with_samples_has_no_gap():
    rows = group_rows(values=[0.3, 0.7], half_widths=[0.1, 0.1], small=[False, False]).assign(n=[50, 0])
    assert group_gaps(rows).empty


def test_the_widest_difference_of_several_models_is_sure_for_one_alone():
    rows = group_rows(values=[0.3, 0.7], half_widths=[0.1, 0.1], small=[False, False], models=3)
    assert finding_on(rows).sentence.endswith("(95% confidence for one model and attribute)")
