"""Rows of the table group_metrics: fairness metrics between groups of all models and measures with predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.groups.fairness import (
    METRICS,
    GroupRows,
    group_metrics,
    group_metrics_as_printed,
    group_rates,
    over_classes,
)
from gfscore.audit.groups.intervals import wilson_metrics
from gfscore.core.errors import InputError, unknown
from gfscore.measures import KINDS

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.groups.grouping import Grouping
    from gfscore.audit.inputs import AuditInputs

MACRO, WORST = "macro", "worst"
"""Values of class_name for the mean and the largest of a metric over the classes."""


def metric_rows(
    inputs: AuditInputs,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    confidence: float,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of group_metrics of an audit: for each attribute the classes, then macro and worst.

    Takes AuditInputs, a Grouping, K names and the entry `groups` of the audit, whose `positive` selects one class. Each
    interval is approximate and for its row alone.
    """
    shared: dict[str, Any] = {"settings": settings, "confidence": confidence}
    for model, own in inputs.by_model():
        for measure, settings_of_measure in inputs.measures.items():
            if KINDS[settings_of_measure["kind"]].predicts:
                key = {**model, "measure": measure}
                yield from rows_of_predictions(key, own[measure], grouping, class_names, **shared)


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
    predicted = _Predicted.of(samples)
    part = grouping.balanced_part(predicted.sample_id)
    for attribute, groups in grouping.groups.items():
        group = grouping.of(attribute, predicted.sample_id)
        sizes = {"groups": len(groups), "classes": len(class_names)}
        rows = predicted.by(group, group >= 0, **sizes)
        after = None if part is None else predicted.by(group, part & (group >= 0), **sizes)
        of_attribute = {**key, "attribute": attribute, "confidence": confidence}
        for row in _rows(rows, after, class_names, settings, alpha=1 - confidence):
            yield of_attribute | row


@dataclass(frozen=True)
class _Predicted:
    # Samples, and rows as in GroupRows with the shares of their predictions.
    sample_id: NDArray[np.str_]
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    sample: NDArray[np.int64]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, samples: pd.DataFrame) -> _Predicted:
        counted = samples.groupby(["sample_id", "label", "prediction"], sort=False).size().reset_index(name="copies")
        sample_id, sample = np.unique(counted["sample_id"].to_numpy(dtype=str), return_inverse=True)
        copies = counted["copies"].to_numpy(dtype=np.float64)
        labels, predictions = (counted[name].to_numpy(dtype=np.int64) for name in ("label", "prediction"))
        return cls(sample_id, labels, predictions, sample, copies / np.bincount(sample, copies)[sample])

    def by(self, group: NDArray[np.int64], chosen: NDArray[np.bool_], *, groups: int, classes: int) -> GroupRows:
        inside = chosen[self.sample]
        return GroupRows(
            group[self.sample][inside],
            self.labels[inside],
            self.predictions[inside],
            self.shares[inside],
            groups,
            classes,
            samples=int(chosen.sum()),
        )


def _rows(rows, after, class_names, settings, *, alpha):
    counts = rows.counts()
    value, printed = _both_forms(counts)
    wilson, cells = wilson_metrics(counts, alpha=alpha), _smallest_cells(counts)
    balanced, balanced_printed = _both_forms(after.counts()) if after else ({}, {})
    for place, (index, name) in _places(class_names, settings["positive"]):
        for metric in METRICS:
            row = {"class_index": index, "class_name": name, "metric": metric, "n": rows.samples}
            row |= {"value": value[metric][place], "as_printed": printed[metric][place]}
            row |= dict(zip(("wilson_low", "wilson_high"), (ends[place] for ends in wilson[metric]), strict=True))
            row |= {"smallest_cell": int(cells[metric][place])}
            row |= {"small": row["smallest_cell"] < settings["minimum_cell"]}
            if after:
                row |= {"balanced_n": after.samples, "balanced_value": balanced[metric][place]}
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
