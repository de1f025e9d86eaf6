"""Rows of the table group_metrics: fairness metrics between groups of all models and measures with predictions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.groups.fairness import (
    METRICS,
    group_counts,
    group_metrics,
    group_metrics_as_printed,
    group_rates,
    over_classes,
    wilson_metrics,
)
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.values import AuditValues
from gfscore.core.errors import InputError, unknown
from gfscore.tables.table import ALL

MACRO, WORST = "macro", "worst"
"""Values of class_name for the mean and the largest of a metric over the classes."""


def metric_rows(
    inputs: AuditValues,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    confidence: float,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of group_metrics of an audit: for each attribute the classes, then macro and worst.

    Takes AuditValues, a Grouping, K names and the entry `groups` of the audit, whose `positive` selects one class. Each
    interval is approximate and for its row alone.
    """
    shared: dict[str, Any] = {"settings": settings, "confidence": confidence}
    for model in inputs.included:
        for name, measure in inputs.subject.measures.items():
            if measure.kind.predicts:
                key = {**model.columns(), "measure": name}
                yield from rows_of_predictions(key, inputs.table(model, name), grouping, class_names, **shared)


def rows_of_predictions(
    key: Mapping[str, str],
    samples: pd.DataFrame,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    confidence: float,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of group_metrics of one model and measure, its `key`, from sample_id, label and prediction."""
    rows = samples.groupby(["sample_id", "label", "prediction"], sort=False).size().reset_index(name="copies")
    sample_id, sample = np.unique(rows["sample_id"].to_numpy(dtype=str), return_inverse=True)
    copies = rows["copies"].to_numpy(dtype=np.float64)
    rows = rows.assign(sample=sample, share=copies / np.bincount(sample, copies)[sample])
    part = grouping.balanced_part(sample_id)
    for attribute, groups in grouping.groups.items():
        group = grouping.of(attribute, sample_id)
        sizes = len(groups), len(class_names)
        whole = _counted(rows, group, group >= 0, *sizes)
        after = None if part is None else _counted(rows, group, part & (group >= 0), *sizes)
        of_attribute = {**key, "attribute": attribute, "confidence": confidence}
        for row in _rows(whole, after, class_names, settings, alpha=1 - confidence):
            yield of_attribute | row


def _counted(rows, group, chosen, groups, classes):
    # Number of the chosen samples, and their GroupCounts.
    inside = rows[chosen[rows["sample"]]]
    sample, labels, predictions = (inside[name].to_numpy(dtype=np.int64) for name in ("sample", "label", "prediction"))
    shares = inside["share"].to_numpy()
    counts = group_counts(group[sample], labels, predictions, groups=groups, classes=classes, shares=shares)
    return int(chosen.sum()), counts


def _rows(whole, after, class_names, settings, *, alpha):
    # `whole` and `after` (the balanced part, or None): the number of samples and their counts.
    n, counts = whole
    value, printed = _both_forms(counts)
    wilson, cells = wilson_metrics(counts, alpha=alpha), _smallest_cells(counts)
    balanced, balanced_printed = _both_forms(after[1]) if after else ({}, {})
    for place, (index, name) in _places(class_names, settings["positive"]):
        for metric in METRICS:
            low, high = (ends[place] for ends in wilson[metric])
            row = {"class_index": index, "class_name": name, "metric": metric, "n": n}
            row |= {"value": value[metric][place], "as_printed": printed[metric][place]}
            row |= {"wilson_low": low, "wilson_high": high, "smallest_cell": int(cells[metric][place])}
            row |= {"small": row["smallest_cell"] < settings["minimum_cell"]}
            if after:
                row |= {"balanced_n": after[0], "balanced_value": balanced[metric][place]}
                row |= {"balanced_as_printed": balanced_printed[metric][place]}
            yield row


def _places(class_names, positive):
    places = list(enumerate([*enumerate(class_names), (ALL, MACRO), (ALL, WORST)]))
    if positive is None:
        return places
    if positive not in class_names:
        raise InputError(f"groups: positive: {unknown('class', positive, class_names)}")
    return [places[class_names.index(positive)]]


def _both_forms(counts):
    rates = group_rates(counts)
    forms = group_metrics(rates), group_metrics_as_printed(rates)
    return tuple({name: np.append(form[name], over_classes(form[name])) for name in METRICS} for form in forms)


def _smallest_cells(counts):
    positive, either = counts.smallest_cell
    whole = np.broadcast_to(counts.total.min(), positive.shape)
    cells = {"dp": whole, "eopp": positive, "eodd": either, "aodd": either}
    return {name: np.append(found, [found.min()] * 2) for name, found in cells.items()}
