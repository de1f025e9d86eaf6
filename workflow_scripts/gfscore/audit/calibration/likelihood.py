"""Temperature scaling of one model: log-loss, the temperature that minimises it, and calibration errors of classes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from gfscore.statistics.margins import BLOCK_ELEMENTS, require_temperature


def log_loss(logits: NDArray[np.floating], labels: NDArray[np.integer], temperature: float) -> float:
    """Mean negative log-likelihood of the true class under softmax(z / T).

    Parameters
    ----------
    logits : ndarray (N, K)
    labels : ndarray (N,) of int
    temperature : float
        Above 0.

    Returns
    -------
    float
        In nats, lower is better.
    """
    require_temperature(temperature)
    total = np.empty(len(labels))
    true_class = np.empty(len(labels))
    for rows, shifted in _shifted_blocks(logits, temperature):
        true_class[rows] = np.take_along_axis(shifted, labels[rows, None], axis=1)[:, 0]
        total[rows] = np.exp(shifted, out=shifted).sum(axis=1)
    return float(np.mean(np.log(total) - true_class))


def likelihood_temperature(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, low: float, high: float
) -> float:
    """Temperature that minimises the log-loss of one model on held-out samples (temperature scaling).

    The log-loss is convex in 1/T, so a bounded search finds the minimum. Where every sample is right, the log-loss
    falls with T down to `low`, but rounds to 0 long before.

    Parameters
    ----------
    logits : ndarray (N, K)
        Logits of the held-out samples.
    labels : ndarray (N,) of int
    low, high : float
        Range of temperatures.

    References
    ----------
    Guo et al. 2017.
    """

    def loss(temperature: float) -> float:
        return log_loss(logits, labels, temperature)

    minimum = minimize_scalar(
        lambda log_t: loss(float(np.exp(log_t))),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    # The first of equal ones.
    return min(low, float(np.exp(minimum.x)), high, key=loss)


def class_calibration_error(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, temperature: float, bins: int = 15
) -> NDArray[np.float64]:
    """Expected calibration error of each class's predicted probability.

    For class k: mean over samples of |mean predicted probability of k - share of label k| within equal-width bins.

    Parameters
    ----------
    logits : ndarray (N, K)
    labels : ndarray (N,) of int
    temperature : float
        Above 0.
    bins : int
        Number of bins.

    Returns
    -------
    ndarray (K,) of float64
        In [0, 1], 0 is calibrated; NaN for a class without samples.

    References
    ----------
    Class-wise ECE, Kull et al. 2019.
    """
    require_temperature(temperature)
    classes = logits.shape[1]
    gap = np.zeros(classes * bins)
    for rows, shifted in _shifted_blocks(logits, temperature):
        probability = np.exp(shifted, out=shifted)
        probability /= probability.sum(axis=1, keepdims=True)
        cell = np.minimum((probability * bins).astype(np.intp), bins - 1) + bins * np.arange(classes)
        probability[np.arange(len(probability)), labels[rows]] -= 1
        gap += np.bincount(cell.ravel(), weights=probability.ravel(), minlength=len(gap))
    error = np.abs(gap.reshape(classes, bins)).sum(axis=1) / len(labels)
    error[np.bincount(labels, minlength=classes) == 0] = np.nan
    return error


def _shifted_blocks(logits: NDArray[np.floating], temperature: float) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    # Rows as a slice, and z / T minus its row maximum, a float64 copy. Blocks keep time and memory low, since the
    # likelihood objective passes over all logits hundreds of times.
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        shifted = logits[rows].astype(np.float64)
        shifted /= temperature
        shifted -= shifted.max(axis=1, keepdims=True)
        yield rows, shifted
