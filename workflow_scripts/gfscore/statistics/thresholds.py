"""Named thresholds of probabilistic robustness. Imports nothing heavy, because it validates config.yaml."""

from gfscore.core.errors import InputError, unknown

PRESETS = {"SIL1": 1e-1, "SIL2": 1e-2, "SIL3": 1e-3, "SIL4": 1e-4}
"""Largest tolerated share of changed neighbours, by name.

The numbers are the upper ends of the bands of IEC 61508 for the probability of a dangerous failure on demand. They
imply neither conformity with that standard nor a safety integrity level: the standard concerns a whole safety function
over its life, whereas here artificial perturbations of one input are drawn.
"""


def threshold(kappa: float | str) -> float:
    """Value of kappa in [0, 1], given as a number or as the name of a preset. Raises InputError for other values."""
    if isinstance(kappa, str):
        if kappa not in PRESETS:
            raise InputError(unknown("kappa", kappa, PRESETS))
        return PRESETS[kappa]
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, or be one of {', '.join(PRESETS)}; got {kappa!r}")
    return float(kappa)
