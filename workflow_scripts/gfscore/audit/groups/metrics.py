"""Fairness metrics between groups of all models and measures with predictions: table `group_metrics`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.groups.fairness import (
    METRICS,
    GroupCounts,
    group_counts,
    group_metrics,
    group_metrics_as_printed,
    group_rates,
    over_classes,
    wilson_metrics,
)
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.settings import GroupSettings
from gfscore.audit.values import AuditValues
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.identity import ALL
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import MODEL, Column, Table

MACRO = "macro"
"""Value of class_name for the mean of a metric over the classes."""

WORST = "worst"
"""Value of class_name for the largest of a metric over the classes."""

GROUP_METRICS = Table(
    name="group_metrics",
    version=1,
    columns=(
        *MODEL,
        Column("measure", pa.string(), "key of config.yaml's measures, a score at T = 1"),
        Column("attribute", pa.string(), "attribute that defines the groups"),
        Column("class_index", pa.int32(), "positive class, 0..K-1; -1 for macro and worst"),
        Column(
            "class_name", pa.string(), "its name; macro for the mean, worst for the largest over classes with a value"
        ),
        Column("metric", pa.string(), "dp, eopp, eodd or aodd"),
        Column("n", pa.int64(), "samples with a group"),
        Column(
            "value", pa.float64(), "difference between groups, 0 if all are treated equally; null if a cell is empty"
        ),
        Column(
            "as_printed",
            pa.float64(),
            "formula of the projection paper; for EOdd and AOdd the maximum and mean of rates, not a difference",
        ),
        Column("wilson_low", pa.float64(), "lower end from Wilson intervals of the cells, approximate"),
        Column("wilson_high", pa.float64(), "upper end from Wilson intervals of the cells, approximate"),
        Column("confidence", pa.float64(), "nominal confidence of the interval of each row alone"),
        Column("smallest_cell", pa.int64(), "smallest number of samples among the denominators of its rates"),
        Column("small", pa.bool_(), "fewer samples than the audit's minimum_cell"),
        Column("balanced_n", pa.int64(), "samples of the balanced subsample with a group; null without one"),
        Column("balanced_value", pa.float64(), "value on the balanced subsample"),
        Column("balanced_as_printed", pa.float64(), "as_printed on the balanced subsample"),
    ),
)


def group_metric_table(
    audit_values: AuditValues,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: GroupSettings,
    confidence: float,
) -> pd.DataFrame:
    """Table `group_metrics` of an audit: for each attribute the classes, then macro and worst; or the positive class.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    grouping : Grouping
        Groups that are compared.
    class_names : sequence of str
        Names of the K classes.
    settings : GroupSettings
        `positive` class, None for every class against the rest, and `minimum_cell`, the number of samples below which
        a cell is small.
    confidence : float
        Nominal confidence of each interval, which is approximate and for its row alone.
    """
    frames = []
    for model in audit_values.included:
        for name, measure in audit_values.subject.measures.items():
            if not measure.kind.predicts:
                continue
            frame = metrics_of_predictions(
                audit_values.table(model, name),
                grouping,
                class_names,
                settings=settings,
                confidence=confidence,
            )
            frames.append(frame.assign(**model.columns(), measure=name))
    return stacked(GROUP_METRICS, frames)


def metrics_of_predictions(
    samples: pd.DataFrame,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: GroupSettings,
    confidence: float,
) -> pd.DataFrame:
    """Rows of one model and measure in `group_metrics`, without the columns that identify these.

    Parameters
    ----------
    samples : DataFrame
        Rows with sample_id, label and prediction; several rows of a sample count as fractions.
    grouping, class_names, settings, confidence
        See group_metric_table.
    """
    positive_index = None
    if settings.positive is not None:
        if settings.positive not in class_names:
            raise InputError(f"groups: positive: {unknown_name('class', settings.positive, class_names)}")
        positive_index = class_names.index(settings.positive)

    # Rows that agree are counted as one; those of a sample share its weight of 1.
    rows = samples.groupby(["sample_id", "label", "prediction"], sort=False).size().reset_index(name="copies")
    sample_id, sample = np.unique(rows["sample_id"].to_numpy(dtype=str), return_inverse=True)
    copies = rows["copies"].to_numpy(dtype=np.float64)
    rows = rows.assign(sample=sample, share=copies / np.bincount(sample, copies)[sample])
    subsample = grouping.balanced_subsample(sample_id)

    frames = []
    for attribute, groups in grouping.groups.items():
        group = grouping.group_indices(attribute, sample_id)
        grouped = group >= 0
        counts = _counts(rows, group, grouped, groups=len(groups), classes=len(class_names))
        frame = _metric_frame(counts, class_names, minimum_cell=settings.minimum_cell, alpha=1 - confidence)
        frame["n"] = int(grouped.sum())

        if subsample is not None:
            balanced = subsample & grouped
            rates = group_rates(_counts(rows, group, balanced, groups=len(groups), classes=len(class_names)))
            frame["balanced_n"] = int(balanced.sum())
            frame["balanced_value"] = _by_class_and_metric(_with_summaries(group_metrics(rates)))
            frame["balanced_as_printed"] = _by_class_and_metric(_with_summaries(group_metrics_as_printed(rates)))

        if positive_index is not None:
            frame = frame[frame["class_index"] == positive_index]
        frames.append(frame.assign(attribute=attribute, confidence=confidence))
    return pd.concat(frames, ignore_index=True)


def _counts(
    rows: pd.DataFrame, group: NDArray[np.int64], chosen: NDArray[np.bool_], *, groups: int, classes: int
) -> GroupCounts:
    # Counts of the chosen samples.
    inside = rows[chosen[rows["sample"]]]
    return group_counts(
        group[inside["sample"].to_numpy(np.int64)],
        inside["label"].to_numpy(np.int64),
        inside["prediction"].to_numpy(np.int64),
        groups=groups,
        classes=classes,
        shares=inside["share"].to_numpy(),
    )


def _metric_frame(counts: GroupCounts, class_names: Sequence[str], *, minimum_cell: int, alpha: float) -> pd.DataFrame:
    # Every metric of each class, then of macro and worst.
    rates = group_rates(counts)
    values = _with_summaries(group_metrics(rates))
    as_printed = _with_summaries(group_metrics_as_printed(rates))
    wilson = wilson_metrics(counts, alpha=alpha)

    positive, positive_or_negative = counts.smallest_cell
    cells_of_classes = {
        "dp": np.broadcast_to(counts.total.min(), positive.shape),
        "eopp": positive,
        "eodd": positive_or_negative,
        "aodd": positive_or_negative,
    }
    cells = {}
    for metric, sizes in cells_of_classes.items():
        # Macro and worst leave out classes without a value, unless no class has one.
        defined = ~np.isnan(values[metric][: len(sizes)])
        smallest = sizes[defined].min() if defined.any() else sizes.min()
        cells[metric] = np.append(sizes, [smallest, smallest])
    # Sums of shares have rounding errors.
    smallest_cell = np.rint(_by_class_and_metric(cells)).astype(np.int64)

    names = [*class_names, MACRO, WORST]
    return pd.DataFrame(
        {
            "class_index": np.repeat([*range(len(class_names)), ALL, ALL], len(METRICS)),
            "class_name": np.repeat(names, len(METRICS)),
            "metric": np.tile(METRICS, len(names)),
            "value": _by_class_and_metric(values),
            "as_printed": _by_class_and_metric(as_printed),
            "wilson_low": _by_class_and_metric({name: ends[0] for name, ends in wilson.items()}),
            "wilson_high": _by_class_and_metric({name: ends[1] for name, ends in wilson.items()}),
            "smallest_cell": smallest_cell,
            "small": smallest_cell < minimum_cell,
        }
    )


def _by_class_and_metric(columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    # From an array (K + 2,) for each metric: class after class, each with all metrics.
    return np.stack([columns[metric] for metric in METRICS], axis=1).ravel()


def _with_summaries(by_class: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    # Class values (K,) of each metric, then macro and worst: (K + 2,).
    return {name: np.append(values, over_classes(values)) for name, values in by_class.items()}
