"""The sections on models, on classes, and on how sure their numbers are."""

from collections.abc import Iterator, Sequence

import pandas as pd

from gfscore.audit.metrics import MAIN, METRICS, highest_values
from gfscore.audit.verdicts.gate_rules import INCONCLUSIVE
from gfscore.audit.verdicts.verdict import ModelVerdict
from gfscore.core import numbers
from gfscore.core.labels import readable_class, readable_classes
from gfscore.core.names import NOT_SETTLED, model_labels, with_ties
from gfscore.core.numbers import p_value
from gfscore.show.page.elements import (
    AS_FAILURES,
    CLASS,
    INTERVAL,
    MODEL,
    VALUE,
    Column,
    Detail,
    N,
    TableView,
    bounded,
    counted,
    named,
    table_of,
    valued,
)
from gfscore.show.page.ranking import UNDECIDED
from gfscore.show.page.sections.contents import Contents

MOST_MODELS = 200
"""Largest number of rows of a table that has one for each model."""

MOST_CLASS_ROWS = 100


# ---- models ----


def of_models(contents: Contents) -> Iterator[Detail | None]:
    """Details on which model is best: every number, what each model is, places by every metric."""
    tables = []
    for measure in dict.fromkeys([contents.measure, *contents.measures]):
        table = _numbers(contents, measure)
        if table is not None:
            tables.append(table)
    yield Detail("Every number of every model, by measure", tables=tables)

    model_summary = contents.rows("model_summary")
    rows = model_summary.drop_duplicates(["threat", "model"])
    trainings = {}
    for model in contents.models:
        words = [word for word in (model.method, model.architecture) if word]
        trainings[model.threat, model.model] = ", ".join(words)
    keys = zip(rows["threat"], rows["model"], strict=True)
    # Models without a stated threat model stand under "none".
    rows = rows.assign(about=[trainings.get(key) or None for key in keys], threat=rows["threat"].replace("none", None))
    columns = [
        MODEL,
        named("Threat model", "threat"),
        named("Method, architecture", "about"),
        valued("Clean accuracy", "accuracy"),
        valued("Published clean accuracy", "published_clean_accuracy"),
        valued("Published robust accuracy", "published_robust_accuracy"),
    ]
    caption = ""
    if rows["published_clean_accuracy"].notna().any() and contents.published_samples is None:
        caption = (
            "The published accuracies were compared with nothing: the dataset's entry says published_accuracy: null."
        )
    summary = "What each model is"
    yield contents.table_details(summary, rows, "model_summary", "Models", columns, caption=caption, most=MOST_MODELS)

    ranks = contents.rows_of_measure("metric_ranks")
    places = ranks.pivot_table(index="label", columns="metric", values="place", sort=False).reset_index()
    columns = [MODEL]
    for name in places.columns:
        if name in METRICS:
            columns.append(valued(METRICS[name].title, name))
    summary = f"Place of each model by every metric of {contents.measure}"
    yield contents.table_details(summary, places, "metric_ranks", "Places", columns, as_failures=True)


def _numbers(contents: Contents, measure: str) -> TableView | None:
    # Of every model by one measure.
    summary = contents.rows("model_summary")
    rows = summary[summary["measure"] == measure].sort_values(["value", "label"], ascending=[False, True])
    if rows.empty:
        return None
    rows = rows.assign(suspects=rows["worst_class_set"].map(len), worst_class=rows["wcr_tied"].map(_tied_classes))
    value_range = contents.measures[measure].description.value_range
    scores = contents.rows("class_scores")
    highest = highest_values(value_range, classes=scores["class_index"].nunique())

    columns = [
        MODEL,
        valued("Mean", "value"),
        bounded("Interval", "value_alone_low", "value_alone_high", highest["value"]),
    ]
    for metric in MAIN:
        # Bounds without their number would read as those of the number before.
        if metric.name == "value" or rows[metric.name].isna().all():
            continue
        columns.append(valued(metric.title, metric.name))
        if metric.bounded:
            columns.append(bounded("Interval", f"{metric.name}_low", f"{metric.name}_high", highest[metric.name]))
    columns += [
        named("Worst class", "worst_class"),
        counted("May be worst", "suspects"),
        valued("Clean accuracy", "accuracy"),
        valued("Robust accuracy", "robust_accuracy"),
        named("its source", "robust_accuracy_source"),
    ]
    confidence = numbers.percent(rows["confidence"].iloc[0])
    caption = f"Intervals ({confidence}) hold for all classes of a model together, that of the mean for it alone."
    if contents.tables.undecided(measure):
        caption += f" {AS_FAILURES}"
    return table_of(rows, f"Models by {measure}", "model_summary", columns, caption=caption, most=MOST_MODELS)


def _tied_classes(names: Sequence[str]) -> str:
    return with_ties(readable_classes(names))


# ---- classes ----


def of_classes(contents: Contents) -> Iterator[Detail | None]:
    """Details on which class is weak: values, ranks, errors, targets."""
    scores = contents.rows_of_measure("class_scores")
    measure = contents.measures[contents.measure].description
    columns = [CLASS, MODEL, N, VALUE]
    if measure.undecided or contents.tables.undecided(contents.measure):
        columns.append(valued("At most", "value_most"))
    columns += [bounded("Interval", "low", "high", measure.value_range[1]), valued("Clean accuracy", "accuracy")]
    summary = f"Every class of every model by {contents.measure}, lowest first"
    rows = scores.sort_values(["value", "label"], na_position="first")
    yield contents.table_details(summary, rows, "class_scores", "Classes", columns, most=MOST_CLASS_ROWS)

    ranks = contents.rows_of_measure("vulnerability")
    columns = [
        CLASS,
        valued("Mean rank", "mean_rank"),
        counted("Times weakest", "times_worst"),
        counted("Times strongest", "times_best"),
    ]
    summary = "Classes by their mean rank over models, the most vulnerable first"
    rows = ranks.sort_values(["mean_rank", "class_index"])
    yield contents.table_details(summary, rows, "vulnerability", "Classes by vulnerability", columns, as_failures=True)
    yield _errors(contents)

    targets = contents.rows("target_success")
    columns = [
        CLASS,
        MODEL,
        N,
        valued("Turned into it", "success"),
        valued("without an attack", "clean"),
        valued("CFPS", "cfps"),
    ]
    rows = targets.sort_values("success", ascending=False)
    yield contents.table_details("Into which class attacks turn samples", rows, "target_success", "Targets", columns)


def _errors(contents: Contents) -> Detail | None:
    errors = contents.rows("class_errors")
    measure = contents.measure
    if len(errors) and not (errors["measure"] == measure).any():
        measure = errors["measure"].iloc[0]
    undisturbed = errors[(errors["measure"] == measure) & errors["corruption"].isna()]
    shares = ["recall", "precision", "f1", "cfps", "cfps_relative"]
    means = undisturbed.groupby("class", sort=False)[shares].mean().reset_index().sort_values("recall")

    columns = [
        CLASS,
        valued("Recall", "recall"),
        valued("Precision", "precision"),
        valued("F1", "f1"),
        valued("Share of all errors (CFPS)", "cfps"),
        valued("CFPS times K", "cfps_relative"),
    ]
    summary = f"Errors by class under {measure}: recall, precision, and where wrong predictions fall"
    caption = "Means over models, lowest recall first."
    return contents.table_details(summary, means, "class_errors", "Errors by class", columns, caption=caption)


# ---- certainty ----


def of_certainty(contents: Contents) -> Iterator[Detail | None]:
    """Details on how sure the numbers are: noise floor, undecided models, pairs, decisions of the gate."""
    yield _noise_floor(contents)

    rows = []
    of_groups = any(rule.attribute for rule in contents.verdict.rules)
    for rule in contents.verdict.rules:
        for judged in rule.models:
            row = {"dataset": "", "highest": rule.range[1], "rule": rule.words}
            rows.append({**judged.model_dump(), **row})
    verdicts = pd.DataFrame(rows, columns=[*ModelVerdict.model_fields, "dataset", "highest", "rule"])
    verdicts["label"] = model_labels(verdicts)
    verdicts["worst_class"] = verdicts["worst_class"].map(readable_class, na_action="ignore")
    verdicts.loc[verdicts["worst_class"].isna() & verdicts["value"].notna(), "worst_class"] = NOT_SETTLED
    value = Column("Value", numbers.span, ("value", "value_most", "highest"))
    bounds = Column("Interval", numbers.interval, ("low", "high", "highest"))

    undecided = verdicts[verdicts["verdict"] == INCONCLUSIVE]
    columns = [
        MODEL,
        value,
        bounds,
        counted("Samples per class that would settle it", "samples_needed_per_class"),
        counted("Further samples in all", "further_samples_needed"),
        named("Rule", "rule"),
    ]
    summary = "What more samples would show: undecided models and the samples that would settle them"
    yield contents.table_details(summary, undecided, "verdict", "Undecided models", columns)

    yield _pairs(contents)

    columns = [
        MODEL,
        named("Verdict", "verdict"),
        value,
        bounds,
        named("Worst class or group" if of_groups else "Worst class", "worst_class"),
        named("Rule", "rule"),
    ]
    summary = "What the gate decided of each model"
    note = [contents.verdict.note]
    yield contents.table_details(summary, verdicts, "verdict", "Verdicts", columns, text=note, most=MOST_MODELS)


def _noise_floor(contents: Contents) -> Detail | None:
    summary = contents.rows_of_measure("model_summary")
    # Intervals so wide that no RDI which the measure can have is sure to show.
    value_range = contents.measures[contents.measure].description.value_range
    largest = METRICS["rdi"].value_range(*value_range, classes=2, lam=0)[1]
    summary = summary.assign(rdi_detectable=summary["rdi_detectable"].where(summary["rdi_detectable"] < largest))
    columns = [
        MODEL,
        valued("RDI", "rdi"),
        valued("RDI by chance", "rdi_permuted"),
        valued("p", "rdi_p", p_value),
        valued("NRGC", "nrgc"),
        valued("by chance", "nrgc_permuted"),
        valued("p", "nrgc_p", p_value),
        valued("Spread of true values", "between_class_sd"),
        valued("Smallest RDI surely seen", "rdi_detectable"),
    ]
    caption = (
        "Chance: mean when samples are dealt to classes at random. p: share of such deals with at least this "
        "disparity. Surely seen: none (n/a) where intervals are too wide for any RDI."
    )
    return contents.table_details(
        "The noise floor: how much disparity chance alone would show",
        summary.sort_values("label"),
        "model_summary",
        "Noise floor",
        columns,
        caption=caption,
        as_failures=True,
        most=MOST_MODELS,
    )


def _pairs(contents: Contents) -> Detail | None:
    pairs = contents.rows_of_measure("model_comparisons")
    models = contents.tables.model_summary
    models = models.assign(label=model_labels(models)).set_index(["threat", "model"])["label"].to_dict()
    for side in ("first", "second"):
        keys = zip(pairs[f"{side}_threat"], pairs[f"{side}_model"], strict=True)
        pairs[side] = [models[key] for key in keys]
    columns = [
        named("Model", "first"),
        named("against", "second"),
        valued("Difference", "difference"),
        INTERVAL,
        valued("p (Holm)", "p_holm", p_value),
        counted("Surely better on", "sure_wins_first"),
        counted("surely worse on", "sure_wins_second"),
    ]
    summary = f"Every pair of models by {contents.measure}, the surest difference first"
    return contents.table_details(
        summary,
        pairs.sort_values("p_holm"),
        "model_comparisons",
        "Pairs of models",
        columns,
        caption=UNDECIDED if contents.tables.undecided(contents.measure) else "",
    )
