"""Details of the section on models: every number, what each model is, places by every metric."""

from collections.abc import Iterator

from gfscore.audit.metrics import MAIN, METRICS, highest_values
from gfscore.core import numbers
from gfscore.measures import measure_of
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.tables import MODEL, Detail, bounded, counted, named, table_of, valued


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
