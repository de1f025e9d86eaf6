"""Random numbers that belong to samples."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest, pearsonr

from gfscore.statistics import draws
from gfscore.statistics.draws import Draws, RowGenerators, seeds_of_samples
from helpers.samples import draws_of

SHAPE = (3, 5, 7)
KINDS = {"uniform": lambda drawn: drawn.uniform(SHAPE), "normal": lambda drawn: drawn.normal(SHAPE, std=0.3)}
every_kind = pytest.mark.parametrize("draw", KINDS.values(), ids=list(KINDS))


def test_the_numbers_of_a_key_are_those_of_splitmix64():
    found = []
    Draws.of(np.array([1234567], dtype=np.uint64), "cpu")._filled((10,), lambda _, numbers: found.append(numbers))
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert found[0].numpy().view(np.uint64)[0].tolist() == published


@every_kind
def test_numbers_do_not_depend_on_what_is_drawn_beside_them(draw, monkeypatch):
    drawn = draws_of(40)
    whole = draw(drawn)
    rows = torch.tensor([31, 3, 8])
    assert torch.equal(draw(drawn[rows]), whole[rows]) and torch.equal(draw(drawn[rows[:1]]), whole[rows[:1]])
    for part in (1, 100, 1000):
        monkeypatch.setattr(draws, "BLOCK", part)
        assert torch.equal(draw(drawn), whole)


@every_kind
def test_copies_are_the_same_one_by_one_and_all_at_once(draw):
    drawn = draws_of(4)
    whole = draw(drawn.copies(9)).unflatten(0, (4, 9))
    parts = [draw(drawn.copies(each, first)).unflatten(0, (4, each)) for each, first in ((1, 0), (6, 1), (2, 7))]
    assert torch.equal(torch.cat(parts, dim=1), whole)


@every_kind
def test_samples_copies_streams_and_seeds_differ(draw):
    drawn = draws_of(200)
    many = torch.cat(
        [draw(one) for one in (drawn, drawn.stream(0), drawn.stream(1), drawn.copies(2), draws_of(200, 1))]
    )
    assert len(np.unique(many.numpy().reshape(len(many), -1), axis=0)) == len(many)
    first, second = (draw(one).numpy().ravel() for one in (drawn, drawn.stream(0)))
    assert pearsonr(first, second).pvalue > 1e-3
    assert pearsonr(first, draw(draws_of(200, 1)).numpy().ravel()).pvalue > 1e-3
    of_samples = draw(drawn).flatten(1).numpy()
    assert pearsonr(of_samples[:-1].ravel(), of_samples[1:].ravel()).pvalue > 1e-3


def test_they_have_their_distributions():
    drawn = draws_of(300)
    uniform, normal = drawn.uniform((1001,)).numpy().ravel(), drawn.normal((1001,), std=0.3).numpy().ravel()
    assert kstest(uniform, "uniform", args=(-1, 2)).pvalue > 1e-3
    assert kstest(normal, "norm", args=(0, 0.3)).pvalue > 1e-3
    # Tails: 4 deviations are passed 19 times in 300,300.
    assert 5 < (np.abs(normal) > 1.2).sum() < 40
    for values in (uniform, normal):
        for lag in (1, 2, 500):
            assert pearsonr(values[:-lag], values[lag:]).pvalue > 1e-3


def test_a_seed_is_of_a_row_for_one_name():
    rows = np.array([5, 0, 2**40])
    seeds = seeds_of_samples(3, "certified", rows)
    assert seeds.dtype == np.uint64
    np.testing.assert_array_equal(seeds[:1], seeds_of_samples(3, "certified", [5]))
    others = [seeds_of_samples(4, "certified", rows), seeds_of_samples(3, "targeted", rows)]
    assert len(set(np.concatenate([seeds, *others]).tolist())) == 9


def test_generators_of_rows_are_independent_of_other_rows_and_go_on_in_parts():
    seeds = seeds_of_samples(0, "corruption", range(5))
    whole = RowGenerators(seeds).normal(0, 1, (5, 4))
    parts = RowGenerators(seeds)
    few = np.concatenate([parts[rows].normal(0, 1, (2, 4)) for rows in (slice(1, 3), np.arange(5) > 2)])
    np.testing.assert_array_equal(few, whole[1:])
    np.testing.assert_array_equal(RowGenerators(seeds[2:3]).normal(0, 1, (1, 4)), whole[2:3])
    assert not np.isin(RowGenerators(seeds, 1).normal(0, 1, (5, 4)), whole).any()
    assert (parts[1:3].normal(0, 1, (2, 4)) != whole[1:3]).all()
