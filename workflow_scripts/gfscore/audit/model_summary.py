"""The tables model_summary and sensitivity, whose columns are derived from the metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.metrics import AGAINST_CHANCE, APPENDED, BOUNDED, COMPANIONS, FIRST, MAIN, METRICS
from gfscore.audit.metrics.declaration import Metric
from gfscore.audit.metrics.rdi import detectable_rdi
from gfscore.audit.noise import noise_floors
from gfscore.statistics.classes import ClassValues, class_values, worst_class_set, worst_classes
from gfscore.tables.table import MEASURED, SUMMARISED, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.values import SampleValues
    from gfscore.core.identity import ModelName


def _numbers(metrics: tuple[Metric, ...], *, bounds: bool) -> list[Column]:
    ends = (("", ""), ("_low", ", lower bound"), ("_high", ", upper bound"))
    return [
        (f"{metric.name}{end}", pa.float64(), f"{metric.meaning}{words}")
        for metric in metrics
        for end, words in (ends if bounds and metric.bounded else ends[:1])
    ]


def _chance(metrics: tuple[Metric, ...]) -> list[Column]:
    named = [(metric.name, metric.title) for metric in metrics]
    tested = "of: classes have one distribution of values; null if undecided"
    return [
        *((f"{name}_permuted", pa.float64(), f"mean {title} under shuffled class membership") for name, title in named),
        *((f"{name}_p", pa.float64(), f"permutation p-value, by {title}, {tested}") for name, title in named),
    ]


def _appended(metric: Metric) -> list[Column]:
    return [*_numbers((metric,), bounds=True), *(_chance((metric,)) if metric.against_chance else ())]


MODEL_SUMMARY = Table(
    name="model_summary",
    version=1,
    columns=(
        *SUMMARISED,
        *_numbers(FIRST, bounds=True),
        ("value_alone_low", pa.float64(), "lower bound of value, not simultaneous with others"),
        ("value_alone_high", pa.float64(), "upper bound, likewise"),
        ("wcr_class", pa.string(), "worst class, the first of ties"),
        ("wcr_tied", pa.list_(pa.string()), "all classes that attain the minimum"),
        ("worst_class_set", pa.list_(pa.string()), "classes that may be the worst, given the intervals"),
        ("interval", pa.string(), "interval method"),
        ("confidence", pa.float64(), "simultaneous confidence of the bounds, except those of value_alone"),
        ("accuracy", pa.float64(), "clean accuracy on the same samples"),
        ("published_clean_accuracy", pa.float64(), "published clean accuracy, fraction"),
        ("published_robust_accuracy", pa.float64(), "published robust accuracy, fraction"),
        ("robust_accuracy", pa.float64(), "robust accuracy used for rank correlations"),
        ("robust_accuracy_source", pa.string(), "origin of robust_accuracy"),
        *_numbers(COMPANIONS, bounds=False),
        *_chance(tuple(metric for metric in AGAINST_CHANCE if metric not in APPENDED)),
        ("between_class_sd", pa.float64(), "estimated standard deviation of the true class values, without noise"),
        ("rdi_detectable", pa.float64(), "smallest true RDI that these intervals certainly distinguish from 0"),
        *(column for metric in APPENDED for column in _appended(metric)),
    ),
)
"""Metrics of every model, measure and calibration, with intervals and noise floor."""

SENSITIVITY = Table(
    name="sensitivity",
    version=2,
    columns=(
        *MEASURED,
        ("shift", pa.float64(), "constant added to every logit"),
        ("scale", pa.float64(), "factor of every logit: 1 / T for sigmoid and softmax"),
        *((metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in FIRST),
        ("place", pa.float64(), "rank by aggregate under the same change, 1 for the largest; ties get the mean rank"),
        *((metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in APPENDED),
    ),
)
"""Metrics of every score after shifts and scales of the logits."""


# ---- Rows of the table model_summary: every metric of a model, its interval, and its value on shuffled labels.


def summarise(
    values: ClassValues,
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
    *,
    class_names: Sequence[str],
    lam: float,
) -> dict[str, Any]:
    """Every metric of class values, with intervals, as a mapping (see gfscore.audit.one_classifier.Audit.summary).

    Takes simultaneous class bounds `low`, `high` (K,) or None when there are none, K names and `lam` of FP. Without
    class bounds every interval is (NaN, NaN).
    """
    summary: dict[str, Any] = {
        name: metric.of(values.mean, counts=values.n, lam=lam) for name, metric in METRICS.items()
    }
    for metric in BOUNDED:
        interval = np.nan, np.nan
        if low is not None and high is not None:
            interval = metric.interval(low, high, counts=values.n, lam=lam)
        summary[f"{metric.name}_interval"] = interval
    tied = worst_classes(values.mean)
    return summary | {"wcr_class": class_names[tied[0]], "wcr_tied": [class_names[index] for index in tied]}


def model_rows(
    found: Sequence[SampleValues],
    class_scores: pd.DataFrame,
    accuracies: Mapping[ModelName, Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Rows of the table model_summary.

    Takes SampleValues, the table class_scores made from them, `accuracies` (per model a
    mapping of the published and robust accuracy columns) and `settings`: fp_lambda, and permutations and seed
    of the noise floor.
    """
    by_key = dict(list(class_scores.groupby(["threat", "model", "measure", "calibration"], sort=False)))
    keys = [(item.model.threat, item.model.model, item.measure.name, item.calibration) for item in found]
    classes = [by_key[key].sort_values("class_index") for key in keys]
    floors = _noise_floors(found, len(classes[0]), models=len(accuracies), **settings)
    return [
        _model_row(item, frame, accuracies[item.model], floor, lam=settings["fp_lambda"])
        for item, frame, floor in zip(found, classes, floors, strict=True)
    ]


def _noise_floors(found, classes, *, models, fp_lambda, permutations, seed):
    # One noise floor for each. The seed of the shuffles depends on the samples' names alone, so that models on the
    # same samples are shuffled alike. With fewer permutations, no p-value could be 5% after Holm's adjustment.
    permutations = max(permutations, 20 * models - 1)
    together = defaultdict(list)
    for place, item in enumerate(found):
        together["\n".join(item.sample_id).encode(), item.labels.tobytes()].append(place)
    floors: list[Any] = [None] * len(found)
    for (names, _), places in together.items():
        shared = {"permutations": permutations, "rng": np.random.default_rng([seed, crc32(names)]), "lam": fp_lambda}
        values = [found[place].low for place in places]
        for place, floor in zip(places, noise_floors(values, found[places[0]].labels, classes, **shared), strict=True):
            floors[place] = floor
    return floors


def _model_row(measured, class_frame, accuracies, noise, *, lam):
    names = class_frame["class_name"].tolist()
    bounds = class_frame["low"].to_numpy(), class_frame["high"].to_numpy()
    detectable = detectable_rdi(*bounds)
    if not measured.fresh:
        bounds = None, None
    values = class_values(measured.low, measured.labels, len(names))
    summary = summarise(values, *bounds, class_names=names, lam=lam)
    row = measured.columns() | {name: summary[name] for name in METRICS}
    for metric in MAIN:
        if metric.bounded:
            row[f"{metric.name}_low"], row[f"{metric.name}_high"] = summary[f"{metric.name}_interval"]
    row["value_alone_low"], row["value_alone_high"] = _aggregate_alone(measured, class_frame)
    return row | {
        "wcr_class": summary["wcr_class"],
        "wcr_tied": summary["wcr_tied"],
        "worst_class_set": [] if bounds[0] is None else [names[k] for k in worst_class_set(*bounds)],
        "interval": class_frame["interval"].iloc[0],
        "confidence": class_frame["confidence"].iloc[0],
        "accuracy": None if measured.missing.all() else float(np.mean(measured.correct[~measured.missing])),
        **accuracies,
        **{f"{name}_permuted": value for name, value in noise.permuted.items()},
        # Undecided values are not known, so that shuffling them tests nothing.
        **{f"{name}_p": None if measured.bounded else value for name, value in noise.p_value.items()},
        "between_class_sd": noise.between_class_sd,
        "rdi_detectable": detectable,
    }


def _aggregate_alone(measured, class_frame):
    # Interval of the aggregate itself, by the method, confidence and label-error rates of the class bounds.
    if not measured.fresh:
        return None, None
    method, rates = class_frame["interval"].iloc[0], class_frame["label_error_rate"]
    bounds = measured.bounds(
        len(class_frame),
        # The seed draws the order of the samples, on which the interval of an aggregate does not depend.
        intervals={"method": method, "binary": method, "seed": 0},
        label_error_rates=None if rates.isna().all() else rates.to_numpy(dtype=np.float64),
    )
    side = (1 - class_frame["confidence"].iloc[0]) / 2
    return bounds.lower_aggregate(side), bounds.upper_aggregate(side)
