import math

import numpy as np
import pytest

from gfscore import InputError
from gfscore.audit.calibration.temperature_search import SearchSettings, Stretches, optimum, two_phase_grid

PAPER = SearchSettings(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def peak(center, height=1.0):
    return lambda temperatures: height - np.abs(np.log(np.asarray(temperatures) / center))


def searched(objective, settings):
    """Optimum on the paper's grid."""
    temperatures, values = two_phase_grid(objective, settings)
    return optimum(Stretches.at(temperatures), values)


# The two-phase grid


def test_the_papers_grid():
    coarse = PAPER.coarse()
    assert len(coarse) == 100
    assert coarse[[0, 1, -1]] == pytest.approx([0.01, 0.11, 9.91])
    fine = PAPER.fine(5.01)
    assert len(fine) == 201
    assert fine[[0, 1, -1]] == pytest.approx([4.91, 4.911, 5.11])


@pytest.mark.parametrize("center", [0.01, 0.05, 9.91, 10.0])
def test_the_fine_grid_stays_in_the_range(center):
    fine = PAPER.fine(center)
    assert fine.min() >= 0.01
    assert fine.max() <= 10
    assert (np.diff(fine) > 0).all()


def test_the_coarse_grid_reaches_but_never_passes_the_upper_bound():
    assert SearchSettings(0.5, 3.0, 0.5, 0.1, 0.5).coarse().tolist() == [0.5, 1, 1.5, 2, 2.5, 3]
    assert SearchSettings(0.1, 0.4, 0.1, 0.01, 0.1).coarse().tolist() == [0.1, 0.2, 0.3, 0.4]
    assert SearchSettings(0.5, 2.9, 0.5, 0.1, 0.5).coarse().max() == 2.5


def test_a_temperature_of_both_grids_is_searched_once():
    temperatures, values = two_phase_grid(peak(3.0), PAPER)
    assert (np.diff(temperatures) > 1e-9).all()
    assert len(temperatures) == len(values) == 100 + 201 - 3


@pytest.mark.parametrize("center", [0.5, 1.234, 2.7, 7.77])
def test_a_peak_is_found_to_the_fine_step(center):
    found = searched(peak(center), PAPER)
    assert found.t_star == pytest.approx(center, abs=0.001)
    assert found.interval == (found.t_star, found.t_star)
    assert not found.edge
    assert found.best == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("center", [0.001, 20.0])
def test_an_optimum_outside_the_range_is_flagged_as_an_edge(center):
    found = searched(peak(center), PAPER)
    assert found.edge
    assert found.t_star == (0.01 if center < 1 else 10.0)


def test_of_a_plateau_the_middle_in_log_temperature_is_taken():
    found = searched(lambda t: ((t >= 1) & (t <= 4)) * 1.0, PAPER)
    assert found.interval == pytest.approx((1.0, 3.91), abs=0.011)
    assert found.t_star == pytest.approx(math.sqrt(3.91), abs=0.05)
    assert not found.edge


def test_a_plateau_over_everything_is_an_edge():
    found = searched(lambda t: np.full(len(t), 0.4), PAPER)
    assert found.edge
    assert found.interval == pytest.approx((0.01, 9.91))
    assert found.best == 0.4


def test_of_several_optimal_stretches_the_first_is_taken_and_refined():
    # The second stretch is better by rounding only, which must neither win nor draw the fine grid to itself.
    def objective(t):
        return 0.5 + 0.4 * (np.abs(t - 2) < 0.25) + (0.4 + 1e-16) * (np.abs(t - 6) < 0.25)

    assert objective(np.array([6.0]))[0] > objective(np.array([2.0]))[0]
    found = searched(objective, PAPER)
    assert found.interval[0] == pytest.approx(1.751, abs=0.0015)
    assert 1.75 < found.t_star < 2.25


def test_temperatures_where_the_objective_is_undefined_are_passed_over():
    found = searched(lambda t: np.where(t < 2, np.nan, -t), PAPER)
    assert found.t_star == pytest.approx(2.0, abs=1e-6)
    assert found.stretches == [(found.t_star, found.t_star)]


def test_an_objective_that_is_undefined_everywhere_is_an_error():
    with pytest.raises(InputError, match="undefined at every temperature"):
        searched(lambda t: np.full(len(t), np.nan), PAPER)


# Stretches between crossings


def between(*boundaries):
    return Stretches.between(np.array(boundaries, dtype=float))


def test_the_optimum_on_stretches_is_a_whole_interval():
    found = optimum(between(0.1, 1, 4, 10), np.array([0.2, 0.9, 0.3]))
    assert found.interval == (1, 4)
    assert found.t_star == pytest.approx(2)
    assert (found.best, found.edge) == (0.9, False)


def test_bordering_stretches_of_one_value_are_one_and_separate_ones_are_all_named():
    found = optimum(between(0.1, 1, 2, 4, 5, 6, 10), np.array([0.2, 0.9, 0.9 - 1e-16, 0.3, 0.9, 0.1]))
    assert found.stretches == [(1, 4), (5, 6)]
    assert found.interval == (1, 4)


def test_the_chosen_temperature_stands_on_no_crossing():
    # The middle of [1, 4] is the crossing at 2.
    found = optimum(between(0.1, 1, 2, 4, 10), np.array([0.2, 0.9, 0.9, 0.3]))
    assert found.interval == (1, 4)
    assert found.t_star == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("values", [[0.9, 0.1, 0.2], [0.1, 0.2, 0.9]])
def test_an_optimum_that_touches_the_range_is_an_edge(values):
    assert optimum(between(0.1, 1, 2, 10), np.array(values)).edge


def test_an_edge_is_flagged_for_a_narrow_stretch_too():
    # The widest optimal stretch lies inside, but another one touches the end.
    found = optimum(between(0.1, 0.11, 1, 5, 10), np.array([0.9, 0.1, 0.9, 0.2]))
    assert found.interval == (1, 5)
    assert found.edge


def test_which_stretch_holds_a_temperature():
    stretches = between(0.1, 1, 2, 10)
    assert stretches.holding(np.array([0.1, 0.5, 1.5, 2.0, 10.0])).tolist() == [0, 0, 1, 2, 2]
    np.testing.assert_allclose(stretches.middle**2, [0.1, 2, 20])
