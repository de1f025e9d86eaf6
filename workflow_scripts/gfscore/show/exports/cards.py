"""Results of an audit for the Hugging Face Hub: model cards with the block `model-index`, and `.eval_results` files.

Sources: huggingface/hub-docs, modelcard.md and eval_results.yaml.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import yaml

from gfscore.audit.metrics import MAIN, highest_values
from gfscore.audit.metrics.declaration import Metric
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import printable, with_ties
from gfscore.core.numbers import interval, number, percent, setting, span, upper_bound
from gfscore.measures import NamedMeasure

MARKDOWN_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>|#~&"})
"""What Markdown and HTML would read as a command."""

OPEN_SAMPLES = (
    "Where samples are open, a single number counts them at their smallest value, whether that makes it better or "
    "worse; its interval allows for all their values."
)


def model_cards(
    summary: pd.DataFrame,
    measures: Mapping[str, NamedMeasure],
    *,
    audit: str,
    title: str,
    digest: str,
    classes: int,
    fp_lambda: float,
    hub_dataset: str | None = None,
    findings: Collection[str] = (),
) -> dict[str, str]:
    """Model cards of an audit: evaluation results as YAML, then the same numbers as a table.

    Of scores at T = 1 alone: a temperature chosen among these models says nothing about a model by itself.

    Parameters
    ----------
    summary : DataFrame
        Rows of model_summary.
    measures : mapping of str to NamedMeasure
    audit, title : str
        Name and title of the audit.
    digest : str
        Digest of the dataset.
    classes : int
        Number of its classes.
    fp_lambda : float
        Lambda of FP.
    hub_dataset : str, optional
        Its identifier on the Hub.
    findings : collection of str
        Sentences of the audit's findings.

    Returns
    -------
    dict of str to str
        Texts by "threat__model".
    """
    cards = {}
    for threat, model, by_measure in _rows_by_model(summary, measures):
        results = []
        for name, row in by_measure.iterrows():
            dataset = printable(row["dataset"])
            result = {
                "task": {"type": "image-classification", "name": "Image Classification"},
                "dataset": {
                    "name": dataset,
                    "type": hub_dataset or dataset,
                    "args": {"sha256": digest, "audit": printable(audit)},
                },
                "metrics": _card_metrics(measures[name], row, fp_lambda),
            }
            results.append(result)
        index = {"model-index": [{"name": printable(model), "results": results}]}
        block = yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=10_000)

        lines = [
            f"# {_markdown(model)}",
            "",
            f"Audit: {_markdown(title)}. The interval of the aggregate holds for it alone, the others for all classes "
            "of the model together. Attack-free scores are at T = 1.",
            "",
            *_card_table(by_measure, measures, classes, fp_lambda),
            "",
        ]
        if (by_measure["value_most"] > by_measure["value"]).any():
            lines += [OPEN_SAMPLES, ""]
        lines += [f"- {_markdown(name)}: {measures[name].description.explanation}" for name in by_measure.index]
        lines.append("")
        if findings:
            lines += ["What the audit found, of all its models:", ""]
            lines += [f"- {_markdown(sentence)}." for sentence in findings]
            lines.append("")
        page = "\n".join(lines)
        cards[f"{threat}__{model}"] = f"---\n{block}---\n\n{page}"
    return cards


def evaluation_results(
    summary: pd.DataFrame, measures: Mapping[str, NamedMeasure], *, hub_dataset: str, date: str, fp_lambda: float
) -> dict[str, str]:
    """Evaluation results that the Hub shows on a model's page, one entry for each number of its card.

    Parameters
    ----------
    summary : DataFrame
        Rows of model_summary.
    measures : mapping of str to NamedMeasure
    hub_dataset : str
        Identifier on the Hub of the benchmark dataset.
    date : str
        Time of the verdict, in ISO 8601.
    fp_lambda : float
        Lambda of FP.

    Returns
    -------
    dict of str to str
        YAML by "threat__model". `task_id` is the type of the number in the card; `notes` states its interval.
    """
    files = {}
    for threat, model, by_measure in _rows_by_model(summary, measures):
        entries = []
        for name, row in by_measure.iterrows():
            for metric in _card_metrics(measures[name], row, fp_lambda):
                entry = {
                    "dataset": {"id": hub_dataset, "task_id": metric["type"]},
                    "value": metric["value"],
                    "date": date,
                    "notes": _notes(metric),
                }
                entries.append(entry)
        files[f"{threat}__{model}"] = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)
    return files


def _rows_by_model(
    summary: pd.DataFrame, measures: Mapping[str, NamedMeasure]
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    # Threat, name, and rows at T = 1 of each model, by measure in the order of the audit.
    uncalibrated = summary[summary["calibration"] == UNCALIBRATED]
    for (threat, model), rows in uncalibrated.groupby(["threat", "model"], sort=False):
        yield threat, model, rows.set_index("measure").reindex(list(measures)).dropna(subset="model")


def _notes(metric: Mapping[str, Any]) -> str:
    arguments = metric["args"]
    parts = [metric["name"], arguments["direction"]]
    if "most" in arguments:
        parts.append(f"up to {upper_bound(arguments['most'])} with open samples at their largest value")
    if "open_samples" in arguments:
        parts.append(f"open samples {arguments['open_samples']}")
    if arguments.get("low") is not None and arguments.get("high") is not None:
        bounds = interval(arguments["low"], arguments["high"])
        parts.append(f"{percent(arguments['confidence'])} interval {bounds}")
    return "; ".join(parts)


def _card_metrics(named: NamedMeasure, row: pd.Series, fp_lambda: float) -> list[dict[str, Any]]:
    # Entries of `metrics` of a row of model_summary.
    entries = []
    for metric in MAIN:
        if np.isnan(row[metric.name]):
            continue
        kind = f"{named.name}-{metric.name}"
        # The one number that the hub has a name for.
        if named.kind.name == "clean" and metric.name == "value":
            kind = "accuracy"
        arguments: dict[str, Any] = {}
        if metric.bounded:
            low, high = _ends(metric, row)
            arguments["low"] = None if np.isnan(low) else float(low)
            arguments["high"] = None if np.isnan(high) else float(high)
            arguments["confidence"] = float(row["confidence"])
            arguments["interval"] = row["interval"]
        arguments["unit"] = "none" if metric.unitless else named.description.unit
        arguments["direction"] = f"{'higher' if metric.direction > 0 else 'lower'} is better"
        if named.description.undecided and f"{metric.name}_most" in row:
            arguments["most"] = float(row[f"{metric.name}_most"])
        elif row["value_most"] > row["value"]:
            arguments["open_samples"] = "at their smallest value"
        entry = {
            "type": kind,
            "name": f"{named.description.title} ({named.name}): {_meaning(metric, row, printable, fp_lambda)}",
            "value": float(row[metric.name]),
            "args": arguments,
        }
        entries.append(entry)
    return entries


def _card_table(
    rows: pd.DataFrame, measures: Mapping[str, NamedMeasure], classes: int, fp_lambda: float
) -> Sequence[str]:
    # The same numbers in Markdown.
    lines = ["| measure | number | value | interval |", "|---|---|---|---|"]
    for name, row in rows.iterrows():
        measure = measures[name].description
        highest = highest_values(measure.value_range, classes=classes)
        for metric in MAIN:
            bounds = "none"
            if metric.bounded:
                low, high = _ends(metric, row)
                bounds = f"{interval(low, high, highest[metric.name])} ({percent(row['confidence'])})"
            meaning = _meaning(metric, row, _markdown, fp_lambda)
            value = number(row[metric.name])
            if measure.undecided and f"{metric.name}_most" in row:
                value = span(row[metric.name], row[f"{metric.name}_most"], highest[metric.name])
            # Two measures may have one title.
            title = _markdown(f"{measure.title} ({name})")
            lines.append(f"| {title} | {meaning} | {value} | {bounds} |")
    return lines


def _meaning(metric: Metric, row: pd.Series, written: Callable[[object], str], fp_lambda: float) -> str:
    # With the name of the worst class, and its ties.
    if metric.name == "wcr":
        return f"{metric.meaning} ({written(with_ties(readable_classes(row['wcr_tied'])))})"
    if "lam" in metric.needs:
        return f"{metric.meaning}, lambda = {setting(fp_lambda)}"
    return metric.meaning


def _ends(metric: Metric, row: pd.Series) -> tuple[float, float]:
    # The aggregate has an interval that holds alone, besides the one that holds together with the others.
    if metric.name == "value":
        return row["value_alone_low"], row["value_alone_high"]
    return row[f"{metric.name}_low"], row[f"{metric.name}_high"]


def _markdown(text: object) -> str:
    return printable(text).translate(MARKDOWN_SPECIAL)
