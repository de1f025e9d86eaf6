"""Validation of logits and labels."""

from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.errors import InputError
from gfscore.core.labels import fault_of_labels
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.statistics.margins import predictions

Number = TypeVar("Number", bound=np.number)

ROWS_NAMED_IN_ERRORS = 3

PROBABILITY_TOLERANCE = 1e-3
"""Relative tolerance of the sum of a row of probabilities."""

TOTALS = {1: "probabilities", 100: "probabilities in percent", 255: "probabilities as bytes"}
"""Row sums that reveal probabilities in place of logits."""

ONE_SIGMOID, SIGMOIDS = "one sigmoid", "sigmoids"
"""Other outputs that are no logits: the probability of one class, and values in [0, 1] of each class."""

FLOOR = float(np.finfo(np.float32).tiny)
"""Smallest probability whose logarithm is taken, 1.18e-38: zeros and smaller ones count as this one."""

LOGARITHMS_TAKEN = f"logarithms of the model's probabilities, none below {FLOOR:.3g}"
"""What the logits of such a model are, in words."""

MOST_CHANGED = 1e-3
"""Share of the samples whose prediction may change by rounding to float32 (near-ties)."""


def require_logits(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int | None = None,
    source: Path | str = "logits",
    allow_probabilities: Probabilities = False,
) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
    """Check logits and labels, and bring them into canonical form.

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Logits of any real dtype. Where 2 classes are expected, one column z, (N, 1) or (N,), stands for the logits (0,
        z).
    labels : array_like of shape (N,)
        Whole numbers 0..K-1.
    classes : int, optional
        The expected number of classes K.
    source : Path or str
        The file or argument that errors name.
    allow_probabilities : bool or "logarithms"
        Whether values that look like probabilities are logits; with "logarithms" they are probabilities, of which the
        logarithms are returned (see log_probabilities).

    Returns
    -------
    logits : ndarray of shape (N, K), float32 or float64
        Finite.
    labels : ndarray of shape (N,), int32
        In 0..K-1.

    Raises
    ------
    InputError
        For a wrong shape, K < 2, N = 0, a label outside 0..K-1, a non-finite logit (naming its row), and, unless they
        are allowed, for probabilities (also in percent or as bytes) and values that all lie in [0, 1], some of them
        above 0.5.
    """
    values = _array(logits, source)
    if values.dtype.kind not in "fiu":
        raise InputError(f"{source}: logits have dtype {values.dtype}; give real numbers (bfloat16 as float32)")
    number_type = values.dtype
    if number_type not in (np.float32, np.float64):
        number_type = np.dtype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    logits = values.astype(number_type, copy=False)
    labels = whole_labels(labels, f"{source}: labels")
    if classes == 2 and is_one_column(logits):
        if logits.size and not allow_probabilities:
            low, high = logits.min(), logits.max()
            if 0 <= low < high <= 1:
                raise ProbabilitiesGiven(source, ONE_SIGMOID)
        logits = both_classes(logits, probabilities=allow_probabilities == LOGARITHMS)

    _require_shape(logits, labels, classes, source)
    require_labels_of_classes(labels, logits.shape[1], source)
    _require_finite(logits, source)

    if allow_probabilities == LOGARITHMS:
        logits = log_probabilities(logits, source=source)
    elif not allow_probabilities:
        kind = probabilities_in(logits)
        if kind is not None:
            raise ProbabilitiesGiven(source, kind)
    return logits, labels.astype(np.int32)


def _array(logits: ArrayLike, source: Path | str) -> NDArray[np.generic]:
    refuse_masked(logits, source)
    try:
        logits = np.asarray(logits)
    # Tensors of torch that numpy cannot convert: bfloat16, on a GPU, or with a gradient.
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            f"{source}: no array of numbers ({error}); pass a torch tensor as tensor.detach().float().cpu().numpy()"
        ) from error
    # The dtype of ml_dtypes, whose values float32 represents exactly.
    return logits.astype(np.float32) if logits.dtype.name == "bfloat16" else logits


def refuse_masked(values: ArrayLike, source: Path | str) -> None:
    """Raise InputError, naming `source` and a row, for masked values, which would count as if they were measured."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(values.mask)[0][0])
        raise InputError(f"{source}: row {row} is masked; leave masked rows out, in logits and labels alike")


def whole_labels(labels: ArrayLike, name: str) -> NDArray[np.integer]:
    """Labels (N,) as whole numbers, of whatever size; InputError, beginning with `name`, for others."""
    refuse_masked(labels, name)
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise InputError(f"{name} have shape {labels.shape}; expected (samples,)")
    fault = fault_of_labels(labels)
    if fault:
        raise InputError(f"{name} have {fault}")
    return labels.astype(np.int64) if labels.dtype.kind == "f" else labels


def _require_shape(logits, labels, classes, source):
    if logits.ndim != 2:
        raise InputError(f"{source}: logits have shape {logits.shape}; expected (samples, classes)")
    n, k = logits.shape
    if k < 2:
        raise InputError(f"{source}: {k} class; class-wise robustness needs at least 2 classes")
    if classes is not None and k != classes:
        raise InputError(f"{source}: {k} logits per row, but {classes} classes are declared; check the class list")
    if n == 0:
        raise InputError(f"{source}: no samples")
    if len(labels) != n:
        raise InputError(f"{source}: {n} rows of logits but {len(labels)} labels; give one label per row")


def require_labels_of_classes(labels: NDArray[np.integer], classes: int, source: Path | str) -> None:
    """Raise InputError, naming `source` and the first row at fault, unless all labels are classes 0..K-1."""
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        row = outside[0]
        raise InputError(
            f"{source}: row {row} has label {labels[row]}, outside 0..{classes - 1}; {outside.size} such rows. "
            "Labels count from 0"
        )


def _require_finite(logits, source):
    finite_rows = np.isfinite(logits).all(axis=1)
    if finite_rows.all():
        return
    rows = np.flatnonzero(~finite_rows)
    row = rows[0]
    column = int(np.flatnonzero(~np.isfinite(logits[row]))[0])
    listed = ", ".join(str(r) for r in rows[:ROWS_NAMED_IN_ERRORS])
    if rows.size > ROWS_NAMED_IN_ERRORS:
        listed += ", ..."
    raise InputError(
        f"{source}: row {row}, class {column} is {logits[row, column]}; {rows.size} rows are not finite ({listed}). A "
        "NaN is never scored as 0: find out why the model overflows (half precision? wrong normalisation?) and extract "
        "the logits again"
    )


def is_one_column(values: NDArray[np.generic]) -> bool:
    """Whether an array holds one number per sample, (N,) or (N, 1): the output of a binary classifier."""
    return values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)


def both_classes(values: NDArray[Number], *, probabilities: bool) -> NDArray[Number]:
    """Columns of both classes from the one output of a binary classifier.

    Parameters
    ----------
    values : ndarray of shape (N,) or (N, 1)
        Logits z of the second class, or its probabilities p.
    probabilities : bool
        Whether they are probabilities.

    Returns
    -------
    ndarray of shape (N, 2)
        (0, z), whose softmax is the sigmoid of z; or (1 - p, p).
    """
    second = values.reshape(-1)
    first = 1 - second if probabilities else np.zeros_like(second)
    return np.column_stack([first, second])


def require_rows(array: ArrayLike, dataset: DatasetManifest, *, source: Path | str) -> None:
    """Raise InputError, naming `source`, if an array has another number of rows than the dataset has samples.

    A scalar passes, since require_logits refuses it for its shape.
    """
    rows = np.shape(array)[:1]
    if rows in ((), (dataset.samples,)):
        return
    remedy = "give one row per sample, in the order of the dataset"
    if dataset.is_subset:
        remedy = "this is its `subset`: give only the rows of the subset, or set subset: null"
    raise InputError(f"{source}: {rows[0]} rows, but {dataset.dataset} has {dataset.samples} samples; {remedy}")


def stored_logits(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, source: Path | str
) -> NDArray[np.float32]:
    """Logits as float32, the dtype of the workflow's files.

    Parameters
    ----------
    logits : ndarray of shape (N, K), float32 or float64
        As require_logits returned them.
    labels : ndarray of shape (N,)
        True classes.
    source : Path or str
        The file or argument that errors name.

    Returns
    -------
    ndarray of shape (N, K), float32
        Not a copy where they are float32 already.

    Raises
    ------
    InputError
        For a number beyond float32 (naming its row), and if more than MOST_CHANGED of the predictions would change.
    """
    if np.can_cast(logits.dtype, np.float32):
        return logits.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):
        stored = logits.astype(np.float32, copy=False)
    beyond = np.flatnonzero(~np.isfinite(stored).all(axis=1))
    if beyond.size:
        raise InputError(
            f"{source}: row {beyond[0]} holds a number beyond the range of float32, in which logits are stored "
            f"({len(beyond)} such rows); divide all logits by one number, which acts as a temperature"
        )
    changed = int(np.count_nonzero(predictions(stored, labels) != predictions(logits, labels)))
    if changed > MOST_CHANGED * len(logits):
        raise InputError(
            f"{source}: stored in float32, {changed} of {len(logits)} predictions would change, because the logits of "
            "a row differ too little relative to their size; subtract a common offset from each row, or multiply all "
            "logits by one number, which acts as a temperature"
        )
    return stored


# ---- probabilities in place of logits ----


def log_probabilities(values: NDArray[np.number], *, source: object) -> NDArray[np.floating]:
    """Logarithms of probabilities, whose softmax gives the probabilities back.

    Parameters
    ----------
    values : ndarray of shape (N, K)
        Probabilities. One below FLOOR, zero included, counts as FLOOR, so that its logarithm is finite (-87.3).
    source : object
        The file or argument that errors name.

    Returns
    -------
    ndarray of shape (N, K)
        Finite logits.

    Raises
    ------
    InputError
        Where a row has a negative number or does not sum to 1: independent sigmoids, percent and logits are no
        distribution over the classes.
    """
    sums = values.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero((values < 0).any(axis=1) | (np.abs(sums - 1) > PROBABILITY_TOLERANCE))
    if wrong.size:
        row = int(wrong[0])
        lowest = values[row].min()
        fault = f"sums to {sums[row]:.6g}" if lowest >= 0 else f"holds {lowest:.6g}"
        raise InputError(
            f"{source}: row {row} {fault}, so it is no distribution over the classes ({wrong.size} such rows), and "
            "logarithms serve only for probabilities that sum to 1; give logits, the values before the softmax or "
            "the sigmoid"
        )
    return np.log(np.maximum(values, FLOOR))


def probabilities_in(values: NDArray[np.floating]) -> str | None:
    """Recognise outputs that look like no logits.

    Parameters
    ----------
    values : ndarray of shape (N, K)
        Outputs of a classifier.

    Returns
    -------
    str or None
        None for logits; else one of the values of TOTALS, "one sigmoid" for (0, p) of a binary classifier, or
        "sigmoids" for values that all lie in [0, 1], some of them above 0.5.
    """
    lowest = values.min()
    highest = values.max()
    if lowest < 0 or lowest == highest:
        return None
    # Outputs of a sigmoid exceed 0.5 somewhere; smaller values may be small logits.
    within_unit = 0.5 < highest <= 1
    if within_unit and values.shape[1] == 2 and not values[:, 0].any():
        return ONE_SIGMOID

    sums = values.sum(axis=1, dtype=np.float64)
    whole_numbers = not np.any(values % 1)
    for total, kind in TOTALS.items():
        # Rounding K shares down to whole numbers loses less than 1 each.
        tolerance = values.shape[1] if whole_numbers and total > 1 else PROBABILITY_TOLERANCE * total
        if highest <= total + tolerance and np.all(np.abs(sums - total) <= tolerance):
            return kind
    return SIGMOIDS if within_unit else None


class ProbabilitiesGiven(InputError):
    """Outputs that are no logits: `kind` is a result of probabilities_in, `fault` what the values show, in words."""

    def __init__(self, source: Path | str, kind: str) -> None:
        """Error that names the source of the outputs."""
        self.kind = kind
        if kind == ONE_SIGMOID:
            self.fault = (
                "every value lies in [0, 1], so these are probabilities of one class, the output of a sigmoid, not "
                "logits"
            )
            remedy = "Give the values before the sigmoid, or take logarithms by allow_probabilities: logarithms"
        elif kind == SIGMOIDS:
            self.fault = (
                "every value lies in [0, 1], so these are outputs of a sigmoid, or similarities without their scale, "
                "not logits"
            )
            remedy = "Give the values before the sigmoid, or multiplied by the scale"
        else:
            total = next(total for total, words in TOTALS.items() if words == kind)
            self.fault = f"every row is non-negative and sums to {total}, so these are {kind}, not logits"
            remedy = "Give the values before the softmax"
            if total == 1:
                remedy += ", or take their logarithms by allow_probabilities: logarithms"
        super().__init__(
            f"{source}: {self.fault}. {remedy}; if they really are logits, say so with allow_probabilities"
        )
