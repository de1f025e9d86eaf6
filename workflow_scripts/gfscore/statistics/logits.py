"""Validation of logits and labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.label_numbers import fault_of_labels
from gfscore.statistics.margins import predictions

ROWS_NAMED_IN_ERRORS = 3
PROBABILITY_TOLERANCE = 1e-3
"""Relative tolerance of the sum of a row of probabilities."""
TOTALS = {1: "probabilities", 100: "probabilities in percent", 255: "probabilities as bytes"}
"""Row sums that reveal probabilities in place of logits."""

MOST_CHANGED = 1e-3
"""Share of the samples whose prediction may change by rounding to float32 (near-ties)."""


def require_logits(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int | None = None,
    source: Path | str = "logits",
    allow_probabilities: bool = False,
) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
    """Logits and labels in canonical form: `(logits, labels)`, float32 or float64 (N, K) and int32 (N,).

    Takes `logits` (N, K) of any real dtype, `labels` (N,) integers, the expected number of `classes` K, and `source`,
    the file or argument named in errors. Raises InputError for a wrong shape, K < 2, N = 0, a label outside 0..K-1, a
    non-finite logit (naming its row), and, unless `allow_probabilities`, for probabilities (also in percent or as
    bytes) and values that all lie in [0, 1], some of them above 0.5.
    """
    logits = _array(logits, source)
    if logits.dtype.kind not in "fiu":
        raise InputError(f"{source}: logits have dtype {logits.dtype}; give real numbers (bfloat16 as float32)")
    if logits.dtype not in (np.float32, np.float64):
        logits = logits.astype(np.float32 if logits.dtype.itemsize <= 2 else np.float64)
    labels = _require_labels(labels, source)
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
    outside = np.flatnonzero((labels < 0) | (labels >= k))
    if outside.size:
        row = outside[0]
        raise InputError(
            f"{source}: row {row} has label {labels[row]}, outside 0..{k - 1}; {outside.size} such rows. "
            "Labels count from 0"
        )
    _require_finite(logits, source)
    if not allow_probabilities:
        _refuse_probabilities(logits, source)
    return logits, labels.astype(np.int32)


def require_rows(array: ArrayLike, manifest: Mapping[str, Any], *, source: Path | str) -> None:
    """Raise InputError, naming `source`, if an array has another number of rows than the dataset has samples.

    `manifest` is the dataset's. A scalar passes, since require_logits refuses it for its shape.
    """
    rows, samples = np.shape(array)[:1], manifest["samples"]
    if rows in ((), (samples,)):
        return
    remedy = "give one row per sample, in the order of the dataset"
    if manifest["settings"].get("subset"):
        remedy = "this is its `subset`: give only the rows of the subset, or set subset: null"
    raise InputError(f"{source}: {rows[0]} rows, but {manifest['dataset']} has {samples} samples; {remedy}")


def stored_logits(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, source: Path | str
) -> NDArray[np.float32]:
    """Logits (N, K) as float32, the dtype of the workflow's files.

    Takes the logits and labels that require_logits returned, and `source` for errors. Raises InputError for a number
    beyond float32 (naming its row), and if more than MOST_CHANGED of the predictions would change.
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


def _array(logits: ArrayLike, source: Path | str) -> NDArray[Any]:
    _refuse_masked(logits, source)
    try:
        logits = np.asarray(logits)
    # Tensors of torch that numpy cannot convert: bfloat16, on a GPU, or with a gradient.
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(
            f"{source}: no array of numbers ({error}); pass a torch tensor as tensor.detach().float().cpu().numpy()"
        ) from error
    # The dtype of ml_dtypes, whose values float32 represents exactly.
    return logits.astype(np.float32) if logits.dtype.name == "bfloat16" else logits


def _refuse_masked(values: ArrayLike, source: Path | str) -> None:
    # What lies under a mask would count as if it were measured.
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(values.mask)[0][0])
        raise InputError(f"{source}: row {row} is masked; leave masked rows out, in logits and labels alike")


def _require_labels(labels: ArrayLike, source: Path | str) -> NDArray[Any]:
    _refuse_masked(labels, source)
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise InputError(f"{source}: labels have shape {labels.shape}; expected (samples,)")
    fault = fault_of_labels(labels)
    if fault:
        raise InputError(f"{source}: labels have {fault}")
    return labels.astype(np.int64) if labels.dtype.kind == "f" else labels


def _require_finite(logits, source):
    finite_rows = np.isfinite(logits).all(axis=1)
    if finite_rows.all():
        return
    rows = np.flatnonzero(~finite_rows)
    row = rows[0]
    column = int(np.flatnonzero(~np.isfinite(logits[row]))[0])
    named = ", ".join(str(r) for r in rows[:ROWS_NAMED_IN_ERRORS])
    raise InputError(
        f"{source}: row {row}, class {column} is {logits[row, column]}; {rows.size} rows are not finite "
        f"({named}{', ...' if rows.size > ROWS_NAMED_IN_ERRORS else ''}). A NaN is never scored as 0: "
        "find out why the model overflows (half precision? wrong normalisation?) and extract the logits again"
    )


def _refuse_probabilities(logits, source):
    if logits.min() < 0 or logits.min() == logits.max():
        return
    sums, whole = logits.sum(axis=1, dtype=np.float64), not np.any(logits % 1)
    for total, kind in TOTALS.items():
        # Rounding K shares down to whole numbers loses less than 1 each.
        tolerance = logits.shape[1] if whole and total > 1 else PROBABILITY_TOLERANCE * total
        if logits.max() <= total + tolerance and np.all(np.abs(sums - total) <= tolerance):
            raise InputError(
                f"{source}: every row is non-negative and sums to {total}, so these are {kind}, not logits. "
                "Give the values before the softmax (their logarithm serves for the softmax score); "
                "if they really are logits, say so with allow_probabilities"
            )
    # Outputs of a sigmoid exceed 0.5 somewhere; smaller values may be small logits.
    if 0.5 < logits.max() <= 1:
        raise InputError(
            f"{source}: every value lies in [0, 1], so these are outputs of a sigmoid, or similarities without their "
            "scale, not logits. Give the values before the sigmoid, or multiplied by the scale; "
            "if they really are logits, say so with allow_probabilities"
        )
