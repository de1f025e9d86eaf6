import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.statistics.survival import class_distances, mean_distance, median_distance, survival_curves

VALUES = np.array([0.0, 0.2, 0.2, 0.5, 1.0, 1.0, 0.4, 1.0, 1.0])
CENSORED = np.array([False, False, False, False, False, True, False, True, True])
LABELS = np.array([0, 0, 0, 0, 0, 0, 2, 2, 2])


def test_curves_are_the_share_beyond_each_radius_and_stop_where_nobody_looked():
    curves = survival_curves(VALUES, CENSORED, LABELS, 3, radii=[0.0, 0.2, 0.45, 0.999, 1.0])
    np.testing.assert_allclose(curves[0], [5 / 6, 3 / 6, 3 / 6, 2 / 6, np.nan])
    assert np.isnan(curves[1]).all()
    np.testing.assert_allclose(curves[2], [1, 1, 2 / 3, 2 / 3, np.nan])


def test_without_censoring_a_curve_goes_down_to_nothing():
    curves = survival_curves([0.1, 0.3], [False, False], [0, 0], 1, radii=[0, 0.1, 0.3, 9])
    np.testing.assert_allclose(curves, [[1, 0.5, 0, 0]])


def test_success_rate_and_median_by_hand():
    summary = class_distances(VALUES, CENSORED, LABELS, 3)
    np.testing.assert_array_equal(summary["n"], [6, 0, 3])
    np.testing.assert_array_equal(summary["misclassified"], [1, 0, 0])
    np.testing.assert_array_equal(summary["found"], [4, 0, 1])
    np.testing.assert_array_equal(summary["censored"], [1, 0, 2])
    np.testing.assert_allclose(summary["success_rate"], [4 / 5, np.nan, 1 / 3])
    np.testing.assert_allclose(summary["median"], [0.35, np.nan, np.nan])


def test_a_class_that_is_all_misclassified_has_median_0_and_no_success_rate():
    summary = class_distances(np.zeros(3), np.zeros(3, bool), np.zeros(3, int), 1)
    assert summary["median"][0] == 0
    assert np.isnan(summary["success_rate"][0])


@pytest.mark.parametrize(
    ("values", "censored", "median"),
    [
        ([0.1, 0.3, 2.0], [False, False, True], 0.3),
        ([0.1, 2.0, 2.0], [False, True, True], np.nan),
        # Half censored: the upper middle value is unknown.
        ([0.1, 0.2, 2.0, 2.0], [False, False, True, True], np.nan),
        ([0.1, 2.0, 2.0, 2.0, 2.0], [False, False, False, True, True], 2.0),
        ([], [], np.nan),
    ],
)
def test_the_median_is_missing_when_censored_past_half(values, censored, median):
    np.testing.assert_equal(median_distance(np.array(values), np.array(censored, dtype=bool)), median)


def test_the_mean_is_restricted_to_the_largest_distance():
    assert mean_distance(np.array([0.0, 1.0, 2.0])) == 1.0
    assert np.isnan(mean_distance(np.array([])))


def test_negative_distances_are_refused():
    with pytest.raises(InputError, match="at least 0; 2 are not"):
        class_distances([-1.0, np.nan, 1.0], [False] * 3, [0, 1, 1], 2)
