"""Reader of users' files of certified radii."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.tables.binary_files import unreadable
from gfscore.tables.csv_files import read_csv

COLUMNS = ("idx", "label", "predict", "radius", "correct")
"""Columns that a file must have."""

ABSTAINED = -1
"""Prediction of a smoothed classifier that abstains."""


def read_certified_radii(
    path: Path | str, *, labels: NDArray[np.integer], classes: int, largest_radius: float
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Certified radii of a smoothed classifier, in the tab-separated format of Cohen et al. 2019 (also gzipped).

    Its columns are idx, label, predict, radius, correct, time: idx is the position of the sample in the dataset,
    predict -1 an abstention, whose radius is 0 or missing.

    Parameters
    ----------
    path : Path or str
        File to read.
    labels : ndarray of shape (N,)
        True classes of the dataset, 0..K-1.
    classes : int
        Number of classes K.
    largest_radius : float
        Upper end of the measure's range, in the unit of the images' l2 distance.

    Returns
    -------
    rows : ndarray of shape (n,), int32
        Positions of the samples in the dataset, in the order of the file.
    prediction : ndarray of shape (n,), int32
        -1 for an abstention.
    radius : ndarray of shape (n,), float64
        In 0..`largest_radius`; 0 for an abstention.

    Raises
    ------
    InputError
        Naming file and row, for missing columns, an idx that is repeated or outside 0..N-1, a label that differs from
        the dataset's, a predict outside -1..K-1, a correct that is not 0 or 1 or contradicts label and predict, and a
        radius that is negative, not finite, above `largest_radius`, or positive at an abstention.
    """
    try:
        frame = read_csv(path, separator="\t")
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` in its entry") from error
    except Exception as error:
        # The reader raises errors of many types for damaged files.
        raise unreadable(path, "tab-separated text", error) from error
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; the columns must be {', '.join(COLUMNS)}, time")
    if frame.empty:
        raise InputError(f"{path}: holds a header and no samples; write the file again")

    try:
        rows = _whole(frame["idx"])
        label = _whole(frame["label"])
        prediction = _whole(frame["predict"])
        correct = _whole(frame["correct"])
        radius = frame["radius"].to_numpy(np.float64, copy=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{path}: a value is no number of the expected type ({error}); write the file again"
        ) from error

    _refuse(path, (rows < 0) | (rows >= len(labels)), rows, f"idx is outside 0..{len(labels) - 1}")
    _refuse(path, pd.Series(rows).duplicated().to_numpy(), rows, "idx is repeated")
    _refuse(path, label != labels[rows], label, "label differs from the dataset's")

    outside = (prediction < ABSTAINED) | (prediction >= classes)
    _refuse(path, outside, prediction, f"predict is outside -1..{classes - 1}")

    abstained = prediction == ABSTAINED
    radius[abstained & np.isnan(radius)] = 0
    possible = (radius >= 0) & (radius <= largest_radius)
    _refuse(path, ~possible, radius, f"radius is not within 0..{largest_radius:g}")
    _refuse(path, abstained & (radius > 0), radius, "radius of an abstention is not 0")

    _refuse(path, ~np.isin(correct, (0, 1)), correct, "correct is neither 0 nor 1")
    _refuse(path, (correct == 1) != (prediction == label), correct, "correct disagrees with predict and label")
    return rows, prediction, radius


def _whole(column: pd.Series) -> NDArray[np.int32]:
    # A fraction, an infinite number or one beyond int32 differs from its conversion to int32.
    values = column.to_numpy()
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int32)
    if (integers != values).any():
        raise ValueError(f"{column.name} is not whole, or too large")
    return integers


def _refuse(path: Path | str, bad: NDArray[np.bool_], values: NDArray[Any], fault: str) -> None:
    if bad.any():
        # Row 1 is the header; read_csv passes over blank lines and counts like this.
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{path}: row {row + 2}: {fault} ({values[row]}); {int(bad.sum())} such rows; give the file that was "
            "computed on this dataset, and a `largest_radius` of the measure not below its radii"
        )
