import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gfscore import InputError
from gfscore.statistics import SCALE, classes

class_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, SCALE))


@pytest.mark.parametrize(
    ("values", "worst"),
    [
        ([0.3, 0.1, 0.2, 0.1], [1, 3]),
        # .1 + .2 + .3 and .3 + .2 + .1 differ in the last bit.
        ([(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, 0.9], [0, 1]),
        ([0.031, 0.0310001, 0.5], [0]),
    ],
)
def test_every_tied_worst_class_is_named_whatever_rounding_does(values, worst):
    assert classes.worst_classes(values).tolist() == worst


def test_worst_class_set_holds_every_class_that_may_be_the_worst():
    low, high = np.array([0.1, 0.3, 0.45, 0.0]), np.array([0.4, 0.6, 0.8, 1.2])
    # min U = .4: classes 0, 1 and 3 reach down to it, class 2 does not.
    assert classes.worst_class_set(low, high).tolist() == [0, 1, 3]
    # An interval that begins where the lowest one ends may hold the same value.
    assert classes.worst_class_set([0.1, 0.2], [0.2, 0.5]).tolist() == [0, 1]


@given(class_scores, st.integers(0, 2**32))
def test_worst_class_set_contains_the_worst_class_of_every_point_in_the_box(center, seed):
    rng = np.random.default_rng(seed)
    low, high = center - rng.random(len(center)) * 0.2, center + rng.random(len(center)) * 0.2
    point = rng.uniform(low, high)
    assert point.argmin() in classes.worst_class_set(low, high)


@given(class_scores)
def test_pairwise_differences_are_a_distance(values):
    matrix = classes.pairwise_differences(values)
    assert matrix.shape == (len(values), len(values))
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    assert matrix.max() == np.ptp(values)


def test_pairwise_differences_of_a_missing_class_are_missing():
    matrix = classes.pairwise_differences([0.1, np.nan, 0.5])
    assert np.isnan(matrix[1]).all()
    assert np.isnan(matrix[:, 1]).all()
    assert matrix[0, 2] == pytest.approx(0.4)


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_no_class_is_the_worst_where_none_has_samples(values):
    with pytest.raises(InputError, match="no class has samples"):
        classes.worst_classes(values)
