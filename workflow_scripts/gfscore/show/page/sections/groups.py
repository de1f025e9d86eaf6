"""Details of the section on groups and disturbances: gaps, fairness metrics, corruptions, projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from gfscore.audit.groups.gaps import group_gaps
from gfscore.core.names import model_labels, printable
from gfscore.show.page.sections.projection import of_projection
from gfscore.show.page.tables import Detail, bounded, counted, named, table_of, valued, yes

if TYPE_CHECKING:
    from gfscore.show.page.sections.contents import Contents


def of_groups(c: Contents) -> Iterator[Detail | None]:
    """Details on whom the numbers hold for."""
    yield _gaps(c)
    columns = [
        named("Model", "label"),
        named("Measure", "measure"),
        named("Attribute", "attribute"),
        named("Class", "class"),
        named("Metric", "metric"),
        valued("Value", "value"),
        bounded("Interval", "wilson_low", "wilson_high", 1.0),
        valued("As printed in the paper", "as_printed"),
        valued("Balanced", "balanced_value"),
    ]
    yield c.listed("group_metrics", "Fairness metrics: DP, EOpp, EOdd and others", "Fairness", columns)
    yield _corruption_errors(c)
    yield _corruptions(c)
    yield from of_projection(c)


def _gaps(c):
    scores = c.of("group_scores")
    if scores is None:
        return None
    gaps = group_gaps(scores[scores["measure"] == c.measure])
    gaps = group_gaps(scores) if gaps.empty else gaps
    if gaps.empty:
        return None
    gaps = gaps.assign(label=model_labels(gaps)).sort_values("gap", ascending=False)
    columns = [
        named("Model", "label"),
        named("Attribute", "attribute"),
        named("Lowest group", "lowest"),
        valued("its value", "low_value"),
        named("Highest group", "highest"),
        valued("its value", "high_value"),
        valued("Gap", "gap"),
        bounded("Interval", "gap_low", "gap_high"),
        valued("few samples", "small", yes),
    ]
    return Detail("Gaps between groups, the widest first", table=table_of(gaps, "Groups", "group_scores", columns))


def _corruption_errors(c):
    errors = c.of("corruption_errors")
    errors = errors[errors["corruption"].isna()] if errors is not None else None
    if errors is None or errors.empty:
        return None
    baseline = errors["baseline"].iloc[0]
    reference = "relative to a baseline: the audit names none (corruption_baseline)"
    if pd.notna(baseline):
        reference = f"the mean over corruptions of its error over that of {printable(baseline)}, taken as it is"
    columns = [
        named("Model", "label"),
        named("Measure", "measure"),
        counted("n", "n"),
        valued("Mean error", "error"),
        bounded("Interval", "low", "high", 1.0),
        valued("mCE", "corruption_error"),
        bounded("Interval", "corruption_error_low", "corruption_error_high"),
    ]
    return Detail(
        "Errors under corruptions: plain mean, and mean corruption error (mCE)",
        text=[f"Intervals by sample: copies of one image count once. mCE is {reference}."],
        table=table_of(errors.sort_values("error"), "Corruption errors", "corruption_errors", columns),
    )


def _corruptions(c):
    errors = c.of("class_errors")
    corrupted = errors[errors["corruption"].notna()] if errors is not None else None
    if corrupted is None or corrupted.empty:
        return None
    means = corrupted.groupby(["corruption", "severity"], sort=False)["recall"].mean().reset_index()
    columns = [named("Corruption", "corruption"), counted("Severity", "severity"), valued("Accuracy", "recall")]
    return Detail(
        "Accuracy under each corruption, mean over models and classes",
        table=table_of(means.sort_values("recall"), "Corruptions", "class_errors", columns),
    )
