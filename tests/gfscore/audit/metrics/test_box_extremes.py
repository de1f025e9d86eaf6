"""Smallest and largest metrics over a box of class values, against linear programs and all vertices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from gfscore.audit.metrics import nrgc
from gfscore.statistics.margins import SCALE
from helpers import definitions
from helpers.samples import intervals


def boxes(k_max=5):
    bound = st.floats(0, SCALE)

    @st.composite
    def build(draw):
        k = draw(st.integers(2, k_max))
        pairs = [sorted([draw(bound), draw(bound)]) for _ in range(k)]
        return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])

    return build()


def vertices(low, high):
    return np.array(list(itertools.product(*zip(low, high, strict=True))))


def smallest_range(low, high):
    # Variables x (K), top, bottom: minimise top - bottom with bottom <= x <= top in the box.
    k = len(low)
    above = np.hstack([np.eye(k), -np.ones((k, 1)), np.zeros((k, 1))])
    below = np.hstack([-np.eye(k), np.zeros((k, 1)), np.ones((k, 1))])
    bounds = [*zip(low, high, strict=True), (None, None), (None, None)]
    objective = np.append(np.zeros(k), [1.0, -1.0])
    found = linprog(objective, A_ub=np.vstack([above, below]), b_ub=np.zeros(2 * k), bounds=bounds)
    return found.fun


def largest_fp(low, high, lam):
    k = len(low)
    above = np.hstack([np.eye(k), -np.ones((k, 1)), np.zeros((k, 1))])
    below = np.hstack([-np.eye(k), np.zeros((k, 1)), np.ones((k, 1))])
    bounds = [*zip(low, high, strict=True), (None, None), (None, None)]
    objective = np.append(np.full(k, -1 / k), [lam, -lam])
    found = linprog(objective, A_ub=np.vstack([above, below]), b_ub=np.zeros(2 * k), bounds=bounds)
    return -found.fun


def smallest_gini(low, high):
    # Linear-fractional program by Charnes and Cooper: y = t x with sum(y) = 1, d_ij >= |y_i - y_j|; Gini = sum d / K.
    k = len(low)
    pairs = list(itertools.combinations(range(k), 2))
    variables = k + 1 + len(pairs)
    rows = []
    for p, (i, j) in enumerate(pairs):
        for sign in (1, -1):
            row = np.zeros(variables)
            row[i], row[j], row[k + 1 + p] = sign, -sign, -1
            rows.append(row)
    for i in range(k):
        for sign, bound in ((-1, low[i]), (1, high[i])):
            row = np.zeros(variables)
            row[i], row[k] = sign, -sign * bound
            rows.append(row)
    total = np.zeros((1, variables))
    total[0, :k] = 1
    objective = np.append(np.zeros(k + 1), np.full(len(pairs), 1 / k))
    return linprog(objective, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=total, b_eq=[1.0]).fun


@settings(max_examples=200)
@given(boxes(), st.floats(0, 3))
def test_rdi_wcr_and_fp_intervals_are_the_exact_extremes(box, lam):
    # Rounded, because the linear programs are solved to 1e-7 of feasibility.
    low, high = np.round(box, 3)
    got = intervals(low, high, n=np.ones(len(low)), lam=lam)
    corners = vertices(low, high)
    assert got["rdi"][0] == pytest.approx(smallest_range(low, high), abs=1e-9)
    assert got["rdi"][1] == pytest.approx(max(definitions.rdi(x) for x in corners), abs=1e-12)
    assert got["fp"][0] == pytest.approx(min(definitions.fp(x, lam) for x in corners), abs=1e-12)
    assert got["fp"][1] == pytest.approx(largest_fp(low, high, lam), abs=1e-9)
    assert got["wcr"] == (low.min(), high.min())
    assert got["class_mean"] == pytest.approx((low.mean(), high.mean()))


@settings(max_examples=200)
@given(boxes())
def test_nrgc_interval_is_the_exact_extremes(box):
    low, high = np.round(box, 3)
    if high.max() == 0:
        assert np.isnan(intervals(low, high, n=np.ones(len(low)), lam=0.5)["nrgc"]).all()
        return
    lowest, highest = intervals(low, high, n=np.ones(len(low)), lam=0.5)["nrgc"]
    assert lowest == pytest.approx(smallest_gini(low, high), abs=1e-8)
    assert highest == pytest.approx(max(definitions.nrgc(x) for x in vertices(low, high) if x.sum() > 0), abs=1e-12)


def test_hand_computed_box():
    low, high = np.array([0.1, 0.5]), np.array([0.3, 0.9])
    got = intervals(low, high, n=np.array([1, 3]), lam=0.5)
    assert got["rdi"] == pytest.approx((0.2, 0.8))
    assert got["wcr"] == (0.1, 0.3)
    assert got["value"] == pytest.approx((0.4, 0.75))
    # Gini of two classes is |a - b| / (2 (a + b)): smallest at (.3, .5), largest at (.1, .9).
    assert got["nrgc"] == pytest.approx((0.125, 0.4))
    # FP = mean - RDI / 2 is the smaller of the two values.
    assert got["fp"] == pytest.approx((0.1, 0.3))


def test_nrgc_is_undefined_when_every_class_is_surely_zero():
    got = intervals(np.zeros(3), np.zeros(3), n=np.ones(3), lam=0.5)
    assert np.isnan(got["nrgc"]).all()
    assert got["rdi"] == (0, 0)


def test_a_class_that_is_surely_zero_does_not_hide_the_smallest_gini():
    # (0, x, x) for any x > 0 is the flattest: Gini 1/3.
    got = intervals(np.zeros(3), np.array([0.0, 0.5, 0.5]), n=np.ones(3), lam=0.5)
    assert got["nrgc"] == pytest.approx((1 / 3, 2 / 3))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("widths", ["equal", "by the mean", "any", "ties"])
def test_the_largest_nrgc_does_not_depend_on_what_the_assignment_starts_from(seed, widths, monkeypatch):
    """The prices that it starts from save time, nothing else."""
    rng = np.random.default_rng(seed)
    mean = rng.beta(5, 3, 60)
    if widths == "ties":
        mean = np.round(mean, 1)
    half = {"equal": 0.2, "by the mean": 0.4 * np.sqrt(mean * (1 - mean)), "ties": 0.1}.get(widths)
    half = rng.uniform(0, 0.5, 60) if half is None else half
    box = np.maximum(mean - half, 0), np.minimum(mean + half, 1)
    highest = nrgc.over_box(*box)[1]

    def from_nothing(guess, low, high, slope):
        worth = np.maximum(np.multiply.outer(slope, low), np.multiply.outer(slope, high))
        return linear_sum_assignment(worth, maximize=True)[1]

    monkeypatch.setattr(nrgc, "_best_ranking", from_nothing)
    assert highest == pytest.approx(nrgc.over_box(*box)[1], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_nrgc_is_at_one_of_all_levels(seed):
    rng = np.random.default_rng(seed)
    low = np.round(rng.uniform(0, 0.6, 60) * (rng.random(60) < 0.8), 2)
    high = low + np.round(rng.exponential(0.1, 60), 2)
    points = [np.clip(level, low, high) for level in np.unique([*low, *high])]
    smallest = min(nrgc.nrgc(point) for point in points if point.sum() > 0)
    assert nrgc.over_box(low, high)[0] == pytest.approx(smallest, rel=1e-12)


def test_a_thousand_classes_take_seconds():
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.6, 1000)
    high = low + rng.uniform(0, 0.6, 1000)
    lowest, highest = intervals(low, high, n=np.ones(1000), lam=0.5)["nrgc"]
    for point in rng.uniform(low, high, size=(20, 1000)):
        assert lowest < nrgc.nrgc(point) < highest
    corner = np.where(low > np.median(low), high, low)
    assert lowest < nrgc.nrgc(corner) < highest


def test_a_class_without_samples_leaves_the_value_of_the_others_within_the_interval():
    # NRGC of (.9, 1) is 1/38; with a third class anywhere in [.9, 1] at most 1/42.
    low, high = np.array([0.9, 1.0, 0.9]), np.array([0.9, 1.0, 1.0])
    lowest, highest = intervals(low, high, n=np.array([5, 5, 0]), lam=0.5)["nrgc"]
    assert (lowest, highest) == pytest.approx((smallest_gini(low, high), 1 / 38))
    assert intervals(low, high, n=np.array([5, 5, 1]), lam=0.5)["nrgc"][1] == pytest.approx(1 / 42)
