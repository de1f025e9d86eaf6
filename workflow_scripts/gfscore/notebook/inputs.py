"""What an audit in memory takes: arrays, data frames and torch tensors of one or several models, labels, and names."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.labels import class_indices
from gfscore.core.names import spelled_alike
from gfscore.statistics import logits
from gfscore.statistics.tolerances import RANGE_TOLERANCE

ONE_MODEL = "model"
"""Name of a model that has none."""

MOST_CLASSES = 1_000_000
"""Classes that labels may name where nothing says how many there are; beyond, a label is taken for a mistake."""

ALIGNED = "give both in one order, with the same index, or as arrays (.to_numpy())"
"""Remedy for data frames whose rows are named differently."""

BFLOAT16_EPS = 2**-7
"""Distance from 1 to the next number of bfloat16, which numpy lacks."""


def array_of(data: Any, *, name: str) -> NDArray[Any]:
    """Array of an array, a list, a data frame, a series, or a torch tensor on any device; float32 of bfloat16.

    Raises InputError, naming the argument `name`, for an array with masked rows.
    """
    logits.refuse_masked(data, name)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, torch.Tensor):
        data = data.detach().cpu()
        # numpy has no bfloat16.
        return data.float().numpy() if data.dtype == torch.bfloat16 else data.numpy()
    return np.asarray(data)


def by_model(data: Any) -> dict[str, Any]:
    """Data of each model by its name, from a mapping, or of one model."""
    if not isinstance(data, Mapping):
        return {ONE_MODEL: data}
    if not data:
        raise InputError("no model: the mapping of names to arrays is empty")
    names = require_different(data, what="model")
    return dict(zip(names, data.values(), strict=True))


def columns_by_model(data: Any) -> dict[str, Any]:
    """Values of each model by its name, from a mapping or the columns of a data frame, or of one model."""
    if isinstance(data, pd.DataFrame):
        names = require_different(data.columns, what="model")
        return data.set_axis(names, axis="columns").to_dict("series")
    return by_model(data)


def require_different(names: Any, *, what: str) -> list[str]:
    """Names as text; InputError where two are equal, or alike to the eye."""
    texts = list(map(str, names))
    for position, text in enumerate(texts):
        if text in texts[:position]:
            raise InputError(f"{what} name {text!r} stands more than once; names must differ")
    alike = spelled_alike(texts)
    if alike:
        raise InputError(
            f"{what} names {alike[0]!a} and {alike[1]!a} differ in blanks or spelling in Unicode alone; names must "
            "differ to the eye"
        )
    return texts


def class_names_of(class_names: Sequence[Any] | None, classes: int, *, per: str) -> list[str]:
    """Names of K classes, by default their indices; `per` says in errors what has K columns or labels."""
    if class_names is None:
        return list(map(str, range(classes)))
    if len(class_names) != classes:
        raise InputError(f"{len(class_names)} class names for {classes} {per}; give one name per class")
    return require_different(class_names, what="class")


def require_aligned(data: Any, labels: Any, *, name: str) -> None:
    """Raise InputError where both are of pandas, and their rows are named differently: pandas would reorder them.

    Also for labels that are a column of the data, which would be a class.
    """
    if not isinstance(data, pd.DataFrame | pd.Series) or not isinstance(labels, pd.DataFrame | pd.Series):
        return
    if len(data) == len(labels) and not data.index.equals(labels.index):
        raise InputError(f"{name}: its index differs from that of the labels; {ALIGNED}")
    column = getattr(labels, "name", None)
    if isinstance(data, pd.DataFrame) and isinstance(column, str) and column in data.columns:
        raise InputError(f"{name}: its column {column!r} is that of the labels; leave it out")


def labels_of(labels: Any, class_names: Sequence[str] | None) -> NDArray[Any]:
    """Labels as an array; names of classes become their positions in `class_names`."""
    array = array_of(labels, name="labels")
    if array.dtype.kind not in "OSUT":
        return array
    if not are_names(array):
        # Whole numbers in a column of objects, as pandas makes it, are numbers.
        return np.asarray(array.tolist())
    if class_names is None:
        raise InputError("labels are names; give class_names, all of them in the order of the classes")
    return class_indices(array.astype(object), class_names, "labels")


def are_names(labels: NDArray[Any]) -> bool:
    """Whether any label is text."""
    return labels.dtype.kind in "SUT" or any(isinstance(label, str) for label in labels.ravel().tolist())


def checked_labels(labels: NDArray[Any], classes: int | None) -> NDArray[np.int32]:
    """Labels (N,) int32; InputError unless they are whole numbers 0..K-1, at least one; K may be unknown."""
    numbers = logits.whole_labels(labels, "labels")
    if not len(numbers):
        raise InputError("no samples")
    logits.require_labels_of_classes(numbers, MOST_CLASSES if classes is None else classes, "labels")
    return numbers.astype(np.int32)


def interval_of(
    data: Any, samples: int, *, value_range: tuple[float, float], name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Smallest and largest value of each sample, and whether values can only be 0 or 1.

    Parameters
    ----------
    data : array-like (N,), or pair (low, high) of them
        Known values, or a tuple of the smallest and the largest value of each sample.
    samples : int
        Number of samples N.
    value_range : (float, float)
        Lowest and highest possible value.
    name : str
        The model, which errors name.

    Returns
    -------
    low, high : ndarray (N,) of float64
        Within the range.
    binary : bool
        Whether the range is (0, 1), and the type of the data holds no number between.

    Raises
    ------
    InputError
        For another shape, NaN, a value outside the range, and where low is above high.
    """
    ends = data if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) else (data,)
    lowest, highest = value_range
    arrays = []
    binary = (lowest, highest) == (0, 1)
    for end in ends:
        array = array_of(end, name=name)
        _require_numbers(array, samples, name=name)
        values = array.astype(np.float64)
        slack = RANGE_TOLERANCE * (highest - lowest)
        if array.dtype.kind == "f":
            eps = BFLOAT16_EPS if str(getattr(end, "dtype", "")) == "torch.bfloat16" else np.finfo(array.dtype).eps
            slack = max(slack, float(eps) * max(abs(lowest), abs(highest)))
        outside = np.flatnonzero((values < lowest - slack) | (values > highest + slack))
        if outside.size:
            row = outside[0]
            raise InputError(f"{name}: row {row} is {values[row]:g}, outside value_range {lowest:g} to {highest:g}")
        # A narrower type than float64 may round a value at an end of the range to one beyond it.
        arrays.append(values.clip(lowest, highest))
        binary = binary and array.dtype.kind in "biu"

    low, high = arrays[0], arrays[-1]
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        row = crossed[0]
        raise InputError(f"{name}: row {row} has low {low[row]:g} above high {high[row]:g}; give a pair (low, high)")
    return low, high, binary


def _require_numbers(array: NDArray[Any], samples: int, *, name: str) -> None:
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: values have dtype {array.dtype}; give real numbers")
    if array.ndim != 1:
        raise InputError(
            f"{name}: values have shape {array.shape}; expected (samples,): several models as a dict of names to "
            "arrays, undecided values as a tuple (low, high)"
        )
    if len(array) != samples:
        raise InputError(f"{name}: {len(array)} values for {samples} labels; give one value per label")
    missing = np.flatnonzero(np.isnan(array.astype(np.float64)))
    if missing.size:
        raise InputError(
            f"{name}: row {missing[0]} is nan, {missing.size} such rows; give a tuple (low, high) with both ends of "
            "the range where a value is unknown"
        )


def range_of(value_range: Any) -> tuple[float, float]:
    """Lowest and highest possible value; InputError unless they are two finite numbers from 0 on, in this order."""
    try:
        lowest, highest = (float(end) for end in value_range)
    except (TypeError, ValueError) as error:
        raise InputError(f"value_range must be a pair (lowest, highest), got {value_range!r}") from error
    if not (np.isfinite([lowest, highest]).all() and lowest < highest):
        raise InputError(f"value_range must be two finite numbers, the lowest first, got {value_range!r}")
    if lowest < 0:
        raise InputError(
            f"value_range begins at {lowest:g}, but disparity is of values from 0 on; add {-lowest:g} to values and "
            "range"
        )
    return lowest, highest
