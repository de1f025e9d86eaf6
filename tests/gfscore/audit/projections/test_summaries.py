"""Tables about projections: means, bounds and ranks of what was planted."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.projections.scores import LEAST_SAMPLES, ModelBoundaries, score_frame
from gfscore.audit.projections.summaries import effect_frame, model_frame, rank_frame, scaled
from gfscore.audit.projections.tasks import differences_between_groups, group_means
from gfscore.core.identity import ALL
from gfscore.workflow.catalogue import CATALOGUE

NAMES = ["a", "b", "absent"]
KEY = {"dataset": "d", "threat": "none", "model": "m", "mapper": "vae"}


def samples(up, down, *, labels, clean, decoded):
    """Samples table of kind projection from moves (n, D); a move of 1 is censored, NaN one without room."""
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
def boundaries():
    # four samples, two dimensions; the last reconstruction is predicted otherwise than its sample
    return ModelBoundaries(
        samples(
            [[0.2, 1.0], [0.4, 1.0], [1.0, 1.0], [0.6, 1.0]],
            [[0.6, 1.0], [1.0, 0.5], [1.0, 1.0], [0.2, 1.0]],
            labels=[0, 0, 1, 1],
            clean=[0, 1, 1, 1],
            decoded=[0, 1, 1, 0],
        ),
        ["z0", "z1"],
    )


def scores_of(boundaries, class_names=NAMES, *, confidence=0.95):
    """Rows of projection_scores of one model."""
    return score_frame(boundaries, class_names, confidence=confidence).assign(**KEY)


def row_of(scores, dimension, class_index):
    return scores.set_index(["dimension_index", "class_index"]).loc[(dimension, class_index)]


def test_means_by_class_and_dimension_by_hand(boundaries):
    rows = scores_of(boundaries)
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
    assert np.isnan(whole["coupling"])
    absent = row_of(rows, 0, 2)
    assert absent["n"] == 0 and np.isnan(absent["tolerance"])


def test_attributes_have_a_tolerance_and_moves_of_either_kind_of_sample_but_no_deviation():
    # of the first attribute, samples without (up only), with (down only), and one of unknown value
    none = np.nan
    made = samples(
        [[0.2, 1.0], [0.6, 1.0], [none, 0.4], [1.0, 1.0]],
        [[none, none], [none, none], [1.0, none], [0.5, none]],
        labels=[0, 0, 0, 1],
        clean=[0, 0, 0, 1],
        decoded=[0, 0, 0, 1],
    )
    boundaries = ModelBoundaries(made, ["a=yes", "b=yes"])
    # of each sample the sides that it has: 0, 0, 1, 1/2 of the first
    np.testing.assert_allclose(boundaries.censored[:, 0], [0, 0, 1, 0.5])
    assert not boundaries.constant
    rows = scores_of(boundaries)
    first, second, mean = (row_of(rows, place, ALL) for place in (0, 1, ALL))
    assert first["tolerance"] == pytest.approx((0.2 + 0.6 + 1 + 0.75) / 4)
    assert (first["up"], first["down"]) == (pytest.approx(0.6), pytest.approx(0.75))
    assert first["censored"] == pytest.approx(1.5 / 4)
    assert (second["tolerance"], second["up"]) == (pytest.approx(0.85), pytest.approx(0.85))
    assert np.isnan(second["down"])
    assert mean["up"] == pytest.approx((0.2 + 0.6 + 1 + 1 + 1 + 0.4 + 1) / 7)
    assert np.isnan([first["deviation"], second["deviation"], mean["deviation"]]).all()
    assert mean["tolerance_low"] <= mean["tolerance"] <= mean["tolerance_high"]
    assert rows["tolerance"].notna().sum() == 9
    # two sides of every sample of the class: there a Deviation is defined
    assert row_of(rows, 0, 1)["deviation"] == pytest.approx(0.25)
    models = model_frame(rows, None)
    assert models["deviation_scaled"].isna().all()
    assert not rank_frame(models)[["first", "second"]].eq("deviation").any(axis=None)


def test_what_is_the_task_itself_is_in_no_mean_over_dimensions():
    none = np.nan
    made = samples(
        [[0.2, 1.0, 0.5], [0.6, 0.5, none]],
        [[none, none, none], [none, none, 0.7]],
        labels=[0, 1],
        clean=[0, 1],
        decoded=[0, 1],
    )
    names = ["a=yes", "b=yes", "label=yes"]
    rows = scores_of(ModelBoundaries(made, names, [False, False, True]))
    first, second, itself, mean = (row_of(rows, place, ALL) for place in (0, 1, 2, ALL))
    assert [row["own"] for row in (first, second, itself, mean)] == [False, False, True, False]
    assert itself["tolerance"] == pytest.approx(0.6)
    assert mean["tolerance"] == pytest.approx((0.4 + 0.75) / 2) and mean["up"] == pytest.approx(
        (0.2 + 0.6 + 1 + 0.5) / 4
    )
    share = 1 - 0.4 / 0.75
    assert mean["coupling"] == pytest.approx(-share * np.log(share))
    assert model_frame(rows, None)["dimensions"].tolist() == [2]


def test_without_a_dimension_of_another_attribute_there_is_no_mean_over_dimensions():
    halves = np.full((2, 1), 0.5)
    made = samples(halves, halves, labels=[0, 1], clean=[0, 1], decoded=[0, 1])
    rows = scores_of(ModelBoundaries(made, ["label=yes"], [True]))
    itself, mean = (row_of(rows, place, ALL) for place in (0, ALL))
    assert itself["tolerance_low"] <= itself["tolerance"] == 0.5 <= itself["tolerance_high"]
    averaged = ["tolerance", "tolerance_low", "tolerance_high", "deviation", "up", "censored", "tolerance_agreeing"]
    assert mean[[*averaged, "coupling", "coupling_entropy", "effective_dimensions"]].isna().all()
    assert (mean["agreement"], mean["accuracy"]) == (1, 1)
    models = model_frame(rows, None)
    assert models["dimensions"].tolist() == [0] and rank_frame(models)["rho"].isna().all()


def test_coupling_of_few_samples_says_so():
    ones = np.full((LEAST_SAMPLES + 1, 2), 0.5)
    labels = [0] * LEAST_SAMPLES + [1]
    made = samples(ones, ones, labels=labels, clean=labels, decoded=labels)
    rows = scores_of(ModelBoundaries(made, ["z0", "z1"]))
    small = dict(zip(rows["class_index"], rows["small"], strict=True))
    assert small == {ALL: False, 0: False, 1: True, 2: True}


def test_bounds_hold_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        up = rng.choice([0.2, 1.0], size=(40, 1), p=[0.4, 0.6])
        made = samples(up, up, labels=[0] * 40, clean=[0] * 40, decoded=[0] * 40)
        row = scores_of(ModelBoundaries(made, ["z0"]), ["a"], confidence=0.9).iloc[0]
        missed += not row["tolerance_low"] <= 0.68 <= row["tolerance_high"]
    assert missed <= 20


def test_a_constant_classifier_is_told_from_a_tolerant_one(boundaries):
    assert not boundaries.constant
    ones = np.ones((3, 2))
    shown = {"labels": [0, 1, 0], "clean": [1, 1, 1]}
    assert ModelBoundaries(samples(ones, ones, **shown, decoded=[1, 1, 1]), ["z0", "z1"]).constant
    assert not ModelBoundaries(samples(ones, ones, **shown, decoded=[1, 1, 0]), ["z0", "z1"]).constant
    # one class for all, but moves change it
    assert not ModelBoundaries(samples(ones / 2, ones, **shown, decoded=[1, 1, 1]), ["z0", "z1"]).constant
    # what is predicted on the samples themselves is no matter: no move was made there
    assert ModelBoundaries(
        samples(ones, ones, labels=[0, 1, 0], clean=[1, 0, 1], decoded=[1, 1, 1]), ["z0", "z1"]
    ).constant


def test_scaling_reverses_what_is_better_low_and_leaves_equal_values_open():
    for values, higher_is_better, expected in (
        ([1.0, 3.0, 2.0], True, [0, 100, 50]),
        ([1.0, 3.0, 2.0], False, [100, 0, 50]),
        ([2.0, 2.0], True, [np.nan, np.nan]),
        ([0.3 - 0.2, 0.4 - 0.3, 0.8 - 0.7], False, [np.nan, np.nan, np.nan]),
        ([1.0, np.nan, 3.0], True, [0, np.nan, 100]),
    ):
        np.testing.assert_array_equal(scaled(values, higher_is_better=higher_is_better), expected)


def models_of(values):
    """Rows of projection_scores of all samples from (accuracy, tolerances by dimension, constant) of each model."""
    shared = {"class_index": ALL, "own": False, "n": 4, "censored": 0.5, "agreement": 1.0, "decoded_accuracy": 1.0}
    shared |= {"effective_dimensions": 2.0}
    rows = [
        {
            **KEY,
            **shared,
            "model": f"m{index}",
            "dimension_index": place - 1,
            "accuracy": accuracy,
            "constant": constant,
        }
        | {"tolerance": of, "deviation": 1 - of, "coupling": of, "coupling_entropy": of}
        for index, (accuracy, tolerances, constant) in enumerate(values)
        for place, of in enumerate([np.mean(tolerances), *tolerances])
    ]
    return pd.DataFrame(rows)


def test_ranks_leave_constant_classifiers_out_and_count_higher_as_better():
    scores = models_of(
        [(0.5, [0.6, 0.6], False), (0.7, [0.65, 0.65], False), (0.9, [0.8, 0.8], False), (0.1, [1, 1], True)]
    )
    models = model_frame(scores, None)
    assert models["dimensions"].tolist() == [2] * 4
    # the constant one is neither the best nor what the best is measured by
    for name in ("tolerance_scaled", "deviation_scaled"):
        np.testing.assert_allclose(models[name], [0, 25, 100, np.nan])
    found = rank_frame(models).set_index(["first", "second"])
    rho = found["rho"]
    assert rho["accuracy", "tolerance"] == pytest.approx(1) and found["n"]["accuracy", "tolerance"] == 3
    # Deviation falls while Tolerance rises: both say the same; Coupling rises, which counts as worse
    assert rho["tolerance", "deviation"] == pytest.approx(1)
    assert rho["tolerance", "coupling"] == pytest.approx(-1)
    assert np.isnan(rho["accuracy", "agreement"])
    assert not [pair for pair in found.index if "dp" in pair]


def test_differences_between_groups_are_scaled_and_ranked_beside_tolerance():
    scores = models_of([(0.5, [0.6], False), (0.7, [0.7], False), (0.9, [0.8], False), (0.1, [1], True)])
    values = {"m0": 0.1, "m1": 0.2, "m2": 0.5, "m3": 0.0}
    means = [
        {"threat": "none", "model": name, "dp": v, "eopp": v / 2, "eodd": v / 2}
        | {"group_measure": "clean", "group_attributes": 3}
        for name, v in values.items()
    ]
    models = model_frame(scores, pd.DataFrame(means).set_index(["threat", "model"]))
    assert models["dp"].tolist() == list(values.values())
    # lower is better; the constant one treats all groups alike, and sets no end
    np.testing.assert_allclose(models["dp_scaled"], [100, 75, 0, np.nan], atol=1e-12)
    found = rank_frame(models).set_index(["first", "second"])
    rho = found["rho"]
    assert rho["tolerance", "dp"] == pytest.approx(-1) and found["n"]["tolerance", "dp"] == 3
    assert rho["deviation", "eodd"] == pytest.approx(-1) and rho["dp", "eopp"] == pytest.approx(1)


def group_table(rows):
    """Rows of group_metrics from (model, measure, attribute, class, metric, value)."""
    names = ("model", "measure", "attribute", "class_name", "metric", "value")
    return pd.DataFrame([{"threat": "none", **dict(zip(names, row, strict=True))} for row in rows])


def every_metric(model, measure, attribute, value, *, name="macro", eopp=None):
    own = {"dp": value, "eopp": value if eopp is None else eopp, "eodd": value, "aodd": 9.0}
    return [(model, measure, attribute, name, metric, found) for metric, found in own.items()]


KINDS = {"attacked": "adversarial", "plain": "clean"}


def means_of(table, **settings):
    return group_means(differences_between_groups(table, kinds=KINDS), **settings)


def test_groups_are_compared_on_undisturbed_samples_whatever_is_listed_first():
    values = {("attacked", "a"): 0.7, ("plain", "a"): 0.2, ("plain", "b"): 0.4}
    table = group_table(
        row
        for (measure, attribute), value in values.items()
        for name, more in (("macro", 0), ("worst", 0.2))
        for row in every_metric("m", measure, attribute, value + more, name=name)
    )
    found = means_of(table).loc[("none", "m")]
    assert found.to_dict() == {
        "dp": pytest.approx(0.3),
        "eopp": pytest.approx(0.3),
        "eodd": pytest.approx(0.3),
        "group_measure": "plain",
        "group_attributes": 2,
    }
    attacked = means_of(table[table["measure"] == "attacked"]).loc[("none", "m")]
    assert (attacked["dp"], attacked["group_measure"]) == (0.7, "attacked")


@pytest.mark.parametrize(
    ("settings", "dp", "attributes"),
    [
        ({}, 0.3, 2),
        # those that the mapper moves
        ({"moved": {"b": ["no", "yes"]}}, 0.4, 1),
        # the task itself is left out
        ({"task_attribute": "a"}, 0.4, 1),
    ],
)
def test_groups_are_those_of_the_attributes_that_are_moved_and_not_the_task_itself(settings, dp, attributes):
    table = group_table([*every_metric("m", "plain", "a", 0.2), *every_metric("m", "plain", "b", 0.4)])
    found = means_of(table, **settings).loc[("none", "m")]
    assert (found["dp"], found["group_attributes"]) == (pytest.approx(dp), attributes)
    assert means_of(table, moved={"c": ["no", "yes"]}).empty


def test_every_model_has_its_groups_averaged_over_the_same_attributes():
    rows = [*every_metric("m", "plain", "a", 0.2), *every_metric("m", "plain", "b", 0.4)]
    rows += [*every_metric("other", "plain", "a", 0.3), *every_metric("other", "plain", "b", 0.5, eopp=np.nan)]
    found = means_of(group_table(rows))
    assert found["dp"].to_dict() == {("none", "m"): 0.2, ("none", "other"): 0.3}
    assert found["group_attributes"].tolist() == [1, 1]


def test_one_positive_class_takes_the_place_of_the_mean():
    table = group_table(every_metric("m", "plain", "a", 0.2, name="smiling"))
    assert means_of(table).loc[("none", "m"), "eopp"] == 0.2
    # An audit without a measure that predicts has no differences.
    assert means_of(pd.DataFrame(columns=CATALOGUE["group_metrics"].column_names)).empty


def test_effects_carry_the_tolerance_of_models_that_are_not_constant():
    scores = models_of([(0.5, [0.6, 0.2], False), (0.9, [0.6, 0.4], False), (0.1, [1, 1], True)])
    manifest = {
        "mapper": "vae", "dimensions": ["z0", "z1"], "sigma": [1.0, 2.0], "divergence": None,
        "effects": [{"dimension": "z1", "trait": "slant", "how": "measured", "shift": -0.5, "strength": 0.6}],
    }  # fmt: skip
    (row,) = effect_frame(manifest, scores).to_dict("records")
    assert np.isnan(row.pop("divergence"))
    assert row == {
        "mapper": "vae", "dimension_index": 1, "dimension": "z1", "sigma": 2.0, "trait": "slant",
        "how": "measured", "shift": -0.5, "strength": 0.6, "tolerance": pytest.approx(0.3), "censored": 0.5,
        "accuracy": pytest.approx(0.7), "models": 2,
    }  # fmt: skip
    (row,) = effect_frame(manifest, models_of([(0.1, [1, 1], True)])).to_dict("records")
    assert np.isnan([row["tolerance"], row["accuracy"]]).all() and row["models"] == 0
