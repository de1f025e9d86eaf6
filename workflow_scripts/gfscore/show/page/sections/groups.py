"""Details of the section on groups and disturbances: gaps, fairness metrics, corruptions, projection."""

from collections.abc import Iterator

import pandas as pd

from gfscore.audit.groups.scores import group_gaps
from gfscore.core.names import model_labels, printable
from gfscore.show.page.elements import CLASS, MEASURE, MODEL, VALUE, Detail, N, bounded, counted, named, valued, yes
from gfscore.show.page.sections.contents import Contents

PROJECTED = (
    *("tolerance", "deviation", "coupling", "coupling_entropy", "agreement", "accuracy", "decoded_accuracy"),
    *("task_accuracy", "dp", "eopp", "eodd"),
)
"""Numbers of a model on a mapper."""


def of_groups(c: Contents) -> Iterator[Detail | None]:
    """Details on whom the numbers hold for."""
    yield _gaps(c)
    columns = [
        MODEL,
        MEASURE,
        named("Attribute", "attribute"),
        CLASS,
        named("Metric", "metric"),
        VALUE,
        bounded("Interval", "wilson_low", "wilson_high", 1.0),
        valued("As printed in the paper", "as_printed"),
        valued("Balanced", "balanced_value"),
    ]
    summary = "Fairness metrics: DP, EOpp, EOdd and others"
    yield c.listed(summary, c.rows("group_metrics"), "group_metrics", "Fairness", columns)
    yield _corruption_errors(c)
    errors = c.rows("class_errors")
    corrupted = errors[errors["corruption"].notna()] if errors is not None else None
    if corrupted is not None and len(corrupted):
        means = corrupted.groupby(["corruption", "severity"], sort=False)["recall"].mean().reset_index()
        columns = [named("Corruption", "corruption"), counted("Severity", "severity"), valued("Accuracy", "recall")]
        summary = "Accuracy under each corruption, mean over models and classes"
        yield c.listed(summary, means.sort_values("recall"), "class_errors", "Corruptions", columns)
    yield from _projection(c)


def _gaps(c):
    scores = c.rows("group_scores")
    if scores is None:
        return None
    gaps = group_gaps(scores[scores["measure"] == c.measure])
    gaps = group_gaps(scores) if gaps.empty else gaps
    if gaps.empty:
        return None
    gaps = gaps.assign(label=model_labels(gaps)).sort_values("gap", ascending=False)
    columns = [
        MODEL,
        named("Attribute", "attribute"),
        named("Lowest group", "lowest"),
        valued("its value", "low_value"),
        named("Highest group", "highest"),
        valued("its value", "high_value"),
        valued("Gap", "gap"),
        bounded("Interval", "gap_low", "gap_high"),
        valued("few samples", "small", yes),
    ]
    return c.listed("Gaps between groups, the widest first", gaps, "group_scores", "Groups", columns)


def _corruption_errors(c):
    errors = c.rows("corruption_errors")
    errors = errors[errors["corruption"].isna()] if errors is not None else None
    if errors is None or errors.empty:
        return None
    baseline = errors["baseline"].iloc[0]
    reference = "relative to a baseline: the audit names none (corruption_baseline)"
    if pd.notna(baseline):
        reference = f"the mean over corruptions of its error over that of {printable(baseline)}, taken as it is"
    columns = [
        MODEL,
        MEASURE,
        N,
        valued("Mean error", "error"),
        bounded("Interval", "low", "high", 1.0),
        valued("mCE", "corruption_error"),
        bounded("Interval", "corruption_error_low", "corruption_error_high"),
    ]
    text = [f"Intervals by sample: copies of one image count once. mCE is {reference}."]
    summary, rows = "Errors under corruptions: plain mean, and mean corruption error (mCE)", errors.sort_values("error")
    return c.listed(summary, rows, "corruption_errors", "Corruption errors", columns, text=text)


def _projection(c):
    # Models by mapper and task, tasks by attribute, latent dimensions.
    models, attributes, effects = map(c.rows, ("projection_models", "projection_attributes", "projection_effects"))
    if models is not None:
        columns = [named("Mapper", "mapper"), named("Task", "dataset"), MODEL, N]
        columns += [valued(_title(name), name) for name in PROJECTED]
        tasks = models.groupby(["mapper", "dataset"], sort=False)
        rows = pd.concat([own.sort_values("tolerance", ascending=False) for _, own in tasks])
        summary = f"Projection on the latent dimensions of {', '.join(map(printable, models['mapper'].unique()))}"
        yield c.listed(summary, rows, "projection_models", "Projection", columns)
    if attributes is not None:
        names, known = (
            ["tolerance", "deviation", "dp", "eopp", "eodd"],
            attributes[~attributes["constant"].astype(bool)],
        )
        means = known.groupby(["mapper", "dataset", "attribute"], sort=False)[names].mean().reset_index()
        columns = [named("Mapper", "mapper"), named("Task", "dataset"), named("Attribute", "attribute")]
        columns += [valued(_title(name), name) for name in names]
        summary = "Each task by each attribute, mean over models"
        yield c.listed(summary, means, "projection_attributes", "Attributes", columns)
    if effects is not None:
        columns = [named(name.capitalize(), name) for name in ("mapper", "dimension", "trait")]
        columns += [valued(name.capitalize(), name) for name in ("shift", "strength", "tolerance")]
        rows = effects.sort_values("strength", ascending=False)
        yield c.listed("What each latent dimension changes", rows, "projection_effects", "Dimensions", columns)


def _title(name):
    return {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}.get(name, name.replace("_", " ").capitalize())
