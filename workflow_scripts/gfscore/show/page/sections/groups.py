"""Details of the section on groups and disturbances: gaps, fairness metrics, corruptions, projection."""

from collections.abc import Iterator

import pandas as pd

from gfscore.audit.groups.scores import group_gaps
from gfscore.core.names import model_labels, printable, printable_all
from gfscore.show.page.elements import CLASS, MEASURE, MODEL, VALUE, Detail, N, bounded, counted, named, valued, yes
from gfscore.show.page.sections.contents import Contents

PROJECTED = (
    "tolerance",
    "deviation",
    "coupling",
    "coupling_entropy",
    "agreement",
    "accuracy",
    "decoded_accuracy",
    "task_accuracy",
    "dp",
    "eopp",
    "eodd",
)
"""Numbers of a model on a mapper."""

BY_ATTRIBUTE = ("tolerance", "deviation", "dp", "eopp", "eodd")
"""Numbers of a task by attribute."""

ABBREVIATIONS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}


def of_groups(contents: Contents) -> Iterator[Detail | None]:
    """Details on whom the numbers hold for."""
    yield _gaps(contents)
    yield _fairness(contents)
    yield _corruption_errors(contents)
    yield _corruptions(contents)
    yield _projected_models(contents)
    yield _projected_attributes(contents)
    yield _projection_effects(contents)


def _gaps(contents: Contents) -> Detail | None:
    scores = contents.rows("group_scores")
    if scores is None:
        return None
    gaps = group_gaps(scores[scores["measure"] == contents.measure])
    if gaps.empty:
        gaps = group_gaps(scores)
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
    return contents.listed("Gaps between groups, the widest first", gaps, "group_scores", "Groups", columns)


def _fairness(contents: Contents) -> Detail | None:
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
    return contents.listed(summary, contents.rows("group_metrics"), "group_metrics", "Fairness", columns)


# ---- corruptions ----


def _corruption_errors(contents: Contents) -> Detail | None:
    errors = contents.rows("corruption_errors")
    if errors is None:
        return None
    means = errors[errors["corruption"].isna()]
    if means.empty:
        return None

    baseline = means["baseline"].iloc[0]
    if pd.notna(baseline):
        reference = f"the mean over corruptions of its error over that of {printable(baseline)}, taken as it is"
    else:
        reference = "relative to a baseline: the audit names none (corruption_baseline)"
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
    summary = "Errors under corruptions: plain mean, and mean corruption error (mCE)"
    rows = means.sort_values("error")
    return contents.listed(summary, rows, "corruption_errors", "Corruption errors", columns, text=text)


def _corruptions(contents: Contents) -> Detail | None:
    errors = contents.rows("class_errors")
    if errors is None:
        return None
    corrupted = errors[errors["corruption"].notna()]
    if corrupted.empty:
        return None
    means = corrupted.groupby(["corruption", "severity"], sort=False)["recall"].mean().reset_index()
    columns = [named("Corruption", "corruption"), counted("Severity", "severity"), valued("Accuracy", "recall")]
    summary = "Accuracy under each corruption, mean over models and classes"
    return contents.listed(summary, means.sort_values("recall"), "class_errors", "Corruptions", columns)


# ---- projection ----


def _projected_models(contents: Contents) -> Detail | None:
    # Models by mapper and task.
    models = contents.rows("projection_models")
    if models is None:
        return None
    columns = [named("Mapper", "mapper"), named("Task", "dataset"), MODEL, N]
    columns += [valued(_title(name), name) for name in PROJECTED]
    tasks = []
    for _, rows in models.groupby(["mapper", "dataset"], sort=False):
        tasks.append(rows.sort_values("tolerance", ascending=False))
    mappers = ", ".join(printable_all(models["mapper"].unique()))
    summary = f"Projection on the latent dimensions of {mappers}"
    return contents.listed(summary, pd.concat(tasks), "projection_models", "Projection", columns)


def _projected_attributes(contents: Contents) -> Detail | None:
    # Tasks by attribute.
    attributes = contents.rows("projection_attributes")
    if attributes is None:
        return None
    varying = attributes[~attributes["constant"].astype(bool)]
    by_attribute = varying.groupby(["mapper", "dataset", "attribute"], sort=False)
    means = by_attribute[list(BY_ATTRIBUTE)].mean().reset_index()
    columns = [named("Mapper", "mapper"), named("Task", "dataset"), named("Attribute", "attribute")]
    columns += [valued(_title(name), name) for name in BY_ATTRIBUTE]
    summary = "Each task by each attribute, mean over models"
    return contents.listed(summary, means, "projection_attributes", "Attributes", columns)


def _projection_effects(contents: Contents) -> Detail | None:
    # Latent dimensions.
    effects = contents.rows("projection_effects")
    if effects is None:
        return None
    columns = [named(name.capitalize(), name) for name in ("mapper", "dimension", "trait")]
    columns += [valued(name.capitalize(), name) for name in ("shift", "strength", "tolerance")]
    rows = effects.sort_values("strength", ascending=False)
    return contents.listed("What each latent dimension changes", rows, "projection_effects", "Dimensions", columns)


def _title(name: str) -> str:
    return ABBREVIATIONS.get(name, name.replace("_", " ").capitalize())
