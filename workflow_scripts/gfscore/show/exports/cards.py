"""Evaluation results of each model as the block `model-index` of a Hugging Face model card."""

import json

import numpy as np

from gfscore.audit.metric_names import BETTER, UNCALIBRATED
from gfscore.audit.verdicts.gate_rules import highest_values
from gfscore.core.names import printable
from gfscore.core.numbers import interval, number, percent
from gfscore.measures import measure_of

METRICS = {
    "value": "mean over all samples",
    "class_mean": "mean over classes",
    "wcr": "worst class",
    "rdi": "RDI, best minus worst class",
    "nrgc": "NRGC, inequality between classes",
    "fp": "FP, class mean minus weighted RDI",
}


def model_cards(summary, measures, *, audit, title, digest, classes):
    """Model cards of an audit, a mapping from "threat__model" to a str: YAML block, then the same numbers as a table.

    Takes model_summary rows, the settings of each measure, name and `title` of the audit, the digest of the data set
    and its number of `classes`. Scores at T = 1 alone: a temperature chosen among these models says nothing about a
    model by itself.
    """
    plain = summary[summary["calibration"] == UNCALIBRATED]
    cards = {}
    for (threat, model), rows in plain.groupby(["threat", "model"], sort=False):
        by_measure = rows.set_index("measure").reindex(list(measures)).dropna(subset="model")
        index = {"model-index": [_entry(model, by_measure, measures, audit=audit, digest=digest)]}
        block = "\n".join(_yaml(index))
        cards[f"{threat}__{model}"] = f"---\n{block}\n---\n\n{_page(model, by_measure, measures, title, classes)}"
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
    kind, meaning, found = settings["kind"], measure_of(settings), []
    for column, words in METRICS.items():
        value = row[column]
        if np.isnan(value):
            continue
        worst = f" ({printable(row['wcr_class'])})" if column == "wcr" else ""
        found.append(
            {
                # The one number that the hub has a name for.
                "type": "accuracy" if (kind, column) == ("clean", "value") else f"{measure}-{column}",
                "name": f"{meaning.title}: {words}{worst}",
                "value": float(value),
                "args": {
                    "low": _or_none(row[f"{_own(column)}_low"]),
                    "high": _or_none(row[f"{_own(column)}_high"]),
                    "confidence": float(row["confidence"]),
                    "interval": row["interval"],
                    "unit": "none" if column == "nrgc" else meaning.unit,
                    "direction": "higher is better" if BETTER[column] > 0 else "lower is better",
                },
            }
        )
    return found


def _own(column):
    # The aggregate has an interval of its own, beside the one that holds together with the others.
    return "value_alone" if column == "value" else column


def _page(model, rows, measures, title, classes):
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
        for column, words in METRICS.items():
            bounds = interval(row[f"{_own(column)}_low"], row[f"{_own(column)}_high"], highest[column])
            worst = f" ({_plain(row['wcr_class'])})" if column == "wcr" else ""
            lines.append(
                f"| {_plain(meaning.title)} | {words}{worst} | {number(row[column])} "
                f"| {bounds} ({percent(row['confidence'])}) |"
            )
    return "\n".join([*lines, "", *(f"- {measure_of(measures[name]).explanation}" for name in rows.index), ""])


def _plain(text):
    # Markdown and HTML would read these.
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#~&" else c for c in printable(text))


def _or_none(value):
    return None if np.isnan(value) else float(value)


def _yaml(data, indent=0):
    # Block style with scalars as JSON, which every YAML reader takes as they are, since names hold no control signs.
    space = "  " * indent
    if not data:
        yield f"{space}{json.dumps(data)}"
    elif isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, dict | list) and value:
                yield f"{space}{key}:"
                yield from _yaml(value, indent + 1)
            else:
                yield f"{space}{key}: {json.dumps(value, ensure_ascii=False)}"
    else:
        for item in data:
            first, *rest = _yaml(item, indent + 1)
            yield f"{space}- {first.strip()}"
            yield from rest
