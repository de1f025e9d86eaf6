"""The attack-free margin score (GREAT) of single samples, and predicted classes."""

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics import SCALE

BLOCK_ELEMENTS = 1 << 17
"""Elements of a block of rows, so that its float64 copy stays in the processor's cache."""

FEW_CLASSES = 64
"""Up to this many classes a block is stored with one row per class: numpy is slow along many short rows."""

FLOOR = -700.0
"""Smaller exponents are replaced by this one where exp(x) is added to 1: the sum is the same, and underflow is slow."""

MODERATE = 32.0
"""Up to this size of logit / T, exponentials without a shift keep 14 digits and do not overflow."""


def scores(logits: ArrayLike, labels: ArrayLike, *, activation: str, temperature: float = 1.0) -> NDArray[np.float64]:
    """Attack-free margin score g = B max(m, 0) of each sample, m = s_y - max_{j != y} s_j with s = act(z / T).

    Not a certified radius (docs/limits.md).

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Finite logits z.
    labels : array_like of shape (N,)
        True classes y, 0..K-1.
    activation : {"sigmoid", "softmax", "sigmoid-of-softmax", "softmax-of-sigmoid"}
        Output layer.
    temperature : float
        T > 0, which divides the logits (the inner outputs, for a composed layer).

    Returns
    -------
    ndarray of shape (N,), float64
        In [0, B], B = sqrt(pi/2), higher is better; 0 for a misclassified sample and for a tie at the top.

    Raises
    ------
    InputError
        For a temperature that is not a positive number, or an unknown activation.

    References
    ----------
    GREAT Score (Li et al. 2024); GF-Score, Eq. 1.
    """
    require_temperature(temperature)
    require_activation(activation)
    logits = real_logits(logits)
    labels = np.asarray(labels)
    result = np.zeros(len(labels))
    if activation == "softmax" and logits.shape[1] <= FEW_CLASSES:
        # As Python floats: float32 would overflow at an extreme temperature.
        lowest = float(logits.min(initial=0))
        highest = float(logits.max(initial=0))
        if -MODERATE * temperature <= lowest and highest <= MODERATE * temperature:
            _softmax_without_shift(logits, labels, temperature, out=result)
            return result
    # Quotients that overflow become infinite, and their exponentials are correct.
    with np.errstate(over="ignore"):
        for rows, z, true_logit, rival_logit in _worth_scoring(logits, labels, activation):
            margins_at = ACTIVATIONS[activation](z, true_logit, rival_logit, once=True)
            result[rows] = margins_at(float(temperature))
    result *= SCALE
    return result


def _worth_scoring(logits, labels, activation):
    # Blocks of _blocks; with many classes only the correctly classified rows, since all others score 0.
    every_class = activation != "sigmoid"
    few_classes = logits.shape[1] <= FEW_CLASSES
    for rows, z, true_logit, rival_logit in _blocks(logits, labels, every_class=every_class and few_classes):
        if few_classes or not every_class:
            yield rows, z, true_logit, rival_logit
        else:
            correct = np.flatnonzero(true_logit > rival_logit)
            chosen = rows.start + correct
            yield chosen, logits[chosen].T, true_logit[correct], rival_logit[correct]


def _softmax_without_shift(logits, labels, temperature, *, out):
    # Softmax scores at one temperature from moderate logits, a sixth faster than by differences from the true logit.
    # All operations are in place.
    blocks = _blocks(logits, labels, every_class=True, replacement=FLOOR * temperature)
    for rows, z, true_logit, rival_logit in blocks:
        gap = _gap(true_logit, rival_logit)
        if temperature != 1:
            np.divide(z, temperature, out=z)
            np.divide(true_logit, temperature, out=true_logit)
            np.divide(gap, temperature, out=gap)
        total = np.exp(z, out=z).sum(axis=0)
        true_exponential = np.exp(true_logit, out=true_logit)
        total += true_exponential
        true_exponential *= _complement(gap)
        np.divide(true_exponential, total, out=out[rows])
    out *= SCALE


def require_activation(activation: str) -> None:
    """Raise InputError unless the activation is one of ACTIVATIONS."""
    if activation not in ACTIVATIONS:
        raise InputError(f"activation {activation!r} is unknown; choose one of {', '.join(ACTIVATIONS)}")


def require_temperature(temperature: float) -> None:
    """Raise InputError unless the temperature is a positive finite number."""
    if not (isinstance(temperature, Real) and 0 < temperature < math.inf):
        raise InputError(f"temperature must be a positive number, got {temperature!r}")


def true_and_rival_logits(logits: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logit of the true class, and the largest logit of the other classes.

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Logits.
    labels : array_like of shape (N,)
        True classes, 0..K-1.

    Returns
    -------
    true_logit, rival_logit : ndarray of shape (N,), float64
        A sample is classified correctly where the first is larger.
    """
    logits = real_logits(logits)
    labels = np.asarray(labels)
    true_logit = np.empty(len(labels))
    rival_logit = np.empty(len(labels))
    for rows, _, block_true, block_rival in _blocks(logits, labels):
        true_logit[rows] = block_true
        rival_logit[rows] = block_rival
    return true_logit, rival_logit


def predictions(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.int32]:
    """Predicted class of each sample; a tie at the top counts against the true class.

    So a sample is correct exactly when its logit margin is positive, and the softmax score tends to B times accuracy as
    T -> 0.

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Logits.
    labels : array_like of shape (N,)
        True classes, 0..K-1.

    Returns
    -------
    ndarray of shape (N,), int32
        Class indices 0..K-1.

    Raises
    ------
    InputError
        For NaN among the logits.
    """
    logits = real_logits(logits)
    labels = np.asarray(labels)
    predicted = labels.astype(np.int32)
    for rows, _, true_logit, rival_logit in _blocks(logits, labels):
        # Negated, so that NaN, for which every comparison is false, counts as wrong.
        wrong = rows.start + np.flatnonzero(~(true_logit > rival_logit))
        rivals = logits[wrong]
        if np.isnan(rivals).any():
            raise InputError(
                "the classifier returns NaN in place of a logit, so no class can be predicted; look for a division "
                "by 0 or a logarithm of 0 in the model"
            )
        rivals[np.arange(len(wrong)), labels[wrong]] = -np.inf
        predicted[wrong] = rivals.argmax(axis=1)
    return predicted


def real_logits(logits: ArrayLike) -> NDArray[np.floating]:
    """Logits (N, K) as float32 or float64, other types converted to float64."""
    logits = np.asarray(logits)
    return logits if logits.dtype in (np.float32, np.float64) else logits.astype(np.float64)


def _blocks(logits, labels, *, every_class=False, replacement=None):
    # Yields for each block: the rows; if `every_class`, all logits (K, rows) float64, else None; the logit of the true
    # class and the largest other one, (rows,) float64. `replacement` stands for the true logit among all.
    n, k = logits.shape
    step = min(n, max(1, BLOCK_ELEMENTS // k))
    # Allocated once, since allocating costs as much as the arithmetic.
    buffer = np.empty(step * k, np.float64 if every_class else logits.dtype)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        count = rows.stop - start
        flat = buffer[: count * k]
        if k > FEW_CLASSES:
            z = flat.reshape(count, k).T
            position = np.arange(0, count * k, k) + labels[rows]
        else:
            z = flat.reshape(k, count)
            position = np.arange(count)
            position += labels[rows] * np.intp(count)
        z[...] = logits[rows].T
        true_logit = flat.take(position)
        # Excludes the true class from the maximum.
        flat[position] = -np.inf if replacement is None else replacement
        rival_logit = z.max(axis=0)
        if every_class and replacement is None:
            flat[position] = true_logit
        yield (
            rows,
            z if every_class else None,
            true_logit.astype(np.float64, copy=False),
            rival_logit.astype(np.float64, copy=False),
        )


# ---- activations ----

# Each activation takes logits (K, rows) in any layout (unused by sigmoid), the logit of the true class and the largest
# other one, (rows,) float64, and `once`, whether it is called for one temperature only and may overwrite them. It does
# all work that is independent of the temperature, and returns a function from T to the margins max(m, 0), (rows,). A
# misclassified row has gap 0 and so margin 0, since all other factors are finite or infinite divisors.


def _gap(true_logit, rival_logit):
    gap = true_logit - rival_logit
    return np.maximum(gap, 0, out=gap)


def _sigmoid_margin(true_logit, rival_logit, gap):
    # Difference of the sigmoids of the two logits without cancellation; their gap >= 0 is passed, since both may be
    # infinite. Overwrites all three.
    np.negative(true_logit, out=true_logit)
    for exponents in (true_logit, rival_logit):
        np.maximum(exponents, FLOOR, out=exponents)
        np.exp(exponents, out=exponents)
        np.add(exponents, 1, out=exponents)
    rival_logit *= true_logit
    return np.divide(_complement(gap), rival_logit, out=rival_logit)


def _complement(exponents):
    # 1 - exp(-x) without cancellation, in place.
    np.negative(exponents, out=exponents)
    np.expm1(exponents, out=exponents)
    return np.negative(exponents, out=exponents)


def _sigmoid(_, true_logit, rival_logit, *, once=False):
    gap = _gap(true_logit, rival_logit)

    def margins(temperature: float) -> NDArray[np.float64]:
        if once and temperature == 1:
            return _sigmoid_margin(true_logit, rival_logit, gap)
        return _sigmoid_margin(true_logit / temperature, rival_logit / temperature, gap / temperature)

    return margins


def _softmax(z, true_logit, rival_logit, *, once=False):
    gap = _gap(true_logit, rival_logit)
    differences = np.subtract(z, true_logit, out=z if z.dtype == true_logit.dtype else None)
    lowest = differences.min(initial=0)
    # All operations are in place.
    scaled = differences if once else np.empty_like(differences)

    def margins(temperature: float) -> NDArray[np.float64]:
        exponents = differences if temperature == 1 else np.divide(differences, temperature, out=scaled)
        if lowest / temperature < FLOOR:
            exponents = np.maximum(exponents, FLOOR, out=scaled)
        total = np.exp(exponents, out=scaled).sum(axis=0)
        return np.divide(_complement(gap / temperature), total, out=total)

    return margins


def _sigmoid_of_softmax(z, true_logit, rival_logit, *, once=False):
    gap = _gap(true_logit, rival_logit)
    total = np.exp(np.minimum(z - true_logit, 0)).sum(axis=0)
    true_output = 1 / total
    largest_output = np.exp(-gap) / total
    output_gap = -np.expm1(-gap) / total

    def margins(temperature: float) -> NDArray[np.float64]:
        return _sigmoid_margin(true_output / temperature, largest_output / temperature, output_gap / temperature)

    return margins


def _softmax_of_sigmoid(z, true_logit, rival_logit, *, once=False):
    # The outputs of the sigmoid replace the logits; their differences are computed without cancellation.
    smaller = np.minimum(z, true_logit)
    differences = -_sigmoid_margin(true_logit.copy(), smaller, true_logit - smaller)
    nearest = -_sigmoid_margin(true_logit.copy(), rival_logit.copy(), _gap(true_logit, rival_logit))
    return _softmax(differences, np.zeros(len(true_logit)), nearest, once=once)


ACTIVATIONS = {
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "sigmoid-of-softmax": _sigmoid_of_softmax,
    "softmax-of-sigmoid": _softmax_of_sigmoid,
}
"""Output layers by name; the two composed ones are sigmoid(softmax(z) / T) and softmax(sigmoid(z) / T)."""
