"""Sensitivity of rankings and disparity to shifts and scales of the logits, lambda of FP, and the metric."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics import APPENDED, FIRST, MAIN, metric_values
from gfscore.statistics.classes import TIE_TOLERANCE, class_values
from gfscore.statistics.margins import BLOCK_ELEMENTS, FEW_CLASSES, scores
from gfscore.statistics.ranking import ranks
from gfscore.tables.parquet_tables import frame_of
from gfscore.tables.table import MEASURED, Table

if TYPE_CHECKING:
    import pandas as pd


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


def changes(*, shifts: Sequence[float], scales: Sequence[float]) -> list[tuple[float, float]]:
    """Changes of the logits z to scale * z + shift as pairs (shift, scale), one at a time, (0, 1) first.

    They change no prediction. A scale is the temperature 1 / scale for the activations sigmoid and softmax.
    """
    listed = [(0.0, 1.0), *((float(shift), 1.0) for shift in shifts), *((0.0, float(scale)) for scale in scales)]
    return list(dict.fromkeys(listed))


def changed_statistics(
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    *,
    activation: str,
    change: tuple[float, float],
    lam: float,
) -> dict[str, float]:
    """All metrics of the score by name after a change (shift, scale) of the logits (N, K); `lam` is lambda of FP."""
    # In blocks, to avoid copies of all logits; for few classes all at once, since the algorithm of `scores` depends on
    # the largest of all logits.
    shift, scale = change
    n, classes = logits.shape
    step = max(1, n if classes <= FEW_CLASSES else BLOCK_ELEMENTS // classes)
    result = np.empty(n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        changed = logits[rows].astype(np.float64)
        changed *= scale
        changed += shift
        result[rows] = scores(changed, labels[rows], activation=activation)
    return metric_values(class_values(result, labels, classes), lam=lam)


def model_sensitivity(
    model: Mapping[str, str],
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    measures: Mapping[str, Mapping[str, Any]],
    *,
    shifts: Sequence[float],
    scales: Sequence[float],
    lam: float,
) -> pd.DataFrame:
    """Rows of the table sensitivity of one model for all measures of kind great, without the column place.

    Takes the model (dataset, threat, model), logits (N, K), labels (N,), the settings of measures by name, the shifts
    and scales of the logits, and lambda of FP.
    """
    great = {name: settings["activation"] for name, settings in measures.items() if settings["kind"] == "great"}
    rows = []
    for name, activation in great.items():
        for change in changes(shifts=shifts, scales=scales):
            metrics = changed_statistics(logits, labels, activation=activation, change=change, lam=lam)
            main = {metric.name: metrics[metric.name] for metric in MAIN}
            rows.append({**model, "measure": name, "shift": change[0], "scale": change[1], **main})
    return frame_of(SENSITIVITY, rows)


def with_places(of_models: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The table sensitivity of all models, with the column place, from the rows of each."""
    rows = [row for frame in of_models for row in frame.to_dict("records")]
    frame = frame_of(SENSITIVITY, rows)
    for _, group in frame.groupby(["measure", "shift", "scale"], sort=False):
        frame.loc[group.index, "place"] = places(group["value"])
    return frame


def places(values: ArrayLike, *, better: int = 1) -> NDArray[np.float64]:
    """Rank of each model (M,), 1 for the best; ties get the mean rank, NaN remains NaN.

    `better` is 1 if larger values are better, -1 if smaller ones are.
    """
    values = -better * np.asarray(values, dtype=np.float64)
    known = ~np.isnan(values)
    result = np.full(len(values), np.nan)
    result[known] = ranks(values[known])
    return result


def lambda_swaps(class_mean: ArrayLike, rdi: ArrayLike) -> list[tuple[float, int, int]]:
    """All lambda > 0 at which two models change places under FP(lambda) = class mean - lambda RDI.

    Takes `class_mean` and `rdi`, each (M,). FP is linear in lambda, so a pair swaps at most once, at the ratio of the
    differences, and only if the model with the larger mean has the larger RDI. Returns triples (lambda, before, after)
    by lambda: model `before` is better for smaller lambda, `after` for larger.
    """
    class_mean, rdi = np.asarray(class_mean, dtype=np.float64), np.asarray(rdi, dtype=np.float64)
    swaps = []
    for first, second in itertools.combinations(range(len(rdi)), 2):
        before, after = (first, second) if class_mean[first] > class_mean[second] else (second, first)
        lead, cost = class_mean[before] - class_mean[after], rdi[before] - rdi[after]
        # Models that are tied in one of the two never change places.
        if lead > TIE_TOLERANCE and cost > TIE_TOLERANCE:
            swaps.append((float(lead / cost), before, after))
    return sorted(swaps)
