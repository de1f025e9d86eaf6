"""Rounding errors of float64, in which bounds are computed, and of the arithmetic that they are about."""

import math
from typing import NamedTuple

UNIT = 2.0**-53
"""Largest relative rounding error of one operation in float64."""

TINY = 1e-290
"""More than all underflow of a sum of products."""


class Arithmetic(NamedTuple):
    """Arithmetic in which a network is computed.

    Attributes
    ----------
    unit : float
        Largest relative rounding error of one operation.
    least : float
        Largest error of an operation whose result is too small for this: where it is flushed to 0, the least normal
        number.
    largest : float
        Sums of greater numbers may overflow.
    """

    unit: float
    least: float
    largest: float


REAL = Arithmetic(0.0, 0.0, math.inf)
FLOAT32 = Arithmetic(2.0**-24, 2.0**-126, 3.4e38)


def gamma(length: int) -> float:
    """Bound of the relative rounding error of a sum of so many products, with room to spare.

    References
    ----------
    Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    operations = 4 * (length + 64)
    return operations * UNIT / (1 - operations * UNIT)
