"""The comparison of models, from sample files to tables, sentences and the page's sections."""

import numpy as np
import pandas as pd
import pytest

from audit_inputs import audit_inputs, frames_of, models_named
from gfscore.audit.audit_tables import AuditTables
from gfscore.audit.comparison.rows import comparison_tables, tables_of
from gfscore.audit.comparison.sensitivity import model_sensitivity, with_places
from gfscore.audit.measured import Measured
from gfscore.show.report.comparison import comparison_views, sensitivity_views
from gfscore.show.words import comparison_words, sensitivity_words
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE

NAMES = ["cat", "dog", "frog"]
MEASURES = {"clean": {"kind": "clean"}, "great": {"kind": "great", "activation": "softmax"}}
SETTINGS = {"confidence": 0.95, "most": 1000, "flips": 99, "seed": 0}
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

    def compare(self, **changes):
        inputs = audit_inputs(self.path, self.models, MEASURES, self.samples)
        settings = SETTINGS | changes
        rows, about = comparison_tables(inputs.measured(), MEASURES, NAMES, settings=settings, fp_lambda=0.5)
        return AuditTables(None, None, None, comparison=about, **frames_of(rows))


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
    # All samples differ in one direction: signs say nothing that betting does not.
    assert np.isnan(one["p_sign_flip"]["cat"])


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


def test_one_model_has_nobody_to_be_compared_with(tmp_path):
    tables = Folder(tmp_path, models=1, n=30).compare()
    assert tables.comparison["clean"]["reason"] == "only one model takes part"
    assert all(view["choices"] == [] for view in comparison_views(tables, MEASURES, lam=0.5))


def test_many_comparisons_are_made_with_the_best_model_alone(tmp_path):
    tables = Folder(tmp_path, n=60).compare(most=10)
    about = tables.comparison["great"]
    assert about["every_pair"] is False and about["pairs_listed"] == 3 and about["pairs_corrected_for"] == 6
    assert set(of(tables.comparisons)["first_model"]) == {about["reference"].split("/")[1]}
    sentence = comparison_words.differences_found(of(tables.comparisons), of(tables.model_comparisons), about)
    assert sentence.startswith("Of 3 pairs with m") and "(of 6; all are allowed for)" in sentence


def test_sentences_say_what_was_planted(tables):
    ranks, pairs = of(tables.rank_intervals), of(tables.model_comparisons)
    assert comparison_words.best_model(ranks).startswith("m1 is significantly the best of 4 models")
    only = ranks.assign(rank_best=[1, 2, 2, 4])
    assert "is significantly the best of 4 models (with 95% confidence" in comparison_words.best_model(only)
    assert "any of the 4 models may be the best" in comparison_words.best_model(ranks.assign(rank_best=1))
    assert "pairs the model of the smaller aggregate is significantly better" in comparison_words.reversals(pairs)
    clean = of(tables.model_comparisons, "clean")
    assert comparison_words.reversals(clean).startswith("No model with a smaller aggregate")
    found = comparison_words.differences_found(of(tables.comparisons), pairs, tables.comparison["great"])
    assert found.startswith("Of 6 pairs of models, ") and "18 differences on one class" in found


def test_views_hold_a_win_matrix_with_an_empty_diagonal(tables):
    view = comparison_views(tables, MEASURES, lam=0.5)[1]
    matrix = {label: wins for label, wins in view["matrix"]}
    assert all(wins[index] is None for index, wins in enumerate(matrix.values()))
    assert [wins.count(None) for wins in matrix.values()] == [1] * 4
    assert len(view["sentences"]) == 3 and len(view["choices"]) == 2


# Words about sensitivity


def swaps(*lambdas):
    rows = [{"dataset": "d", "measure": "m", "fp_lambda": value} for value in lambdas]
    return frame_of(CATALOGUE["lambda_swaps"], rows)


def test_lambda_in_words():
    choice = sensitivity_words.lambda_choice
    assert choice(swaps(), lam=0.5) == "No two models change places under FP, whatever lambda is"
    assert choice(swaps(0.25, 0.75), lam=0.5) == (
        "The ranking by FP at lambda = 0.5 holds from lambda = 0.250 to 0.750; 2 pairs of models change places at some "
        "lambda above 0, first at 0.250"
    )
    assert "holds from lambda = 0.250 on; 1 pair of models changes" in choice(swaps(0.25), lam=0.5)
    assert choice(swaps(0.5), lam=0.5).startswith("At lambda = 0.5 itself two models change places")


def metric_rows(**places):
    return frame_of(
        CATALOGUE["metric_ranks"],
        [
            {"dataset": "d", "threat": "t", "model": f"m{index}", "measure": "m", "metric": metric, "place": place}
            for metric, listed in places.items()
            for index, place in enumerate(listed)
        ],
    )


def test_choice_of_the_metric_in_words():
    same = metric_rows(rdi=[1, 2], nrgc=[1, 2], rdi_over_mean=[1, 2], wcr=[1, 2])
    assert sensitivity_words.metric_choice(same).endswith("first place: m0 by RDI, NRGC, RDI / mean and WCR")
    other = metric_rows(rdi=[1, 2], nrgc=[2, 1], rdi_over_mean=[2, 1], wcr=[1.5, 1.5])
    assert sensitivity_words.metric_choice(other) == (
        "Which model comes first depends on the metric: m0 by RDI; m1 by NRGC and RDI / mean; m0 and m1 by WCR"
    )
    broken = sensitivity_words.metric_choice(other, guessing=["t/m0"])
    assert "m0 [may be guessing] by RDI; m1 by NRGC" in broken
    undefined = metric_rows(rdi=[1, 2], nrgc=[np.nan, np.nan], rdi_over_mean=[1, 2], wcr=[1, 2])
    assert sensitivity_words.metric_choice(undefined) is None


def sensitivity(*, swapped):
    # Of two models one is right by little and often, the other by much and seldom: scaling changes who is ahead.
    labels = np.random.default_rng(0).integers(0, 3, 200).astype(np.int32)
    often = np.where(np.arange(3) == labels[:, None], 1.0, 0.0)
    seldom = np.where(np.arange(200)[:, None] < 100, 20.0, -20.0) * often
    steady = (4.0 if swapped else 40.0) * often * 0.25
    classifiers = [
        ({"dataset": "d", "threat": "t", "model": name}, z, labels)
        for name, z in (("steady", steady), ("seldom", seldom))
    ]
    how = {"shifts": [-1, 0], "scales": [0.25, 1, 4], "lam": 0.5}
    return with_places([model_sensitivity(*each, MEASURES, **how) for each in classifiers])


def test_order_under_a_scale_in_words():
    table = sensitivity(swapped=True)
    sentence = sensitivity_words.order_under_changes(table)
    assert sentence.startswith(
        "Shifting the logits by up to ±1 or scaling them by 0.25 to 4 changes no prediction, yet "
    )
    assert "Spearman down to −1.00" in sentence and "seldom and steady come first under some change" in sentence
    still = sensitivity_words.order_under_changes(sensitivity(swapped=False))
    assert still.endswith("leaves the order of the 2 models as it is")
    assert sensitivity_words.order_under_changes(table[table["model"] == "steady"]) is None


def test_a_threshold_that_the_scale_decides():
    table = sensitivity(swapped=True)
    steady = table[(table["model"] == "steady") & (table["shift"] == 0)].sort_values("scale")["wcr"].to_numpy()
    rule = {"measure": "great", "words": "rule", "statistic": "wcr", "threshold": steady[1]}
    sentence = sensitivity_words.gate_under_changes(rule, table)
    assert "1 model stands above or below the threshold" in sentence or "2 models stand" in sentence
    far = sensitivity_words.gate_under_changes(rule | {"threshold": 2.0}, table)
    assert far.endswith("every model stays on its side of the threshold 2")
    assert sensitivity_words.gate_under_changes(rule | {"statistic": "class"}, table) is None
    view = sensitivity_views(table, [rule])["great"]
    assert view["gate"] == {"rule": sentence} and view["order"] == view["sentences"][0]
    assert sensitivity_views(None, []) == {}


def test_undecided_samples_count_for_either_model_and_the_page_says_so():
    labels = np.repeat(np.arange(3), 200).astype(np.int32)
    key = {"dataset": "toy", "threat": "none", "measure": "sure", "calibration": "none", "temperature": None}
    ids = np.array([f"{row:04d}" for row in range(600)])
    first = (np.arange(600) % 5 != 0) * 1.0
    measured = [
        Measured(key | {"model": name}, values, labels, labels >= 0, ids, upper_values=upper)
        for name, values, upper in (("decided", first, first), ("open", 0 * first, 0 * first + 1))
    ]
    settings = {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05, "test": "anytime", "budget": 3000}
    rows, about = tables_of(measured, NAMES, measure_settings=settings, settings=SETTINGS, fp_lambda=0.5)
    assert about["undecided"] == 600
    assert "600 values are undecided" in comparison_words.undecided(about)
    assert comparison_words.undecided(about | {"undecided": 0}) is None
    assert "No order is certain" in comparison_words.best_model(pd.DataFrame(rows["rank_intervals"]))
