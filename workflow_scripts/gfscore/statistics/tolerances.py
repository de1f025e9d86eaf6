"""Level of significance, and tolerances for numbers that are equal but for rounding. Imports nothing."""

SIGNIFICANT = 0.05
"""Level of adjusted p-values at which text and figures call a difference significant.

Gates and intervals have their own levels in the configuration.
"""

FEW_MODELS = 5
"""Fewest models whose rank correlations are judged.

With four none can be significant: two of their 4! orders have a correlation of 1 or -1, and 2/24 exceeds 5%.
"""

TIE_TOLERANCE = 1e-9
"""Largest absolute difference of tied values: rounding errors must not decide which class is worst, or a rank."""

RANGE_TOLERANCE = 1e-9
"""How far a value may lie outside its range, relative to the length of the range."""

STATISTIC_TOLERANCE = 1e-12
"""How far below the observed statistic a permuted one still counts as at least as large; for statistics up to 1."""

LEVEL_TOLERANCE = 1e-12
"""How far above a level a p-value still counts as at most the level: in float64, 1 - 0.95 is not 0.05."""

RADIUS_TOLERANCE = 1e-9
"""Largest relative difference of equal radii, whose rounding differs between processors."""

NORM_TOLERANCE = 1e-6
"""Largest error of the norm of a perturbation of float32 pixels."""
