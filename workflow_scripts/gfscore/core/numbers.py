"""Numbers as text: three significant digits, lower bounds rounded down, upper bounds rounded up."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

DIGITS = 3
"""Significant digits of a number."""

MOST_DIGITS = 5
"""Significant digits of a bound close to the end of its range."""

ARITHMETIC_DIGITS = 12
"""Digits after these are rounding errors: 1.0000000000000002 is printed as 1."""

MISSING = "n/a"
MINUS = "\u2212"

SMALLEST_PLAIN = Decimal("1e-4")
"""Smaller numbers are printed with an exponent, since leading zeros would hide the digits."""


def number(value: float | None) -> str:
    """Value to the nearest three significant digits, "n/a" for None and NaN, exact 0 as "0"."""
    return _printed(value, ROUND_HALF_EVEN)


def lower_bound(value: float | None) -> str:
    """Lower bound to three significant digits, rounded down: the printed number never claims more than the bound."""
    return _printed(value, ROUND_FLOOR)


def upper_bound(value: float | None, *, highest: float | None = None) -> str:
    """Upper bound to three significant digits, rounded up.

    Parameters
    ----------
    value : float or None
        The bound.
    highest : float, optional
        End of the value's range: no number above it is printed.

    Returns
    -------
    str
        A bound close to `highest` gets up to five digits, and the end itself is printed by end_of_range; "n/a" for
        None and NaN.
    """
    if highest is None or value is None or math.isnan(value):
        return _printed(value, ROUND_CEILING)
    limit = _exact(highest)
    for digits in range(DIGITS, MOST_DIGITS + 1):
        if _rounded(_exact(value), ROUND_CEILING, digits) <= limit:
            return _printed(value, ROUND_CEILING, digits)
    return end_of_range(highest)


def end_of_range(highest: float) -> str:
    """Upper end of a measure's range to five digits, rounded down: "1.2533" for sqrt(pi/2)."""
    rounded = _rounded(_exact(highest), ROUND_FLOOR, MOST_DIGITS)
    return f"{rounded.normalize():f}".replace("-", MINUS)


def interval(low: float | None, high: float | None, highest: float | None = None) -> str:
    """Interval in words, "0.123 to 0.457", rounded outwards but not above `highest`; "n/a" when an end is missing."""
    if is_missing(low) or is_missing(high):
        return MISSING
    return f"{lower_bound(low)} to {upper_bound(high, highest=highest)}"


def span(low: float, high: float, highest: float | None = None) -> str:
    """A number between two bounds, "0.123 to 0.457"; a single number, "0.123", if the bounds are equal."""
    return interval(low, high, highest) if high > low else number(low)


def signed(value: float | None) -> str:
    """Value with its sign, for correlations: "+0.900", "\u22120.807"."""
    text = number(value)
    if text.startswith(MINUS) or text in (MISSING, "0"):
        return text
    return f"+{text}"


def count(value: float | None) -> str:
    """Whole number with thousands separated, "1,883"; "n/a" for None and NaN."""
    if value is None or math.isnan(value):
        return MISSING
    return f"{int(value):,}"


def count_range(smallest: float, largest: float) -> str:
    """A whole number between two bounds, "30 to 1,883"; a single number, "1,883", if the bounds are equal."""
    if smallest == largest:
        return count(smallest)
    return f"{count(smallest)} to {count(largest)}"


def plural(noun: str) -> str:
    """The noun for several things: "classes", "models"."""
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def counted(things: int, noun: str) -> str:
    """Number of things with their noun: "1 fault", "2 faults", "1,017 classes"."""
    return f"{things:,} {noun if things == 1 else plural(noun)}"


def setting(value: float | None) -> str:
    """Number that a user chose (a threshold, a temperature) in full precision, without rounding."""
    if value is None or math.isnan(value):
        return MISSING
    return repr(float(value)).removesuffix(".0").replace("-", MINUS)


def temperature(value: float | None) -> str:
    """Temperature to three significant digits, without trailing zeros: grids are steps of 0.1 and 0.001."""
    if value is None or math.isnan(value):
        return MISSING
    # The format alone would print 1000 as 1e+03.
    return setting(float(f"{value:.{DIGITS}g}"))


def p_value(value: float | None) -> str:
    """Permutation p-value to three decimals, rounded up; "< 0.001" is possible with more than 999 permutations."""
    if value is None or math.isnan(value):
        return MISSING
    if value < 0.001 - 1e-12:
        return "< 0.001"
    thousandths = math.ceil(value * 1000 - 1e-9)
    return f"{thousandths / 1000:.3f}"


def percent(value: float | None) -> str:
    """Confidence level as a percentage, "95%"; one below 1 gets as many digits as tell it from 100%."""
    if value is None or math.isnan(value):
        return MISSING
    text = f"{100 * value:.10g}"
    if text == "100" and value < 1:
        text = repr(100 * value)
    return f"{text}%"


def is_missing(value: float | None) -> bool:
    """Whether there is no number: None or NaN."""
    return value is None or math.isnan(value)


def _exact(value: float) -> Decimal:
    return Decimal(f"{value:.{ARITHMETIC_DIGITS}g}")


def _rounded(exact: Decimal, rounding: str, digits: int) -> Decimal:
    if not exact.is_finite():
        return exact
    # Twice, because rounding 0.9996 up adds a digit.
    for _ in range(2):
        last_digit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        exact = exact.quantize(last_digit, rounding=rounding)
    return exact


def _printed(value: float | None, rounding: str, digits: int = DIGITS) -> str:
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\u221e" if value > 0 else f"{MINUS}\u221e"
    exact = _exact(value)
    if exact == 0:
        return "0"
    rounded = _rounded(exact, rounding, digits)
    text = f"{rounded:,f}" if abs(rounded) >= SMALLEST_PLAIN else f"{rounded:.{digits - 1}e}"
    return text.replace("-", MINUS)
