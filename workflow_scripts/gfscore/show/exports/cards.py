"""Evaluation results of each model as the block `model-index` of a Hugging Face model card."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import yaml

from gfscore.audit.metrics import MAIN, highest_values
from gfscore.audit.metrics.declaration import Metric
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import printable
from gfscore.core.numbers import interval, number, percent
from gfscore.measures import measure_of


def model_cards(
    summary: pd.DataFrame,
    measures: Mapping[str, Mapping[str, Any]],
    *,
    audit: str,
    title: str,
    digest: str,
    classes: int,
    findings: Sequence[str] = (),
) -> dict[str, str]:
    """Model cards of an audit, a mapping from "threat__model" to a str: YAML block, then the same numbers as a table.

    Takes model_summary rows, the settings of each measure, name and `title` of the audit, the digest of the data set,
    its number of `classes`, and the sentences of the audit's findings. Scores at T = 1 alone: a temperature chosen
    among these models says nothing about a model by itself.
    """
    plain = summary[summary["calibration"] == UNCALIBRATED]
    cards = {}
    for (threat, model), rows in plain.groupby(["threat", "model"], sort=False):
        by_measure = rows.set_index("measure").reindex(list(measures)).dropna(subset="model")
        index = {"model-index": [_entry(model, by_measure, measures, audit=audit, digest=digest)]}
        block = yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=10_000)
        page = _page(model, by_measure, measures, title=title, classes=classes, findings=findings)
        cards[f"{threat}__{model}"] = f"---\n{block}---\n\n{page}"
    return cards


def _entry(model, rows, measures, *, audit, digest):
    return {
        "name": printable(model),
        "results": [
            {
                "task": {"type": "image-classification", "name": "Image Classification"},
                "dataset": {
                    "name": printable(row["dataset"]),
                    "type": printable(row["dataset"]),
                    "args": {"sha256": digest, "audit": printable(audit)},
                },
                "metrics": _metrics(name, row, measures[name]),
            }
            for name, row in rows.iterrows()
        ],
    }


def _metrics(measure, row, settings):
    kind, meaning = settings["kind"], measure_of(settings)
    return [
        {
            # The one number that the hub has a name for.
            "type": "accuracy" if (kind, metric.name) == ("clean", "value") else f"{measure}-{metric.name}",
            "name": f"{meaning.title}: {metric.meaning}{_worst(metric, row, printable)}",
            "value": float(row[metric.name]),
            "args": {
                **_interval(metric, row),
                "unit": "none" if metric.unitless else meaning.unit,
                "direction": f"{'higher' if metric.direction > 0 else 'lower'} is better",
            },
        }
        for metric in MAIN
        if not np.isnan(row[metric.name])
    ]


def _worst(metric: Metric, row: Mapping[str, Any], written: Callable[[object], str]) -> str:
    return f" ({written(row['wcr_class'])})" if metric.name == "wcr" else ""


def _interval(metric: Metric, row: Mapping[str, Any]) -> dict[str, Any]:
    if not metric.bounded:
        return {}
    low, high = _ends(metric, row)
    confidence = float(row["confidence"])
    return {"low": _or_none(low), "high": _or_none(high), "confidence": confidence, "interval": row["interval"]}


def _ends(metric: Metric, row: Mapping[str, Any]) -> tuple[float, float]:
    # The aggregate has an interval of its own, beside the one that holds together with the others.
    own = "value_alone" if metric.name == "value" else metric.name
    return row[f"{own}_low"], row[f"{own}_high"]


def _page(model, rows, measures, *, title, classes, findings):
    lines = [
        f"# {_plain(model)}",
        "",
        f"Audit: {_plain(title)}. The interval of the aggregate holds for it alone, the others for all classes "
        "of the model together.",
        "",
    ]
    lines += ["| measure | number | value | interval |", "|---|---|---|---|"]
    for name, row in rows.iterrows():
        meaning = measure_of(measures[name])
        highest = highest_values(meaning.value_range, classes=classes)
        for metric in MAIN:
            bounds = "none"
            if metric.bounded:
                bounds = f"{interval(*_ends(metric, row), highest[metric.name])} ({percent(row['confidence'])})"
            number_of = f"{metric.meaning}{_worst(metric, row, _plain)}"
            lines.append(f"| {_plain(meaning.title)} | {number_of} | {number(row[metric.name])} | {bounds} |")
    lines += ["", *(f"- {measure_of(measures[name]).explanation}" for name in rows.index), ""]
    if findings:
        lines += ["What the audit found, of all its models:", "", *(f"- {_plain(words)}." for words in findings), ""]
    return "\n".join(lines)


def _plain(text):
    # Markdown and HTML would read these.
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#~&" else c for c in printable(text))


def _or_none(value):
    return None if np.isnan(value) else float(value)
