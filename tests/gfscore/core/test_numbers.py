"""How numbers are printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfscore.core.numbers import (
    MINUS,
    count,
    count_range,
    counted,
    end_of_range,
    interval,
    lower_bound,
    number,
    p_value,
    percent,
    setting,
    signed,
    temperature,
    upper_bound,
)


def read(text):
    return float(text.replace(MINUS, "-").replace(",", ""))


@pytest.mark.parametrize(
    ("value", "nearest", "low", "high"),
    [
        (0.38549, "0.385", "0.385", "0.386"),
        (0.29, "0.290", "0.290", "0.290"),
        (0.1 + 0.2, "0.300", "0.300", "0.300"),
        (1.0000000000000002, "1.00", "1.00", "1.00"),
        (1.2533141373155, "1.25", "1.25", "1.26"),
        (0.99961, "1.00", "0.999", "1.00"),
        (0.068598, "0.0686", "0.0685", "0.0686"),
        (-0.12345, f"{MINUS}0.123", f"{MINUS}0.124", f"{MINUS}0.123"),
        (-0.99961, f"{MINUS}1.00", f"{MINUS}1.00", f"{MINUS}0.999"),
        (128351, "128,000", "128,000", "129,000"),
        (0.0000123456, "1.23e-5".replace("-", MINUS), "1.23e-5".replace("-", MINUS), "1.24e-5".replace("-", MINUS)),
        (0.0, "0", "0", "0"),
    ],
)
def test_three_significant_digits_rounded_the_safe_way(value, nearest, low, high):
    assert number(value) == nearest
    assert lower_bound(value) == low
    assert upper_bound(value) == high


@given(st.floats(min_value=-1e6, max_value=1e6, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-12))
def test_printed_bounds_enclose_the_value(value):
    slack = 1e-11 * abs(value)
    assert read(lower_bound(value)) <= value + slack
    assert read(upper_bound(value)) >= value - slack
    assert read(upper_bound(value)) - read(lower_bound(value)) <= 0.0101 * abs(value) + slack


@pytest.mark.parametrize(
    ("value", "highest", "text"),
    [
        (1.2533141373155, 1.2533141373155, "1.2533"),
        (1.2532, 1.2533141373155, "1.2532"),
        (1.25201, 1.2533141373155, "1.253"),
        (1.2401, 1.2533141373155, "1.25"),
        (0.9999, 1, "1.00"),
        (1.0, 1, "1.00"),
        (6 / 7, 6 / 7, "0.85714"),
        (math.nan, 1, "n/a"),
    ],
)
def test_upper_bounds_end_where_the_range_does(value, highest, text):
    assert upper_bound(value, highest=highest) == text


@given(st.floats(min_value=1e-3, max_value=2), st.floats(min_value=0, max_value=1))
def test_no_bound_is_printed_beyond_the_range_nor_below_its_value(highest, share):
    printed = upper_bound(share * highest, highest=highest)
    assert read(printed) <= highest * (1 + 1e-11)
    assert read(printed) >= share * highest * (1 - 1e-11) or printed == end_of_range(highest)


def test_ends_of_ranges():
    assert [end_of_range(value) for value in (0.0, 1.0, 10.0, 1.2533141373155)] == ["0", "1", "10", "1.2533"]
    assert interval(1.0, 1.2533141373155, 1.2533141373155) == "1.00 to 1.2533"


@pytest.mark.parametrize("missing", [None, math.nan])
def test_what_is_missing_says_so(missing):
    assert {f(missing) for f in (number, lower_bound, upper_bound, signed, count, setting, percent)} == {"n/a"}
    assert interval(missing, 1.0) == interval(0.0, missing) == temperature(missing) == p_value(missing) == "n/a"


def test_infinite_bounds_are_printed():
    assert interval(-math.inf, math.inf) == f"{MINUS}∞ to ∞"


def test_interval_is_rounded_outwards():
    assert interval(0.12399, 0.45601) == "0.123 to 0.457"


def test_signs_counts_settings_and_levels():
    assert signed(0.9) == "+0.900"
    assert signed(-0.80931) == f"{MINUS}0.809"
    assert signed(0.0) == "0"
    assert count(1883) == "1,883"
    assert count_range(1883, 1883) == "1,883"
    assert count_range(30, 1883) == "30 to 1,883"
    assert setting(0.05) == "0.05"
    assert setting(-8.0) == f"{MINUS}8"
    assert percent(0.95) == "95%"
    assert percent(1 - 0.05) == "95%"
    assert percent(0.999) == "99.9%"
    assert percent(1 - 1e-7) == "99.99999%"


@pytest.mark.parametrize("error", [1e-12, 2**-53])
def test_a_level_below_1_is_never_printed_as_all(error):
    printed = percent(1 - error)
    assert 99.99 < float(printed.removesuffix("%")) < 100


def test_temperatures_and_p_values():
    assert [temperature(value) for value in (0.01, 0.018, 1.739, 10.0)] == ["0.01", "0.018", "1.74", "10"]
    assert [temperature(value) for value in (999.6, 1234.0)] == ["1000", "1230"]
    assert [p_value(value) for value in (0.001, 0.0101, 1.0, 0.0001)] == ["0.001", "0.011", "1.000", "< 0.001"]


@pytest.mark.parametrize(
    ("things", "noun", "words"),
    [(0, "fault", "0 faults"), (1, "fault", "1 fault"), (2, "fault", "2 faults"), (1017, "class", "1,017 classes")],
)
def test_things_are_counted_as_english_counts_them(things, noun, words):
    assert counted(things, noun) == words
