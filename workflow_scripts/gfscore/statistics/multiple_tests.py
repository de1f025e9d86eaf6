"""Tests of many hypotheses at once: adjusted p-values."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.tolerances import LEVEL_TOLERANCE

METHODS: tuple[Literal["bh"], Literal["by"]] = ("bh", "by")
"""Adjustments for the false discovery rate: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001."""


def is_significant(p_values: ArrayLike, *, level: ArrayLike) -> NDArray[np.bool_]:
    """Whether adjusted p-values are at most a level, up to LEVEL_TOLERANCE."""
    return np.asarray(p_values) <= np.asarray(level) + LEVEL_TOLERANCE


def holm(p_values: ArrayLike, *, family: int) -> NDArray[np.float64]:
    """Adjust p-values so that the family-wise error rate is controlled.

    Parameters
    ----------
    p_values : array_like of shape (H,)
        P-values in [0, 1].
    family : int
        Size of the family, at least H: hypotheses that were not tested count as never rejected.

    Returns
    -------
    ndarray of shape (H,), float64
        Adjusted p-values in [0, 1]. Rejecting where they are at most alpha has a family-wise error rate of at most
        alpha, under any dependence between the tests.

    References
    ----------
    Holm 1979.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * (family - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def false_discovery(p_values: ArrayLike, *, family: int, method: Literal["bh", "by"]) -> NDArray[np.float64]:
    """Adjust p-values so that the false discovery rate is controlled.

    Parameters
    ----------
    p_values, family
        See `holm`.
    method : {"bh", "by"}
        "by" is valid under any dependence, "bh" proven for independent or positively dependent tests only.

    Returns
    -------
    ndarray of shape (H,), float64
        Adjusted p-values in [0, 1].

    Notes
    -----
    # ASSUME: comparisons that share a model are positively dependent; simulations support this, no proof does.

    References
    ----------
    Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001, Theorem 1.3.
    """
    # scipy.stats takes longer to import than most of what imports this module takes.
    from scipy.stats import false_discovery_control

    p_values = np.asarray(p_values, dtype=np.float64)
    untested = np.ones(family - len(p_values))
    return false_discovery_control(np.concatenate([p_values, untested]), method=method)[: len(p_values)]
