"""Sensitivity of rankings and disparity to shifts and scales of the logits, lambda of FP, and the metric."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics import APPENDED, FIRST, MAIN, metric_values
from gfscore.audit.step_params import LogitChanges
from gfscore.statistics.classes import class_values
from gfscore.statistics.margins import BLOCK_ELEMENTS, FEW_CLASSES, scores
from gfscore.statistics.ranking import ranks
from gfscore.statistics.tolerances import TIE_TOLERANCE
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import MEASURED, Column, Table

SENSITIVITY = Table(
    name="sensitivity",
    version=2,
    columns=(
        *MEASURED,
        Column("shift", pa.float64(), "constant added to every logit"),
        Column("scale", pa.float64(), "factor of every logit: 1 / T for sigmoid and softmax"),
        *(Column(metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in FIRST),
        Column(
            "place", pa.float64(), "rank by aggregate under the same change, 1 for the largest; ties get the mean rank"
        ),
        *(Column(metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in APPENDED),
    ),
)
"""Metrics of every score after shifts and scales of the logits."""


def single_changes(*, shifts: Sequence[float], scales: Sequence[float]) -> list[tuple[float, float]]:
    """Changes of the logits z to scale * z + shift, one at a time, which change no prediction.

    A scale is the temperature 1 / scale for the activations sigmoid and softmax.

    Parameters
    ----------
    shifts, scales : sequence of float

    Returns
    -------
    list of tuple
        Pairs (shift, scale) without repetition, (0, 1) first.
    """
    pairs = [(0.0, 1.0)]
    pairs += [(float(shift), 1.0) for shift in shifts]
    pairs += [(0.0, float(scale)) for scale in scales]
    return list(dict.fromkeys(pairs))


def changed_statistics(
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    *,
    activation: str,
    change: tuple[float, float],
    lam: float,
) -> dict[str, float]:
    """All metrics of a score after a change of the logits.

    Parameters
    ----------
    logits : array of float, shape (N, K)
    labels : array of int, shape (N,)
    activation : str
        Activation of the score.
    change : tuple
        Shift and scale.
    lam : float
        Weight lambda of RDI in FP.

    Returns
    -------
    dict
        Metrics by name.
    """
    # In blocks, to avoid copies of all logits; for few classes all at once, since the algorithm of `scores` depends on
    # the largest of all logits.
    shift, scale = change
    n, classes = logits.shape
    step = max(1, n if classes <= FEW_CLASSES else BLOCK_ELEMENTS // classes)
    values = np.empty(n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        changed = logits[rows].astype(np.float64)
        changed *= scale
        changed += shift
        values[rows] = scores(changed, labels[rows], activation=activation)
    return metric_values(class_values(values, labels, classes), lam=lam)


def model_sensitivity(
    model: Mapping[str, str],
    logits: NDArray[np.floating],
    labels: NDArray[np.integer],
    activations: Mapping[str, str],
    changes: LogitChanges,
) -> pd.DataFrame:
    """Rows of the table `sensitivity` of one model for all measures of kind great, without the column place.

    Parameters
    ----------
    model : mapping
        dataset, threat and model.
    logits : array of float, shape (N, K)
    labels : array of int, shape (N,)
    activations : mapping
        Activation of each measure of kind great, by its name.
    changes : LogitChanges
    """
    rows = []
    for name, activation in activations.items():
        for shift, scale in single_changes(shifts=changes.shifts, scales=changes.scales):
            metrics = changed_statistics(logits, labels, activation=activation, change=(shift, scale), lam=changes.lam)
            row: dict[str, object] = {**model, "measure": name, "shift": shift, "scale": scale}
            for metric in MAIN:
                row[metric.name] = metrics[metric.name]
            rows.append(row)
    return pd.DataFrame(rows, columns=SENSITIVITY.column_names)


def with_places(models: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Table `sensitivity` of all models, with the column place, from the rows of each."""
    frame = stacked(SENSITIVITY, [rows.drop(columns="place") for rows in models])
    frame["place"] = frame["place"].astype(np.float64)
    for _, group in frame.groupby(["measure", "shift", "scale"], sort=False):
        frame.loc[group.index, "place"] = places(group["value"])
    return frame


def places(values: ArrayLike, *, better: int = 1) -> NDArray[np.float64]:
    """Rank of each model, 1 for the best; ties get the mean rank.

    Parameters
    ----------
    values : array of float, shape (M,)
        Values of the models; NaN has the rank NaN.
    better : int
        1 if larger values are better, -1 if smaller ones are.

    Returns
    -------
    array of float64, shape (M,)
    """
    descending = -better * np.asarray(values, dtype=np.float64)
    defined = ~np.isnan(descending)
    result = np.full(len(descending), np.nan)
    result[defined] = ranks(descending[defined])
    return result


def lambda_swaps(class_mean: ArrayLike, rdi: ArrayLike) -> list[tuple[float, int, int]]:
    """All lambda > 0 at which two models change places under FP(lambda) = class mean - lambda RDI.

    FP is linear in lambda, so a pair swaps at most once, at the ratio of the differences, and only if the model with
    the larger mean has the larger RDI.

    Parameters
    ----------
    class_mean, rdi : array of float, shape (M,)

    Returns
    -------
    list of tuple
        Triples (lambda, before, after) by lambda: model `before` is better for smaller lambda, `after` for larger.
    """
    means = np.asarray(class_mean, dtype=np.float64)
    costs = np.asarray(rdi, dtype=np.float64)
    swaps = []
    for first, second in itertools.combinations(range(len(costs)), 2):
        before, after = first, second
        if means[second] >= means[first]:
            before, after = second, first
        lead = means[before] - means[after]
        cost = costs[before] - costs[after]
        # Models that are tied in one of the two never change places.
        if lead > TIE_TOLERANCE and cost > TIE_TOLERANCE:
            swaps.append((float(lead / cost), before, after))
    return sorted(swaps)
