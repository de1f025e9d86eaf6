"""Named thresholds of probabilistic robustness. Imports nothing heavy, because config.yaml is checked against them."""

from gfscore.core.errors import InputError, unknown

PRESETS = {"SIL1": 1e-1, "SIL2": 1e-2, "SIL3": 1e-3, "SIL4": 1e-4}
"""Largest tolerated share of changed neighbours, by name.

Numbers borrowed from IEC 61508, the upper ends of its bands for the probability of a dangerous failure on demand of a
safety function. They are not conformity with that standard, nor a safety integrity level of anything: the standard
speaks of a whole safety function in its operation, over its life; here one input's artificial perturbations are drawn.
"""


def threshold(kappa: float | str) -> float:
    """Value of kappa in [0, 1]: a number as it is, or a preset by its name. Raises InputError for others."""
    if isinstance(kappa, str):
        if kappa not in PRESETS:
            raise InputError(unknown("kappa", kappa, PRESETS))
        return PRESETS[kappa]
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, or be one of {', '.join(PRESETS)}; got {kappa!r}")
    return float(kappa)
