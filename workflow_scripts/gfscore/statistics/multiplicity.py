"""Corrections for testing many hypotheses at once."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError

SIGNIFICANT = 0.05
"""Level of adjusted p-values at which text and figures call a difference significant.

Gates and intervals have their own levels in the configuration.
"""


METHODS: tuple[Literal["bh"], Literal["by"]] = ("bh", "by")
"""Adjustments for the false discovery rate: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001."""


def holm(p_values: ArrayLike, *, family: int) -> NDArray[np.float64]:
    """P-values adjusted by Holm 1979, which control the family-wise error rate.

    Takes `p_values` (H,) and the size of the `family`, at least H: hypotheses of the family that were not tested count
    as never rejected. Valid under any dependence between the tests. Returns (H,) float64 in [0, 1].
    """
    p_values = _require_family(p_values, family)
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * (family - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def false_discovery(p_values: ArrayLike, *, family: int, method: Literal["bh", "by"]) -> NDArray[np.float64]:
    """P-values adjusted by one of METHODS, which control the false discovery rate.

    Arguments as holm takes them. "by" is valid under any dependence, "bh" proven for independent or positively
    dependent tests only.
    # ASSUME: comparisons that share a model are positively dependent; simulations support this, no proof does.
    """
    from scipy.stats import false_discovery_control

    p_values = _require_family(p_values, family)
    untested = np.ones(family - len(p_values))
    return false_discovery_control(np.concatenate([p_values, untested]), method=method)[: len(p_values)]


def _require_family(p_values: ArrayLike, family: int) -> NDArray[np.float64]:
    p_values = np.asarray(p_values, dtype=np.float64)
    if family < len(p_values):
        raise InputError(f"a family of {family} hypotheses cannot hold {len(p_values)} tests")
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise InputError("p-values must lie in [0, 1]")
    return p_values
