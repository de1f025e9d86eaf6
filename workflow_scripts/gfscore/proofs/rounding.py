"""Rounding errors of float64, so that a computed bound holds for real numbers."""

UNIT = 2.0**-53
"""Largest relative error of one operation."""

TINY = 1e-290
"""More than all underflow of a sum of products: 2^-1074 for each of fewer than 2^100 operations."""

LEAST_MAGNITUDE = 1e-100
"""Magnitudes other than 0 are taken for at least this: then rounding errors, shares of products of magnitudes, are more
than all underflow, and no product of a magnitude with a weight of float32 is 0 by underflow."""


def gamma(operations: int) -> float:
    """Largest relative error of a sum of products, against the sum of their magnitudes.

    Twice the bound n u / (1 - n u), so that it also covers the rounding of what it is multiplied with.

    Parameters
    ----------
    operations : int
        Number n of roundings on the way to the result, below 2^50.

    References
    ----------
    Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    return 2 * operations * UNIT / (1 - operations * UNIT)
