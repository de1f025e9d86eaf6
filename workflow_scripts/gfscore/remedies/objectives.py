"""What class offsets are chosen for: the objectives, their standard errors, and the direction that serves them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.networks.offset_settings import OffsetSettings
from gfscore.statistics.classes import normalised_weights

NEAR_WORST = 0.05
"""Distance from the worst class within which classes are raised with it."""


@dataclass(frozen=True)
class Merit:
    """How well class values serve an objective.

    Attributes
    ----------
    value : float
        Higher is better.
    standard_error : float
        Standard error of the value, by the binomial variances of the classes; 0 where `reached` is false.
    reached : bool
        Whether every class is above the floor by the margin, and the mean has lost no more than it may; true without
        such a condition. Where it is false, `value` is the distance from it, negative.
    """

    value: float
    standard_error: float
    reached: bool = True

    def better_than(self, other: Merit) -> bool:
        """Whether these class values serve the objective better than others do."""
        return (self.reached, self.value) > (other.reached, other.value)

    def as_good_as(self, best: Merit) -> bool:
        """Whether both or neither meet the condition, and the value is within the standard error of the best one."""
        return self.reached == best.reached and self.value >= best.value - best.standard_error


def merit_of(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    settings: OffsetSettings,
    *,
    margin: float = 1.0,
    loss: float = 0.0,
) -> Merit:
    """Merit of class values.

    Parameters
    ----------
    values : ndarray of shape (K,)
        Robust accuracy of each class, in [0, 1].
    counts : ndarray of shape (K,), int64
        Images of each class, at least one.
    settings : OffsetSettings
        The objective; the floor; weights of the classes in the mean.
    margin : float
        Standard errors by which every class must be above the floor.
    loss : float
        What the mean has lost against the classifier without offsets.

    Returns
    -------
    Merit
        Its value is the smallest class value (worst_class), minus the largest difference of two (rdi), or the weighted
        mean where all classes reach the floor (floor).
    """
    errors = standard_errors(values, counts)
    worst = values.argmin()
    # most_loss has a default, which the objective floor does not use.
    if settings.objective != "floor" and settings.most_loss is not None and loss > settings.most_loss:
        return Merit(settings.most_loss - loss, 0.0, reached=False)
    if settings.objective == "worst_class":
        return Merit(float(values[worst]), float(errors[worst]))
    if settings.objective == "rdi":
        best = values.argmax()
        return Merit(float(values[worst] - values[best]), float(np.hypot(errors[worst], errors[best])))

    shortfall = shortfall_below_floor(values, counts, settings, margin=margin)
    if shortfall.any():
        return Merit(-float(shortfall.max()), 0.0, reached=False)
    weights = normalised_weights(settings.class_weights, len(values))
    return Merit(float(weights @ values), float(np.linalg.norm(weights * errors)))


def ascent_direction(
    values: NDArray[np.float64], counts: NDArray[np.int64], settings: OffsetSettings, *, margin: float
) -> NDArray[np.float64]:
    """Direction (K,) in which offsets serve the objective.

    For a floor, the classes below it rise by what they lack. For the worst class with a limit on what the mean may
    lose, the classes within NEAR_WORST of the worst rise, the worst most; strong classes are not pushed down, which
    would cost accuracy without helping classes they are not confused with. Otherwise every class moves towards the
    mean.
    """
    if settings.objective == "floor":
        return shortfall_below_floor(values, counts, settings, margin=margin)
    if settings.objective == "worst_class" and settings.most_loss is not None:
        return np.maximum(values.min() + NEAR_WORST - values, 0)
    return values.mean() - values


def shortfall_below_floor(
    values: NDArray[np.float64], counts: NDArray[np.int64], settings: OffsetSettings, *, margin: float
) -> NDArray[np.float64]:
    """What each class lacks (K,) to be above the floor by a margin of standard errors; 0 where nothing."""
    assert settings.floor is not None  # settings of this objective without are refused
    return np.maximum(settings.floor + margin * standard_errors(values, counts) - values, 0)


def standard_errors(values: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard errors (K,) of shares of classes."""
    return np.sqrt(values * (1 - values) / counts)
