"""The sections on models, on classes, and on how sure their numbers are."""

from collections.abc import Iterator

import pandas as pd

from gfscore.audit.metrics import MAIN, METRICS, highest_values
from gfscore.core import numbers
from gfscore.core.numbers import p_value
from gfscore.measures import measure_of
from gfscore.show.page.elements import (
    CLASS,
    INTERVAL,
    MODEL,
    VALUE,
    Detail,
    N,
    bounded,
    counted,
    named,
    table_of,
    valued,
)
from gfscore.show.page.sections.contents import Contents


def of_models(c: Contents) -> Iterator[Detail | None]:
    """Details on which model is best."""
    tables = [view for measure in dict.fromkeys([c.measure, *c.measures]) if (view := _ranking(c, measure)) is not None]
    yield Detail("Every number of every model, by measure", more=tables)
    yield _models(c)
    ranks = c.own("metric_ranks")
    if ranks is not None:
        wide = ranks.pivot_table(index="label", columns="metric", values="place", sort=False).reset_index()
        columns = [MODEL, *(valued(METRICS[m].title, m) for m in wide.columns if m in METRICS)]
        yield c.listed(f"Place of each model by every metric of {c.measure}", wide, "metric_ranks", "Places", columns)


def _ranking(c, measure):
    summary = c.of("model_summary")
    rows = summary[summary["measure"] == measure].sort_values(["value", "label"], ascending=[False, True])
    if rows.empty:
        return None
    rows = rows.assign(suspects=rows["worst_class_set"].map(len))
    highest = highest_values(measure_of(c.measures[measure]).value_range, classes=rows["suspects"].max())
    columns = [
        MODEL,
        valued("Mean", "value"),
        bounded("Interval", "value_alone_low", "value_alone_high", highest["value"]),
    ]
    for metric in MAIN:
        if metric.name != "value":
            columns.append(valued(metric.title, metric.name))
            if metric.bounded:
                columns.append(bounded("Interval", f"{metric.name}_low", f"{metric.name}_high", highest[metric.name]))
    columns += [named("Worst class", "wcr_class"), counted("May be worst", "suspects")]
    columns += [valued("Clean accuracy", "accuracy"), valued("Robust accuracy", "robust_accuracy")]
    columns += [named("its source", "robust_accuracy_source")]
    confidence = numbers.percent(rows["confidence"].iloc[0])
    caption = f"Intervals ({confidence}) hold for all classes of a model together, that of the mean for it alone."
    return table_of(rows, f"Models by {measure}", "model_summary", columns, caption=caption, most=200)


def _models(c):
    summary = c.of("model_summary").drop_duplicates(["threat", "model"])
    known = {(entry["threat"], entry["model"]): entry for entry in c.models}
    rows = summary.assign(
        about=[_described(known.get(key, {})) for key in zip(summary["threat"], summary["model"], strict=True)]
    )
    columns = [
        MODEL,
        named("Threat model", "threat"),
        named("Method, architecture", "about"),
        valued("Clean accuracy", "accuracy"),
        valued("Published clean accuracy", "published_clean_accuracy"),
        valued("Published robust accuracy", "published_robust_accuracy"),
    ]
    caption = ""
    if summary["published_clean_accuracy"].notna().any() and c.published_samples is None:
        caption = (
            "The published accuracies were compared with nothing: the dataset's entry says published_accuracy: null."
        )
    return c.listed("What each model is", rows, "model_summary", "Models", columns, caption=caption, most=200)


def _described(entry):
    training = entry.get("training") or {}
    parts = [entry.get(key) or training.get(key) for key in ("method", "architecture")]
    return ", ".join(str(part) for part in parts if part) or str(entry.get("source") or "")


# ---- classes ----


def of_classes(c: Contents) -> Iterator[Detail | None]:
    """Details on which class is weak."""
    rows = c.own("class_scores").sort_values(["value", "label"], na_position="first")
    columns = [
        CLASS,
        MODEL,
        N,
        VALUE,
        bounded("Interval", "low", "high", measure_of(c.measures[c.measure]).value_range[1]),
        valued("Clean accuracy", "accuracy"),
    ]
    summary = f"Every class of every model by {c.measure}, lowest first"
    yield c.listed(summary, rows, "class_scores", "Classes", columns, most=100)

    rows = c.own("vulnerability").sort_values(["mean_rank", "class_index"])
    columns = [
        CLASS,
        valued("Mean rank", "mean_rank"),
        counted("Times weakest", "times_worst"),
        counted("Times strongest", "times_best"),
    ]
    summary = "Classes by their mean rank over models, the most vulnerable first"
    yield c.listed(summary, rows, "vulnerability", "Classes by vulnerability", columns)
    yield _errors(c)

    targets = c.of("target_success")
    rows = None if targets is None else targets.sort_values("success", ascending=False)
    columns = [CLASS, MODEL, N, valued("Turned into it", "success")]
    columns += [valued("without an attack", "clean"), valued("CFPS", "cfps")]
    yield c.listed("Into which class attacks turn samples", rows, "target_success", "Targets", columns)


def _errors(c):
    errors = c.of("class_errors")
    if errors is None:
        return None
    measure = c.measure if (errors["measure"] == c.measure).any() else errors["measure"].iloc[0]
    own = errors[(errors["measure"] == measure) & errors["corruption"].isna()]
    shares = ["recall", "precision", "f1", "cfps", "cfps_relative"]
    means = own.groupby("class", sort=False)[shares].mean().reset_index().sort_values("recall")
    columns = [CLASS, valued("Recall", "recall"), valued("Precision", "precision"), valued("F1", "f1")]
    columns += [valued("Share of all errors (CFPS)", "cfps"), valued("CFPS times K", "cfps_relative")]
    summary = f"Errors by class under {measure}: recall, precision, and where wrong predictions fall"
    caption = "Means over models, lowest recall first."
    return c.listed(summary, means, "class_errors", "Errors by class", columns, caption=caption)


# ---- certainty ----


def of_certainty(c: Contents) -> Iterator[Detail | None]:
    """Details on how sure the numbers are."""
    yield _noise_floor(c)
    models = []
    for rule in c.verdict.rules:
        for model in rule.models:
            models.append({**model.model_dump(), "label": model.model, "rule": rule.words})
    judged = pd.DataFrame(models)
    undecided = judged[judged["verdict"] == "INCONCLUSIVE"] if len(judged) else judged
    columns = [
        named("Model", "model"),
        VALUE,
        INTERVAL,
        counted("Samples per class that would settle it", "samples_needed_per_class"),
        counted("Further samples in all", "further_samples_needed"),
        named("Rule", "rule"),
    ]
    summary = "What more samples would show: undecided models and the samples that would settle them"
    yield c.listed(summary, undecided if len(undecided) else None, "verdict", "Undecided models", columns)
    yield _pairs(c)
    columns = [MODEL, named("Verdict", "verdict"), VALUE]
    columns += [INTERVAL, named("Worst class", "worst_class"), named("Rule", "rule")]
    how = {"text": [c.verdict.note], "most": 200}
    decided = judged if len(judged) else None
    yield c.listed("What the gate decided of each model", decided, "verdict", "Verdicts", columns, **how)


def _noise_floor(c):
    rows = c.own("model_summary").sort_values("label")
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
        "Chance: mean when samples are dealt to classes at random. p: share of such deals with at least this disparity."
    )
    summary = "The noise floor: how much disparity chance alone would show"
    return c.listed(summary, rows, "model_summary", "Noise floor", columns, caption=caption, most=200)


def _pairs(c):
    pairs = c.own("model_comparisons")
    columns = [
        named("Model", "first_model"),
        named("against", "second_model"),
        valued("Difference", "difference"),
        INTERVAL,
        valued("p (Holm)", "p_holm", p_value),
        counted("Surely better on", "sure_wins_first"),
        counted("surely worse on", "sure_wins_second"),
    ]
    rows = None if pairs is None else pairs.sort_values("p_holm")
    summary = f"Every pair of models by {c.measure}, the surest difference first"
    return c.listed(summary, rows, "model_comparisons", "Pairs of models", columns)
