"""Metrics of every model: the table model_summary, with intervals and noise floor."""

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa

from gfscore.audit.metrics import AGAINST_CHANCE, APPENDED, COMPANIONS, FIRST, MAIN, metric_intervals, metric_values
from gfscore.audit.metrics.declaration import Interval, Metric
from gfscore.audit.metrics.rdi import detectable_rdi
from gfscore.audit.noise import NoiseFloor, noise_floors
from gfscore.audit.settings import DisparitySettings, IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.core.identity import ModelName
from gfscore.statistics.classes import class_values, worst_class_set, worst_classes
from gfscore.tables.parquet_tables import typed_frame
from gfscore.tables.table import SUMMARISED, Column, Table

UNKNOWN: Interval = (float("nan"), float("nan"))
"""Interval of a metric without bounds."""


def _columns_of(metric: Metric, *, bounds: bool) -> list[Column]:
    columns = [Column(metric.name, pa.float64(), metric.meaning)]
    if bounds and metric.bounded:
        columns.append(Column(f"{metric.name}_low", pa.float64(), f"{metric.meaning}, lower bound"))
        columns.append(Column(f"{metric.name}_high", pa.float64(), f"{metric.meaning}, upper bound"))
    return columns


def _columns_against_chance(metrics: Sequence[Metric]) -> list[Column]:
    permuted: list[Column] = []
    tested: list[Column] = []
    for metric in metrics:
        permuted.append(
            Column(f"{metric.name}_permuted", pa.float64(), f"mean {metric.title} under shuffled class membership")
        )
        tested.append(
            Column(
                f"{metric.name}_p",
                pa.float64(),
                f"permutation p-value, by {metric.title}, of: classes have one distribution of values; null if "
                "undecided",
            )
        )
    return [*permuted, *tested]


def _summary_columns() -> tuple[Column, ...]:
    columns: list[Column] = [*SUMMARISED]
    for metric in FIRST:
        columns += _columns_of(metric, bounds=True)
    columns += [
        Column("value_alone_low", pa.float64(), "lower bound of value, not simultaneous with others"),
        Column("value_alone_high", pa.float64(), "upper bound of value, not simultaneous with others"),
        Column(
            "value_most",
            pa.float64(),
            "largest value that undecided samples allow: that of these samples surely lies between value and it",
        ),
        Column("wcr_most", pa.float64(), "largest wcr that undecided samples allow, as value_most"),
        Column(
            "wcr_class",
            pa.string(),
            "worst class, the first of ties; null where undecided samples leave several possible",
        ),
        Column("wcr_tied", pa.list_(pa.string()), "all classes that attain the minimum; none where wcr_class is null"),
        Column("worst_class_set", pa.list_(pa.string()), "classes that may be the worst, given the intervals"),
        Column("interval", pa.string(), "interval method"),
        Column("confidence", pa.float64(), "simultaneous confidence of the bounds, except those of value_alone"),
        Column("accuracy", pa.float64(), "clean accuracy on the samples that have a value"),
        Column("published_clean_accuracy", pa.float64(), "published clean accuracy, fraction"),
        Column("published_robust_accuracy", pa.float64(), "published robust accuracy, fraction"),
        Column("robust_accuracy", pa.float64(), "robust accuracy used for rank correlations"),
        Column("robust_accuracy_source", pa.string(), "origin of robust_accuracy"),
    ]
    for metric in COMPANIONS:
        columns += _columns_of(metric, bounds=False)
    columns += _columns_against_chance([metric for metric in AGAINST_CHANCE if metric not in APPENDED])
    columns += [
        Column(
            "between_class_sd", pa.float64(), "estimated standard deviation of the true class values, without noise"
        ),
        Column(
            "rdi_detectable",
            pa.float64(),
            "smallest true RDI that these intervals certainly distinguish from 0; if not below the largest possible "
            "RDI, they certainly distinguish none",
        ),
    ]
    for metric in APPENDED:
        columns += _columns_of(metric, bounds=True)
        if metric in AGAINST_CHANCE:
            columns += _columns_against_chance([metric])
    return tuple(columns)


MODEL_SUMMARY = Table(name="model_summary", version=2, columns=_summary_columns())
"""Metrics of every model, measure and calibration, with intervals and noise floor."""


def model_summary_table(
    values: Sequence[SampleValues],
    scores: pd.DataFrame,
    accuracies: Mapping[ModelName, Mapping[str, object]],
    settings: DisparitySettings,
    intervals: IntervalSettings,
    *,
    complete: bool = True,
) -> pd.DataFrame:
    """The table model_summary.

    Parameters
    ----------
    values : sequence of SampleValues
        Values of all models, measures and calibrations.
    scores : DataFrame
        The table class_scores made from them.
    accuracies : mapping
        Published and robust accuracies of all models of the audit, as columns of the table.
    settings : DisparitySettings
        Lambda of FP, and permutations and seed of the noise floor.
    intervals : IntervalSettings
        Settings of the intervals in `scores`.
    complete : bool
        Whether to make the noise floors, and the interval of the aggregate alone, too: most of the work.
    """
    key = ["threat", "model", "measure", "calibration"]
    by_key = {group: frame.sort_values("class_index") for group, frame in scores.groupby(key, sort=False)}
    class_frames = []
    rows = []
    for item in values:
        classes = by_key[item.model.threat, item.model.classifier, item.measure.name, item.calibration]
        class_frames.append(classes)
        rows.append({**item.columns(), **accuracies[item.model], **_metrics(item, classes, settings)})

    if complete:
        floors = _noise_floors(values, len(class_frames[0]), models=len(accuracies), settings=settings)
        for row, item, classes, floor in zip(rows, values, class_frames, floors, strict=True):
            if item.fresh:
                row.update(_aggregate_interval(item, classes, intervals))
            row.update(_against_chance(item, floor))
    return typed_frame(MODEL_SUMMARY, rows)


def _metrics(item: SampleValues, classes: pd.DataFrame, settings: DisparitySettings) -> dict[str, object]:
    # Metrics of the class values, with their intervals; `classes` are the rows of class_scores.
    names = classes["class_name"].tolist()
    low = classes["low"].to_numpy()
    high = classes["high"].to_numpy()
    smallest = class_values(item.low, item.labels, len(names))
    largest = class_values(item.high, item.labels, len(names))

    row: dict[str, object] = dict(metric_values(smallest, lam=settings.fp_lambda))
    bounds = metric_intervals(smallest, low, high, lam=settings.fp_lambda) if item.fresh else {}
    for metric in MAIN:
        if metric.bounded:
            row[f"{metric.name}_low"], row[f"{metric.name}_high"] = bounds.get(metric.name, UNKNOWN)

    metrics_of_largest = metric_values(largest, lam=settings.fp_lambda)
    worst = worst_classes(smallest.mean, largest.mean)
    return row | {
        "value_most": metrics_of_largest["value"],
        "wcr_most": metrics_of_largest["wcr"],
        "wcr_class": names[worst[0]] if len(worst) else None,
        "wcr_tied": [names[index] for index in worst],
        "worst_class_set": [names[index] for index in worst_class_set(low, high)] if item.fresh else [],
        "interval": classes["interval"].iloc[0],
        "confidence": classes["confidence"].iloc[0],
        "accuracy": np.nan if item.missing.all() else float(np.mean(item.correct[~item.missing])),
        "rdi_detectable": detectable_rdi(low, high),
    }


def _aggregate_interval(item: SampleValues, classes: pd.DataFrame, intervals: IntervalSettings) -> dict[str, float]:
    # Interval of the aggregate alone, which allows for the label-error rates of the class bounds.
    rates = classes["label_error_rate"]
    bounds = item.bounds(
        len(classes),
        intervals=intervals,
        label_error_rates=None if rates.isna().all() else rates.to_numpy(dtype=np.float64),
    )
    alpha_of_side = (1 - intervals.confidence) / 2
    return {
        "value_alone_low": bounds.lower_aggregate(alpha_of_side),
        "value_alone_high": bounds.upper_aggregate(alpha_of_side),
    }


def _against_chance(item: SampleValues, floor: NoiseFloor) -> dict[str, float]:
    # What metrics are when classes do not matter, and the p-values of a permutation test.
    row = {"between_class_sd": floor.between_class_sd}
    for metric in AGAINST_CHANCE:
        row[f"{metric.name}_permuted"] = floor.permuted[metric.name]
        # Undecided values are not known, so that shuffling them tests nothing.
        row[f"{metric.name}_p"] = np.nan if item.bounded else floor.p_value[metric.name]
    return row


def _noise_floors(
    values: Sequence[SampleValues], classes: int, *, models: int, settings: DisparitySettings
) -> list[NoiseFloor]:
    # The seed of the shuffles depends on the samples' names alone, so that models on the same samples are shuffled
    # alike. With fewer permutations, no p-value could be 5% after Holm's adjustment.
    permutations = max(settings.permutations, 20 * models - 1)
    same_samples: dict[tuple[bytes, bytes], list[int]] = {}
    for position, item in enumerate(values):
        key = "\n".join(item.sample_id).encode(), item.labels.tobytes()
        same_samples.setdefault(key, []).append(position)

    floors: dict[int, NoiseFloor] = {}
    for (names, _), positions in same_samples.items():
        shuffled = noise_floors(
            [values[position].low for position in positions],
            values[positions[0]].labels,
            classes,
            permutations=permutations,
            rng=np.random.default_rng([settings.seed, crc32(names)]),
            lam=settings.fp_lambda,
        )
        floors.update(zip(positions, shuffled, strict=True))
    return [floors[position] for position in range(len(values))]
