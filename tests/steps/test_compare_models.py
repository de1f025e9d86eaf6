"""The comparison of models, from sample files to tables, sentences and the page's sections."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.class_changes import class_changes
from gfscore.audit.comparison import comparison_tables
from gfscore.audit.samples import ExpectedSamples
from gfscore.audit.settings import ComparisonSettings, IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from helpers.steps import audit_inputs, models_named
from write_tables_page import page

NAMES = ["cat", "dog", "frog"]
MEASURES = {"clean": {"kind": "clean"}, "great": {"kind": "great", "activation": "softmax"}}
SETTINGS = ComparisonSettings(most=1000)
GREAT = np.array([[0.3, 0.3, 0.3], [0.9, 0.3, 0.3], [0.6, 0.6, 0.2], [0.6, 0.6, 0.2]])
"""Class means of four models: 1 wins class 0, 2 and 3 win class 1."""


class Folder:
    def __init__(self, path, *, models=4, n=600):
        self.path, self.samples = path, {}
        rng = np.random.default_rng(0)
        self.models = models_named(*(f"m{index}" for index in range(models)))
        self.labels = np.repeat(np.arange(3), n).astype(np.int32)
        for index in range(models):
            right = rng.random(3 * n) < 0.8
            values = np.clip(GREAT[index, self.labels] + rng.uniform(-0.2, 0.2, 3 * n), 0, 1.25)
            for measure, value in (("clean", right.astype(float)), ("great", values)):
                self.add(index, measure, value, rng.permutation(3 * n))

    def add(self, index, measure, values, order, *, prefix="s"):
        rows = {"sample_id": [f"{prefix}{row}" for row in range(len(values))], "label": self.labels}
        frame = pd.DataFrame(rows | {"prediction": self.labels, "value": values})
        self.samples[f"m{index}", measure] = frame.iloc[order]

    def compare(self, *, family_models=None, **changes):
        inputs = audit_inputs(self.path, self.models, MEASURES, self.samples)
        settings = SETTINGS.model_copy(update=changes)
        tables, about = comparison_tables(
            inputs.uncalibrated(), NAMES, settings=settings, fp_lambda=0.5, family_models=family_models
        )
        return SimpleNamespace(comparison=about, **tables)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("comparison")).compare()


def of(frame, measure="great"):
    return frame[frame["measure"] == measure].reset_index(drop=True)


def test_rows_are_joined_by_sample_although_files_are_in_different_orders(tables):
    rows = of(tables.comparisons)
    assert len(rows) == 6 * 3
    means = {row.model: row.value for row in of(tables.rank_intervals).itertuples()}
    for row in of(tables.model_comparisons).itertuples():
        assert row.difference == pytest.approx(means[row.first_model] - means[row.second_model])
        assert row.difference >= 0
    one = rows[(rows["first_model"] == "m1") & (rows["second_model"] == "m0")].set_index("class_name")
    assert one["difference"]["cat"] == pytest.approx(0.6, abs=0.03)
    assert one["low"]["cat"] > 0.5 and one["p_holm"]["cat"] < 1e-6
    assert one["p_holm"]["dog"] > 0.05 and one["low"]["dog"] < 0 < one["high"]["dog"]


def test_ranks_and_wins_are_those_planted(tables):
    ranks = of(tables.rank_intervals).set_index("model")
    assert ranks.loc["m0", ["rank_best", "rank_worst"]].tolist() == [4, 4]
    assert ranks["rank_best"].drop("m0").max() <= 2
    pairs = of(tables.model_comparisons)
    won = {
        frozenset([row.first_model, row.second_model]): {
            row.first_model: row.sure_wins_first, row.second_model: row.sure_wins_second,
        }
        for row in pairs.itertuples()
    }  # fmt: skip
    assert won[frozenset(["m1", "m2"])] == {"m1": 2, "m2": 1}
    assert won[frozenset(["m2", "m3"])] == {"m2": 0, "m3": 0}
    assert won[frozenset(["m0", "m2"])] == {"m0": 1, "m2": 2}


def test_swaps_and_places_follow_from_the_class_values(tables):
    metrics = of(tables.metric_ranks)
    assert len(metrics) == 4 * 8
    rdi = metrics[metrics["metric"] == "rdi"].set_index("model")
    assert rdi["place"]["m0"] == 1
    mean = metrics[metrics["metric"] == "class_mean"].set_index("model")["value"]
    for swap in of(tables.lambda_swaps).itertuples():
        at = {name: mean[name] - swap.fp_lambda * rdi["value"][name] for name in (swap.before_model, swap.after_model)}
        assert at[swap.before_model] == pytest.approx(at[swap.after_model], abs=1e-9)
        assert mean[swap.before_model] > mean[swap.after_model]


# Words about sensitivity


def test_one_model_has_nobody_to_be_compared_with(tmp_path):
    tables = Folder(tmp_path, models=1, n=30).compare()
    assert tables.comparison["clean"]["reason"] == "only one model takes part"


def test_many_comparisons_are_made_with_the_best_model_alone(tmp_path):
    tables = Folder(tmp_path, n=60).compare(most=10)
    about = tables.comparison["great"]
    assert about["every_pair"] is False and about["pairs_listed"] == 3 and about["pairs_corrected_for"] == 6
    assert set(of(tables.comparisons)["first_model"]) == {about["reference"].split("/")[1]}


def test_pairs_with_models_that_were_left_out_are_corrected_for(tmp_path):
    folder = Folder(tmp_path, models=2, n=60)
    alone, counted = folder.compare(), folder.compare(family_models=3)
    assert counted.comparison["great"]["pairs_corrected_for"] == 3
    widths = [of(tables.comparisons).eval("high - low") for tables in (alone, counted)]
    assert (widths[0] < widths[1]).all()


def test_changes_of_classes_count_models_that_were_left_out(tmp_path):
    folder = Folder(tmp_path, models=3, n=60)
    inputs = audit_inputs(tmp_path, folder.models, MEASURES, folder.samples, included=["none/m0", "none/m1"])
    pairs = {model: model for model in inputs.included}
    asked = {"pairs": pairs, "measures": ["great"]}
    changes = class_changes(inputs, inputs, NAMES, **asked, intervals=IntervalSettings(confidence=0.9))
    alone = replace(inputs, subject=replace(inputs.subject, models=tuple(pairs)))
    strict = class_changes(alone, alone, NAMES, **asked, intervals=IntervalSettings(confidence=1 - 0.1 * 2 / 3))
    np.testing.assert_allclose(changes["low"], strict["low"])


def test_undecided_samples_count_for_either_model():
    labels = np.repeat(np.arange(3), 200).astype(np.int32)
    ids = np.array([f"{row:04d}" for row in range(600)])
    first = (np.arange(600) % 5 != 0) * 1.0
    settings = {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05, "test": "anytime", "budget": 3000}
    expected = ExpectedSamples.each_once(ids, labels)
    sure = named_measures({"sure": settings})["sure"]
    decided, undecided = (
        SampleValues.decided(ModelName("toy", "none", name), sure, values, expected, correct=labels >= 0)
        for name, values in (("decided", first), ("open", 0 * first))
    )
    tables, about = comparison_tables(
        [decided, replace(undecided, high=undecided.low + 1)], NAMES, settings=SETTINGS, fp_lambda=0.5
    )
    assert about["sure"]["undecided"] == 600
    assert (tables["rank_intervals"]["rank_best"] == 1).all()


def test_the_page_of_columns_names_the_keys_of_the_comparison(tables):
    text = page().split("`comparison.json` |")[1].splitlines()[0]
    summary = tables.comparison["great"]
    for key in ("models", "compared", "reason", "pairs_listed", "every_pair", "pairs_corrected_for", "reference"):
        assert f"`{key}`" in text
        assert key in summary
