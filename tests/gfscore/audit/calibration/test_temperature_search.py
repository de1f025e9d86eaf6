import math

import numpy as np
import pytest

from gfscore import InputError
from gfscore.audit.calibration.temperature_search import Stretches, coarse_grid, fine_grid, optimum, two_phase_grid
from gfscore.audit.settings import TemperatureGrid

PAPER = TemperatureGrid(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def peak(center, height=1.0):
    return lambda temperatures: height - np.abs(np.log(np.asarray(temperatures) / center))


def searched(objective, settings):
    """Optimum on the paper's grid."""
    temperatures, values = two_phase_grid(objective, settings)
    return optimum(Stretches.at(temperatures), values)


# The two-phase grid


def test_the_papers_grid():
    coarse = coarse_grid(PAPER)
    assert len(coarse) == 100
    assert coarse[[0, 1, -1]] == pytest.approx([0.01, 0.11, 9.91])
    fine = fine_grid(PAPER, 5.01)
    assert len(fine) == 201
    assert fine[[0, 1, -1]] == pytest.approx([4.91, 4.911, 5.11])


@pytest.mark.parametrize("center", [0.01, 0.05, 9.91, 10.0])
def test_the_fine_grid_stays_in_the_range(center):
    fine = fine_grid(PAPER, center)
    assert fine.min() >= 0.01
    assert fine.max() <= 10
    assert (np.diff(fine) > 0).all()


def test_the_coarse_grid_reaches_but_never_passes_the_upper_bound():
    assert coarse_grid(TemperatureGrid(low=0.5, high=3.0, coarse_step=0.5)).tolist() == [0.5, 1, 1.5, 2, 2.5, 3]
    assert coarse_grid(TemperatureGrid(low=0.9, high=1.2, coarse_step=0.1)).tolist() == [0.9, 1.0, 1.1, 1.2]
    assert coarse_grid(TemperatureGrid(low=0.5, high=2.9, coarse_step=0.5)).max() == 2.5


def test_a_temperature_of_both_grids_is_searched_once():
    temperatures, values = two_phase_grid(peak(3.0), PAPER)
    assert (np.diff(temperatures) > 1e-9).all()
    assert len(temperatures) == len(values) == 100 + 201 - 3


@pytest.mark.parametrize("center", [0.5, 1.234, 2.7, 7.77])
def test_a_peak_is_found_to_the_fine_step(center):
    found = searched(peak(center), PAPER)
    assert found.t_star == pytest.approx(center, abs=0.001)
    assert found.interval == (found.t_star, found.t_star)
    assert (found.edge, found.best) == (False, pytest.approx(1, abs=0.01))


@pytest.mark.parametrize(
    ("objective", "interval", "edge"),
    [
        (peak(0.001), (0.01, 0.01), True),
        (peak(20.0), (10, 10), True),
        (lambda t: ((t >= 1) & (t <= 4)) * 1.0, (1.0, 3.91), False),
        (lambda t: np.full(len(t), 0.4), (0.01, 9.91), True),
    ],
    ids=["below the range", "above it", "plateau", "plateau over everything"],
)
def test_the_middle_in_log_temperature_of_the_optimum_is_taken_and_an_edge_flagged(objective, interval, edge):
    found = searched(objective, PAPER)
    assert (found.interval, found.edge) == (pytest.approx(interval, abs=0.011), edge)
    assert found.t_star == pytest.approx(math.sqrt(found.interval[0] * found.interval[1]), abs=0.05)


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


@pytest.mark.parametrize(
    ("boundaries", "values", "stretches", "t_star", "edge"),
    [
        ((0.1, 1, 4, 10), [0.2, 0.9, 0.3], [(1, 4)], 2, False),
        # Bordering stretches of one value are one, separate ones are all named; its middle, 2, is a crossing.
        ((0.1, 1, 2, 4, 5, 6, 10), [0.2, 0.9, 0.9 - 1e-16, 0.3, 0.9, 0.1], [(1, 4), (5, 6)], 2**0.5, False),
        # An optimum that touches the range is an edge, though the widest stretch lies inside.
        ((0.1, 1, 2, 10), [0.9, 0.1, 0.2], [(0.1, 1)], 0.1**0.5, True),
        ((0.1, 1, 2, 10), [0.1, 0.2, 0.9], [(2, 10)], 20**0.5, True),
        ((0.1, 0.11, 1, 5, 10), [0.9, 0.1, 0.9, 0.2], [(0.1, 0.11), (1, 5)], 5**0.5, True),
    ],
)
def test_the_optimum_on_stretches(boundaries, values, stretches, t_star, edge):
    found = optimum(between(*boundaries), np.array(values))
    assert (found.stretches, found.edge) == (stretches, edge)
    assert found.interval == max(stretches, key=lambda ends: ends[1] / ends[0])
    assert (found.t_star, found.best) == (pytest.approx(t_star), 0.9)


def test_which_stretch_holds_a_temperature():
    stretches = between(0.1, 1, 2, 10)
    assert stretches.holding(np.array([0.1, 0.5, 1.5, 2.0, 10.0])).tolist() == [0, 0, 1, 2, 2]
    np.testing.assert_allclose(stretches.middle**2, [0.1, 2, 20])
