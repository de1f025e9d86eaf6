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
    "censored",
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
        valued("few samples", "small", yes),
    ]
    summary = "Fairness metrics: DP, EOpp, EOdd and others"
    yield contents.table_details(summary, contents.rows("group_metrics"), "group_metrics", "Fairness", columns)

    yield _corruption_errors(contents)
    class_errors = contents.rows("class_errors")
    corrupted = class_errors[class_errors["corruption"].notna()]
    means = corrupted.groupby(["measure", "corruption", "severity"], sort=False)["recall"].mean().reset_index()
    columns = [
        MEASURE,
        named("Corruption", "corruption"),
        counted("Severity", "severity"),
        valued("Accuracy", "recall"),
    ]
    summary = "Accuracy under each corruption, mean over models and classes"
    yield contents.table_details(summary, means.sort_values("recall"), "class_errors", "Corruptions", columns)

    yield from _projections(contents)


def _gaps(contents: Contents) -> Detail | None:
    scores = contents.rows("group_scores")
    gaps = group_gaps(scores[scores["measure"] == contents.measure])
    if gaps.empty:
        gaps = group_gaps(scores)
    gaps = gaps.assign(label=model_labels(gaps)).sort_values("gap", ascending=False)
    columns = [
        MODEL,
        MEASURE,
        named("Attribute", "attribute"),
        named("Lowest group", "lowest"),
        valued("its value", "low_value"),
        named("Highest group", "highest"),
        valued("its value", "high_value"),
        valued("Gap", "gap"),
        bounded("Interval", "gap_low", "gap_high"),
        valued("few samples", "small", yes),
    ]
    summary = "Gaps between groups, the widest first"
    return contents.table_details(summary, gaps, "group_scores", "Groups", columns, as_failures=True)


def _corruption_errors(contents: Contents) -> Detail | None:
    errors = contents.rows("corruption_errors")
    means = errors[errors["corruption"].isna()]
    if means.empty:
        return None

    baseline = means["baseline"].iloc[0]
    if pd.isna(baseline):
        reference = "relative to a baseline: the audit names none (corruption_baseline)"
    elif baseline not in set(means["threat"] + "/" + means["model"]):
        reference = f"relative to a baseline, and {printable(baseline)} is left out of the audit"
    elif means["corruption_error"].isna().all():
        reference = f"relative to a baseline, and {printable(baseline)} makes no error under a corruption"
    else:
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
    summary = "Errors under corruptions: plain mean, and mean corruption error (mCE)"
    rows = means.sort_values("error")
    return contents.table_details(summary, rows, "corruption_errors", "Corruption errors", columns, text=text)


def _projections(contents: Contents) -> Iterator[Detail | None]:
    # Models by mapper and task, tasks by attribute, latent dimensions.
    models = contents.rows("projection_models")
    columns = [named("Mapper", "mapper"), named("Task", "dataset"), MODEL, named("Constant", "same_class"), N]
    columns += [valued(_title(name), name) for name in PROJECTED]
    # The most tolerant models first, mapper by mapper and task by task; constant ones last, whose Tolerance is 1.
    places = models.groupby(["mapper", "dataset"], sort=False).ngroup()
    constant = models["constant"].astype(bool)
    rows = models.assign(place=places, same_class=constant.map({True: "yes", False: None}))
    rows = rows.sort_values(["place", "constant", "tolerance"], ascending=[True, True, False])
    summary = f"Projection on the latent dimensions of {', '.join(printable_all(models['mapper'].unique()))}"
    yield contents.table_details(summary, rows, "projection_models", "Projection", columns)

    attributes = contents.rows("projection_attributes")
    varying = attributes[~attributes["constant"].astype(bool)]
    by_attribute = varying.groupby(["mapper", "dataset", "attribute"], sort=False)
    means = by_attribute[list(BY_ATTRIBUTE)].mean().reset_index()
    columns = [named("Mapper", "mapper"), named("Task", "dataset"), named("Attribute", "attribute")]
    columns += [valued(_title(name), name) for name in BY_ATTRIBUTE]
    summary = "Each task by each attribute, mean over models"
    yield contents.table_details(summary, means, "projection_attributes", "Attributes", columns)

    effects = contents.rows("projection_effects")
    columns = [named(name.capitalize(), name) for name in ("mapper", "dimension", "trait")]
    columns += [valued(name.capitalize(), name) for name in ("shift", "strength", "tolerance")]
    rows = effects.sort_values("strength", ascending=False)
    summary = "What each latent dimension changes"
    text = [
        "Shift is the mean change from one side to the other, strength the mean absolute change: of a measured trait "
        "in standard deviations over images, of an attribute in probability."
    ]
    yield contents.table_details(summary, rows, "projection_effects", "Dimensions", columns, text=text)


def _title(name: str) -> str:
    return ABBREVIATIONS.get(name, name.replace("_", " ").capitalize())
