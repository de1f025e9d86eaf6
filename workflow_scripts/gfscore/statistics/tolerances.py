"""When numbers count as equal and p-values as significant: a constant for each kind of comparison. Imports nothing."""

SIGNIFICANT = 0.05
"""Level of adjusted p-values at which text and figures call a difference significant.

Gates and intervals have their own levels in the configuration.
"""

FEW_MODELS = 5
"""With fewer, no rank correlation can be significant: of the 4! orders of four models two are already 8%."""

TIE_TOLERANCE = 1e-9
"""Largest difference of tied values: rounding errors must not decide which class is worst, or a rank."""

RANGE_TOLERANCE = 1e-9
"""How far a value may lie outside its range, relative to the length of the range."""

STATISTIC_TOLERANCE = 1e-12
"""How far a permuted statistic may fall short of the observed one and still reach it, of values up to 1."""

LEVEL_TOLERANCE = 1e-12
"""How far a p-value may exceed a level that it attains: in float64, 1 - 0.95 is not 0.05."""

RADIUS_TOLERANCE = 1e-9
"""Relative difference of equal radii, whose rounding differs between processors."""

NORM_TOLERANCE = 1e-6
"""Rounding error of a perturbation's norm by float32 pixels."""
