"""Rounding errors of float64."""

UNIT = 2.0**-53
"""Largest relative rounding error of one operation in float64."""

UNIT_OF_FLOAT32 = 2.0**-24

TINY = 1e-290
"""More than all underflow of a bound."""


def gamma(length: int) -> float:
    """Bound of the relative rounding error of a sum of so many products, with room to spare.

    References
    ----------
    Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    operations = 4 * (length + 64)
    return operations * UNIT / (1 - operations * UNIT)
