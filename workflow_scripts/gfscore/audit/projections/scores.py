"""Tolerance, Deviation and Coupling of each model, by latent dimension and by class: table `projection_scores`."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.core.identity import ALL, ALL_NAME
from gfscore.projection.scores import (
    coupling,
    coupling_entropy,
    deviation,
    effective_dimensions,
    is_constant,
    tolerance,
)
from gfscore.statistics.betting import mean_bounds
from gfscore.tables.table import CLASS_OR_ALL, CLASSIFIER, THREAT, Column, Table

TASK = Column("dataset", pa.string(), "task: data evaluated, whose labels the model predicts")

MAPPER = Column("mapper", pa.string(), "key of config.yaml's mappers")

PROJECTION_KEY: tuple[Column, ...] = (
    TASK,
    THREAT,
    CLASSIFIER,
    MAPPER,
)

OWN = Column("own", pa.bool_(), "it is the task itself, not a sensitive attribute, and in no mean over dimensions")

CONSTANT = Column("constant", pa.bool_(), "same class for all decoded images, so that Tolerance 1 is meaningless")

CONTEXT: tuple[Column, ...] = (
    Column("censored", pa.float64(), "share of the moves that change no prediction; sides at a limit do not count"),
    Column("agreement", pa.float64(), "share of the samples with the same prediction for sample and reconstruction"),
    Column("accuracy", pa.float64(), "clean accuracy on the same samples"),
    Column("decoded_accuracy", pa.float64(), "accuracy on their reconstructions"),
)

COUPLING: tuple[Column, ...] = (
    Column(
        "coupling",
        pa.float64(),
        "Coupling as printed: 0 both if all Tolerances are equal and if all but one are 0; null if all are 0; only in "
        "rows of the mean over dimensions",
    ),
    Column(
        "coupling_entropy",
        pa.float64(),
        "normalised entropy of 1 - Tol: 1 all dimensions equal, 0 one alone; null without any influence and for one "
        "dimension; rows as coupling",
    ),
    Column(
        "effective_dimensions",
        pa.float64(),
        "effective number of dimensions with an influence, 1..D; null without any influence; rows as coupling",
    ),
)

PROJECTION_SCORES = Table(
    name="projection_scores",
    version=4,
    columns=(
        *PROJECTION_KEY,
        Column("dimension_index", pa.int32(), "latent dimension, 0..D-1; -1 for the mean over all"),
        Column("dimension", pa.string(), "its name; all for the mean over all"),
        OWN,
        *CLASS_OR_ALL,
        Column("n", pa.int64(), "samples projected"),
        Column("small", pa.bool_(), "too few samples for Coupling and its entropy"),
        CONSTANT,
        Column(
            "tolerance",
            pa.float64(),
            "mean Tolerance, 0..1, units of sigma; higher is better; 1 for a constant classifier",
        ),
        Column("tolerance_low", pa.float64(), "lower bound of the population mean, of this row alone"),
        Column("tolerance_high", pa.float64(), "upper bound of the population mean, of this row alone"),
        Column("confidence", pa.float64(), "confidence of the bounds"),
        Column(
            "deviation", pa.float64(), "mean Deviation, at most 1 - tolerance; lower is better; null: one side only"
        ),
        Column("up", pa.float64(), "mean move upwards, 1 if none changes the prediction; without samples at a limit"),
        Column(
            "down", pa.float64(), "mean move downwards, 1 if none changes the prediction; without samples at a limit"
        ),
        Column(
            "tolerance_agreeing",
            pa.float64(),
            "Tolerance of the samples with the same prediction for the reconstruction",
        ),
        *CONTEXT,
        *COUPLING,
    ),
)

LEAST_SAMPLES = 20
"""Number of samples below which Coupling and its entropy are unreliable."""


class ModelBoundaries:
    """Boundaries of one model on n samples and D dimensions.

    Parameters
    ----------
    samples : DataFrame
        Samples table of kind projection, with the dimensions of each sample in this order.
    dimensions : sequence of str
        Names of the D dimensions.
    is_task_attribute : sequence of bool, length D, optional
        Dimensions of the attribute that is the task itself, which means over dimensions leave out; by default none.

    Attributes
    ----------
    dimensions : list of str, length D
    is_task_attribute : array of bool, shape (D,)
    up, down, tolerance, deviation, censored : array of float64, shape (n, D)
    label, clean, decoded : array of int, shape (n,)
        True class, and predictions of the sample and of its reconstruction.
    """

    def __init__(
        self, samples: pd.DataFrame, dimensions: Sequence[str], is_task_attribute: Sequence[bool] | None = None
    ) -> None:
        """Compute Tolerance, Deviation and censoring of every sample and dimension."""
        shape = (len(samples) // len(dimensions), len(dimensions))
        self.dimensions = list(dimensions)
        if is_task_attribute is None:
            is_task_attribute = [False] * len(dimensions)
        self.is_task_attribute = np.array(is_task_attribute, dtype=bool)
        self.up = samples["up"].to_numpy().reshape(shape)
        self.down = samples["down"].to_numpy().reshape(shape)
        self.tolerance = tolerance(self.up, self.down)
        self.deviation = deviation(self.up, self.down)

        up_censored = samples["up_censored"].to_numpy().reshape(shape).astype(np.float64)
        down_censored = samples["down_censored"].to_numpy().reshape(shape)
        sides = 2.0 - np.isnan(self.up) - np.isnan(self.down)
        self.censored = (up_censored + down_censored) / sides

        first_rows = samples.iloc[:: len(dimensions)]
        self.label = first_rows["label"].to_numpy()
        self.clean = first_rows["clean_prediction"].to_numpy()
        self.decoded = first_rows["prediction"].to_numpy()

    @property
    def constant(self) -> bool:
        """Whether the classifier predicted the same class for all decoded images."""
        return is_constant(self.decoded, self.censored)


def score_frame(boundaries: ModelBoundaries, class_names: Sequence[str], *, confidence: float) -> pd.DataFrame:
    """Columns of `projection_scores` of one model, but those that name it.

    Parameters
    ----------
    boundaries : ModelBoundaries
        Boundaries of the model.
    class_names : sequence of str
        Names of the K classes.
    confidence : float
        Confidence of the bounds, which are by betting, for each row alone.

    Returns
    -------
    DataFrame
        (1 + K) (1 + D) rows: all samples, then class after class; in each the mean over dimensions, then dimension
        after dimension. A class without samples has n = 0 and NaN; the mean is NaN where all dimensions are of the
        task's own attribute.
    """
    groups = [(ALL, ALL_NAME, np.ones(len(boundaries.label), dtype=bool))]
    for index, name in enumerate(class_names):
        groups.append((index, name, boundaries.label == index))

    frames = []
    for index, name, members in groups:
        n = int(members.sum())
        frame = pd.DataFrame(
            {
                "dimension_index": [ALL, *range(len(boundaries.dimensions))],
                "dimension": [ALL_NAME, *boundaries.dimensions],
                "own": [False, *boundaries.is_task_attribute],
                "class_index": index,
                "class_name": name,
                "n": n,
                "small": n < LEAST_SAMPLES,
                "constant": boundaries.constant,
            }
        )
        if n:
            frame = frame.assign(**_averages(boundaries, members, confidence))
        frames.append(frame)
    key = {column.name for column in PROJECTION_KEY}
    names = [name for name in PROJECTION_SCORES.column_names if name not in key]
    return pd.concat(frames, ignore_index=True).reindex(columns=names)


def _averages(
    boundaries: ModelBoundaries, members: NDArray[np.bool_], confidence: float
) -> dict[str, float | list[float] | NDArray[np.float64]]:
    # Columns for the samples `members`. Arrays (1 + D,): the mean over sensitive dimensions, then every dimension;
    # scalars hold for all rows.
    sensitive = ~boundaries.is_task_attribute
    agreeing = (boundaries.clean == boundaries.decoded)[members]
    tolerances = _with_mean_of_sensitive(boundaries.tolerance[members], sensitive)
    # Without a sensitive dimension the mean over them, the first column, has no bounds.
    bounded = slice(0 if sensitive.any() else 1, None)
    low = np.full(tolerances.shape[1], np.nan)
    high = low.copy()
    # Values in 0..1 are rescaled to -1..1 for the bounds.
    low[bounded], high[bounded] = mean_bounds(2 * tolerances[:, bounded] - 1, bound=1.0, alpha=1 - confidence)
    mean_tolerances = _column_means(tolerances)
    undefined = [np.nan] * len(sensitive)
    sensitive_tolerances = np.array(mean_tolerances[1:])[sensitive]
    return {
        "tolerance": mean_tolerances,
        "tolerance_low": (low + 1) / 2,
        "tolerance_high": (high + 1) / 2,
        "confidence": confidence,
        # NaN if the Deviation of one sample is undefined.
        "deviation": _column_means(_with_mean_of_sensitive(boundaries.deviation[members], sensitive)),
        "up": _means_of_moves(boundaries.up[members], sensitive),
        "down": _means_of_moves(boundaries.down[members], sensitive),
        "tolerance_agreeing": _column_means(tolerances[agreeing]) if agreeing.any() else np.nan,
        "censored": _column_means(_with_mean_of_sensitive(boundaries.censored[members], sensitive)),
        "agreement": float(agreeing.mean()),
        "accuracy": float((boundaries.clean == boundaries.label)[members].mean()),
        "decoded_accuracy": float((boundaries.decoded == boundaries.label)[members].mean()),
        "coupling": [coupling(sensitive_tolerances), *undefined],
        "coupling_entropy": [coupling_entropy(sensitive_tolerances), *undefined],
        "effective_dimensions": [effective_dimensions(sensitive_tolerances), *undefined],
    }


def _with_mean_of_sensitive(values: NDArray[np.float64], sensitive: NDArray[np.bool_]) -> NDArray[np.float64]:
    # (n, 1 + D): the mean over sensitive dimensions of each sample, NaN without any, then every dimension.
    mean = np.full(len(values), np.nan)
    if sensitive.any():
        mean = values.compress(sensitive, axis=1).mean(axis=1)
    return np.column_stack([mean, values])


def _column_means(values: NDArray[np.float64]) -> list[float]:
    # By column, since values.mean(axis=0) rounds otherwise.
    return [float(column.mean()) for column in values.T]


def _means_of_moves(moves: NDArray[np.float64], sensitive: NDArray[np.bool_]) -> list[float]:
    # Rows of all sensitive dimensions together, then of every dimension; without samples at a limit.
    means = [_mean_of_defined(moves[:, sensitive])]
    for column in moves.T:
        means.append(_mean_of_defined(column))
    return means


def _mean_of_defined(moves: NDArray[np.float64]) -> float:
    defined = moves[~np.isnan(moves)]
    return float(defined.mean()) if len(defined) else np.nan
