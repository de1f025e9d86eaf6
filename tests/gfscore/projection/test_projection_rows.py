"""Tables about projections: means, bounds and ranks of what was planted."""

import numpy as np
import pandas as pd
import pytest

from gfscore.projection.rows import Projected, effect_rows, model_rows, rank_rows, scaled, score_rows
from gfscore.tables import frame_of
from gfscore.tables.agreement import ALL

NAMES = ["a", "b", "absent"]
KEY = {"dataset": "d", "threat": "none", "model": "m", "mapper": "vae"}


def samples(up, down, *, labels, clean, decoded):
    """Samples table of kind projection from moves (n, D); a move of 1 is censored."""
    up, down = np.asarray(up, dtype=float), np.asarray(down, dtype=float)
    n, d = up.shape
    rows = np.repeat(np.arange(n), d)
    return pd.DataFrame(
        {
            "sample_id": [f"s{row}" for row in rows],
            "label": np.asarray(labels)[rows],
            "prediction": np.asarray(decoded)[rows],
            "clean_prediction": np.asarray(clean)[rows],
            "dimension": np.tile([f"z{i}" for i in range(d)], n),
            "up": up.ravel(),
            "down": down.ravel(),
            "up_censored": (up == 1).ravel(),
            "down_censored": (down == 1).ravel(),
        }
    )


@pytest.fixture
def projected():
    # four samples, two dimensions; the last reconstruction is predicted otherwise than its sample
    return Projected(
        samples(
            [[0.2, 1.0], [0.4, 1.0], [1.0, 1.0], [0.6, 1.0]],
            [[0.6, 1.0], [1.0, 0.5], [1.0, 1.0], [0.2, 1.0]],
            labels=[0, 0, 1, 1],
            clean=[0, 1, 1, 1],
            decoded=[0, 1, 1, 0],
        ),
        ["z0", "z1"],
    )


def row_of(rows, dimension, class_index):
    return next(row for row in rows if row["dimension_index"] == dimension and row["class_index"] == class_index)


def test_means_by_class_and_dimension_by_hand(projected):
    rows = score_rows(KEY, projected, ["z0", "z1"], NAMES, confidence=0.95)
    assert len(rows) == (1 + 3) * (1 + 2)
    whole = row_of(rows, 0, ALL)
    # Tolerances of z0: .4, .7, 1, .4; Deviations .2, .3, 0, .2
    assert whole["tolerance"] == pytest.approx(0.625)
    assert whole["deviation"] == pytest.approx(0.175)
    assert (whole["up"], whole["down"]) == (pytest.approx(0.55), pytest.approx(0.7))
    assert whole["censored"] == pytest.approx(3 / 8)
    assert whole["tolerance_agreeing"] == pytest.approx(0.7)
    assert (whole["agreement"], whole["accuracy"], whole["decoded_accuracy"]) == (0.75, 0.75, 0.5)
    assert whole["tolerance_low"] <= 0.625 <= whole["tolerance_high"] <= 1
    first = row_of(rows, 1, 0)
    assert (first["n"], first["tolerance"], first["accuracy"]) == (2, pytest.approx(0.875), 0.5)
    mean = row_of(rows, ALL, ALL)
    assert mean["tolerance"] == pytest.approx((0.625 + 0.9375) / 2) and mean["dimension"] == "all"
    # P = (1 - .625 / .9375, 0) = (1/3, 0)
    assert mean["coupling"] == pytest.approx(np.log(3) / 3)
    assert 1 < mean["effective_dimensions"] < 2 and 0 < mean["coupling_entropy"] < 1
    assert "coupling" not in whole
    absent = row_of(rows, 0, 2)
    assert absent["n"] == 0 and "tolerance" not in absent
    assert len(frame_of("projection_scores", rows)) == 12


def test_bounds_hold_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        up = rng.choice([0.2, 1.0], size=(40, 1), p=[0.4, 0.6])
        made = samples(up, up, labels=[0] * 40, clean=[0] * 40, decoded=[0] * 40)
        row = score_rows(KEY, Projected(made, ["z0"]), ["z0"], ["a"], confidence=0.9)[0]
        missed += not row["tolerance_low"] <= 0.68 <= row["tolerance_high"]
    assert missed <= 20


def test_a_constant_classifier_is_told_from_a_tolerant_one(projected):
    assert not projected.constant
    ones = np.ones((3, 2))
    shown = {"labels": [0, 1, 0], "clean": [1, 1, 1]}
    assert Projected(samples(ones, ones, **shown, decoded=[1, 1, 1]), ["z0", "z1"]).constant
    assert not Projected(samples(ones, ones, **shown, decoded=[1, 1, 0]), ["z0", "z1"]).constant
    # one class for all, but moves change it
    assert not Projected(samples(ones / 2, ones, **shown, decoded=[1, 1, 1]), ["z0", "z1"]).constant


def test_scaling_reverses_what_is_better_low_and_leaves_equal_values_open():
    assert scaled([1.0, 3.0, 2.0], True) == [0.0, 100.0, 50.0]
    assert scaled([1.0, 3.0, 2.0], False) == [100.0, 0.0, 50.0]
    assert scaled([2.0, 2.0], True) == [None, None]
    assert scaled([1.0, np.nan, 3.0], True) == [0.0, None, 100.0]


def models_of(values):
    rows, constant = [], {}
    for index, (accuracy, tolerances, made_constant) in enumerate(values):
        key = {**KEY, "model": f"m{index}"}
        shared = {
            "class_index": ALL,
            "n": 4,
            "censored": 0.5,
            "agreement": 1.0,
            "accuracy": accuracy,
            "decoded_accuracy": 1.0,
        }
        for place, tolerance in enumerate([np.mean(tolerances), *tolerances]):
            rows.append(
                {
                    **key,
                    **shared,
                    "dimension_index": place - 1,
                    "tolerance": tolerance,
                    "deviation": 1 - tolerance,
                    "coupling": tolerance,
                    "coupling_entropy": tolerance,
                    "effective_dimensions": 2.0,
                }
            )
        constant["none", f"m{index}"] = made_constant
    return rows, constant


def test_ranks_leave_constant_classifiers_out_and_count_higher_as_better():
    scores, constant = models_of(
        [(0.5, [0.6, 0.6], False), (0.7, [0.7, 0.7], False), (0.9, [0.8, 0.8], False), (0.1, [1, 1], True)]
    )
    models = model_rows(scores, constant)
    assert [row["dimensions"] for row in models] == [2] * 4
    assert [row["tolerance_scaled"] for row in models] == pytest.approx([0, 25, 50, 100])
    found = {(row["first"], row["second"]): row for row in rank_rows(models)}
    assert found["accuracy", "tolerance"]["rho"] == pytest.approx(1) and found["accuracy", "tolerance"]["n"] == 3
    # Deviation falls while Tolerance rises: both say the same; Coupling rises, which counts as worse
    assert found["tolerance", "deviation"]["rho"] == pytest.approx(1)
    assert found["tolerance", "coupling"]["rho"] == pytest.approx(-1)
    assert np.isnan(found["accuracy", "agreement"]["rho"])


def test_effects_carry_the_tolerance_of_models_that_are_not_constant():
    scores, constant = models_of([(0.5, [0.6, 0.2], False), (0.1, [1, 1], True)])
    manifest = {
        "mapper": "vae", "dimensions": ["z0", "z1"], "sigma": [1.0, 2.0], "divergence": None,
        "effects": [{"dimension": "z1", "trait": "slant", "how": "measured", "shift": -0.5, "strength": 0.6}],
    }  # fmt: skip
    (row,) = effect_rows(manifest, scores, constant)
    assert row == {
        "mapper": "vae", "dimension_index": 1, "dimension": "z1", "sigma": 2.0, "divergence": None, "trait": "slant",
        "how": "measured", "shift": -0.5, "strength": 0.6, "tolerance": 0.2,
    }  # fmt: skip
