"""The computed sentences: right for planted data, and no stronger than the data."""

import numpy as np
import pandas as pd
import pytest

from gfscore.core.numbers import number
from gfscore.show.words import takeaways
from gfscore.statistics.ranking import vulnerability
from synthetic import synthetic_audit


def class_scores(values, *, half=0.01, names=None, n=100):
    """class_scores rows from class values (M, K) with intervals of one half-width."""
    values = np.asarray(values, dtype=float)
    names = names or [str(index) for index in range(values.shape[1])]
    return pd.DataFrame(
        [
            {
                "dataset": "d",
                "threat": "none",
                "model": f"m{row}",
                "measure": "great",
                "class_index": column,
                "class_name": names[column],
                "n": 0 if np.isnan(value) else n,
                "value": value,
                "low": 0 if np.isnan(value) else max(0, value - half),
                "high": 1 if np.isnan(value) else value + half,
            }
            for (row, column), value in np.ndenumerate(values)
        ]
    )


def vulnerability_sentence(values, **options):
    frame = vulnerability(np.asarray(values, dtype=float), [str(index) for index in range(len(values[0]))])
    return takeaways.vulnerability(frame, class_scores(values, **options))


@pytest.mark.parametrize(
    ("values", "half", "sentence"),
    [
        ([[0.1, 0.5, 0.9]] * 3, 0.01, "Class 0 is the weakest class in all 3 models, each time significantly"),
        (
            [[0.1, 0.5, 0.9], [0.1, 0.11, 0.9], [0.9, 0.5, 0.1]],
            0.02,
            "Class 0 is the weakest class in 2 of 3 models, significantly so in 1; significantly lowest is class 2 in 1 of "
            "3",
        ),
        ([[0.1, 0.11, 0.9]] * 4, 0.02, "Class 0 scores lowest in all 4 models, but significantly so in none"),
        (
            [[0.1, 0.11, 0.12], [0.1, 0.11, 0.12], [0.11, 0.1, 0.12]],
            0.1,
            "No two classes differ beyond their intervals in any of the 3 models; class 0 scores lowest most often "
            "(2 of 3)",
        ),
        (
            [[0.1, 0.5, 0.9], [0.5, 0.1, 0.9]],
            0.01,
            "Class 0 and class 1 score lowest most often, in 1 of 2 models each, each time significantly",
        ),
        (
            [[0.1, 0.5, 0.9], [0.5, 0.1, 0.11]],
            0.02,
            "Class 0 and class 1 score lowest most often, in 1 of 2 models each; significantly lowest is class 0 in 1 of 2",
        ),
        (
            np.eye(5)[::-1] * -0.5 + 0.6,
            0.01,
            "No single class is the weakest: 5 classes score lowest in 1 of 5 models each; significantly lowest are 5 "
            "classes, in 5 of 5 models",
        ),
        (
            [[0.1, 0.11, 0.9]] * 2 + [[0.5, 0.9, 0.1], [0.5, 0.1, 0.9]],
            0.02,
            "Class 0 scores lowest in 2 of 4 models, but significantly so in none; significantly lowest are class 2 in "
            "1 of 4 and class 1 in 1 of 4",
        ),
        ([[0, 0, 0], [0, 0, 0]], 0.01, "All classes have the same value in each of the 2 models"),
        ([[0.1, 0.5, 0.9]], 0.01, "Class 0 is significantly the weakest class, at 0.100"),
        ([[0.1, 0.11, 0.9]], 0.02, "Class 0 scores lowest (0.100); 2 classes may be the weakest"),
        ([[0.1, 0.2, 0.3]], 0.5, "No two classes differ beyond their intervals; class 0 scores lowest (0.100)"),
        # A class without samples may be the weakest.
        ([[np.nan, 0.2, 0.9]], 0.01, "Class 1 scores lowest (0.200); 2 classes may be the weakest"),
        ([[np.nan, 0.2, 0.9]] * 2, 0.01, "Class 1 scores lowest in all 2 models, but significantly so in none"),
        # Equal but for rounding.
        ([[0.1 + 0.2, 0.3, 0.9]], 0.01, "2 classes score lowest (0.300); 2 classes may be the weakest"),
        ([[np.nan, 0.2, 0.2]], 0.01, "All classes with samples have the same value"),
    ],
)
def test_weakest_class(values, half, sentence):
    assert takeaways.weakest_class(class_scores(values, half=half)) == sentence


def test_names_of_classes_keep_their_spelling():
    sentence = takeaways.weakest_class(class_scores([[0.1, 0.5]], names=["cat", "Dog"]))
    assert sentence == "cat is significantly the weakest class, at 0.100"


@pytest.mark.parametrize(
    ("values", "half", "sentence"),
    [
        ([[0.1, 0.5, 0.9]] * 3, 0.01, "Class 0 ranks lowest on average (1.00 of 3) and scores lowest in all 3 models"),
        (
            [[0.1, 0.5, 0.9], [0.5, 0.1, 0.9]],
            0.5,
            "No two classes differ beyond their intervals; 2 classes rank equally lowest on average (1.50 of 3)",
        ),
        ([[0.3, 0.3, 0.3]] * 2, 0.01, "All classes have the same mean rank: none is more vulnerable"),
        ([[0.1, 0.5, 0.9]], 0.01, "Class 0 ranks lowest of 3 classes"),
        ([[0.0, 0.0, 0.9]], 0.01, "2 classes rank equally lowest of 3 classes"),
        ([[0.1, 0.2, 0.9], [0.2, 0.1, 0.9]], 0.01, "2 classes rank equally lowest on average (1.50 of 3)"),
    ],
)
def test_vulnerability(values, half, sentence):
    assert vulnerability_sentence(values, half=half) == sentence


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        # Class 0, the weakest where it was measured, is not ranked.
        (
            [[0.0, 0.1, 0.5], [np.nan, 0.1, 0.5]],
            "Class 1 ranks lowest on average (1.00 of 2 that every model has) and scores lowest in all 2 models",
        ),
        # What differs significantly in one model alone supports no ranking.
        (
            [[0.0, 0.495, 0.5], [np.nan, 0.495, 0.5]],
            "No two classes differ beyond their intervals; class 1 ranks lowest on average (1.00 of 2 that every model has)",
        ),
        (
            [[0.1, 0.5, 0.5], [np.nan, 0.5, 0.5]],
            "All classes that every model has have the same mean rank: none is more vulnerable",
        ),
        ([[0.1, np.nan], [np.nan, 0.5]], "No class has samples in every model, so that none can be ranked"),
    ],
)
def test_only_classes_that_every_model_has_are_called_vulnerable(values, sentence):
    assert vulnerability_sentence(values) == sentence


def models(**columns):
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"dataset": "d", "threat": "none", "model": [f"m{i}" for i in range(rows)], **columns})


def test_sign_of_robustness_against_fairness_depends_on_the_metric():
    score = np.linspace(0.1, 0.6, 9)
    frame = models(value=score, rdi=score, nrgc=1 - score, rdi_over_mean=1 - score)
    assert takeaways.score_and_rdi(frame) == (
        "Models with a higher mean are less equal by RDI (Spearman +1.00), but more equal by NRGC (−1.00)"
    )
    conflict = takeaways.metric_conflict(frame)
    assert "less equal by RDI (+1.00), but more equal by NRGC (−1.00) and RDI / mean (−1.00)" in conflict
    same = frame.assign(nrgc=score, rdi_over_mean=score)
    assert takeaways.metric_conflict(same) is None
    assert takeaways.score_and_rdi(same).endswith("(Spearman +1.00)")


def test_relations_that_may_be_chance_are_not_stated_as_facts():
    score = np.linspace(0.1, 0.6, 9)
    shuffled = score[[1, 0, 8, 3, 6, 5, 4, 7, 2]]
    frame = models(value=score, rdi=score, nrgc=-shuffled, rdi_over_mean=score)
    assert takeaways.score_and_rdi(frame) == (
        "Models with a higher mean are less equal by RDI (Spearman +1.00), with no clear relation by NRGC (−0.317)"
    )
    assert takeaways.metric_conflict(frame) is None


def test_metrics_of_equal_models_seldom_disagree():
    rng = np.random.default_rng(0)
    drawn = [models(**{name: rng.random(9) for name in ("value", "rdi", "nrgc", "rdi_over_mean")}) for _ in range(400)]
    # Two correlations would have to be significant at 5% each, and opposed.
    assert np.mean([takeaways.metric_conflict(frame) is not None for frame in drawn]) <= 0.02


def test_relation_needs_data():
    assert takeaways.score_and_rdi(models(value=[0.1, 0.2], rdi=[1, 2], nrgc=[1, 2])).startswith("2 models:")
    flat = models(value=[0.1] * 5, rdi=[1, 2, 3, 4, 5], nrgc=[1, 2, 3, 4, 5])
    assert "no relation to see" in takeaways.score_and_rdi(flat)
    weak = models(value=[1, 2, 3, 4, 5], rdi=[2, 1, 4, 3, 5], nrgc=[2, 1, 4, 3, 5])
    assert takeaways.score_and_rdi(weak) == "No clear relation between mean and RDI over 5 models (Spearman +0.800)"
    # However strict: of four models no order is rarer than 5%, of five one is.
    strict = models(value=[1, 2, 3, 4], rdi=[4, 3, 2, 1], nrgc=[4, 3, 2, 1])
    assert takeaways.score_and_rdi(strict) == "4 models: too few to show a relation between mean and disparity"
    assert not takeaways.rank_relation(strict["value"], strict["rdi"])[1]
    assert takeaways.rank_relation(pd.Series(range(5)), pd.Series(range(5)))[1]
    assert takeaways.metric_conflict(models(value=[0.1], rdi=[1], nrgc=[1], rdi_over_mean=[1])) is None


def test_clear_relation_uses_the_exact_test_for_few_models():
    # At M = 5 the exact two-sided probability of |rho| >= .9 is .083: not clear. At 17 it is.
    assert takeaways.rank_relation(pd.Series([1, 2, 3, 4, 5]), pd.Series([1, 2, 3, 5, 4])) == (
        pytest.approx(0.9),
        False,
    )
    many = pd.Series(range(17))
    assert takeaways.rank_relation(many, many)[1]


@pytest.mark.parametrize(
    ("p", "ending"),
    [
        ([0.01, 0.01, 0.5], "above chance in 2 of 3 models"),
        # Holm's thresholds are .05/3, .05/2 and .05/1, and the first that is missed ends the procedure.
        ([0.01, 0.03, 0.04], "above chance in 1 of 3 models"),
        ([0.02, 0.02, 0.02], "not distinguishable from chance in any model"),
        ([0.01, 0.01, 0.01], "above chance in all 3 models"),
        ([0.5, 0.5, 0.5], "not distinguishable from chance in any model"),
        ([np.nan] * 3, "to 0.300 (m2); samples are undecided, so that chance is not known"),
    ],
)
def test_disparity_above_chance(p, ending):
    sentence = takeaways.disparity(models(rdi=[0.1, 0.2, 0.3], rdi_p=p, rdi_low=0.01))
    assert sentence.startswith("RDI runs from 0.100 (m0) to 0.300 (m2)")
    assert sentence.endswith(ending)


def test_the_most_equal_model_is_not_named_without_saying_that_it_guesses():
    summary = models(rdi=[0.1, 0.2, 0.3], rdi_p=0.01, rdi_low=0.01)
    label = f"{summary['threat'].iloc[0]}/m0"
    sentence = takeaways.disparity(summary, guessing=[label])
    assert sentence.startswith("RDI runs from 0.100 (m0 [may be guessing]) to 0.300 (m2)")


@pytest.mark.parametrize(
    ("low", "ending"),
    [
        (
            [0.0, 0.0, 0.0],
            "(m2); in 2 of 3 models classes differ in how values are distributed, perhaps not in their means",
        ),
        ([None] * 3, "; in 2 of 3 models classes differ in how values are distributed, perhaps not in their means"),
        (
            [0.01, 0.0, 0.01],
            "above chance in 1 of 3 models; in 1 more, classes differ in how values are distributed, perhaps not in "
            "their means",
        ),
    ],
)
def test_disparity_is_above_chance_only_where_its_interval_is_above_0(low, ending):
    # The permutation p rejects for classes of equal means and different spreads too.
    found = takeaways.disparity(models(rdi=[0.1, 0.2, 0.3], rdi_p=[0.01, 0.01, 0.5], rdi_low=low))
    assert found.endswith(ending)
    assert takeaways.disparity(models(rdi=[0.1], rdi_p=[0.01], rdi_low=[0.0])).endswith(
        "; classes differ in how values are distributed, perhaps not in their means"
    )


def searched(**changes):
    return {"t_star": 0.02, "t_star_by_model": None, "interval": [0.01, 0.041], "stretches": None} | changes


def test_optimal_temperatures_in_words():
    assert takeaways.optimal_range(searched()) == "0.01 to 0.041"
    several = searched(stretches=[[0.01, 0.041], [1.0, 1.1], [2.0, 2.0]])
    assert takeaways.optimal_range(several) == "0.01 to 0.041 and 2 more stretches"
    assert takeaways.optimal_stretches(several) == several["stretches"]
    assert takeaways.optimal_range(searched(stretches=[[0.01, 0.041], [1, 1]])).endswith("and 1 more stretch")
    assert takeaways.optimal_range(searched(interval=[0.01, 0.01])) == "0.01"
    own = searched(t_star=None, t_star_by_model={"none/a": 0.4, "none/b": 1.7}, interval=[0.4, 1.7])
    assert takeaways.optimal_range(own) == "0.4 to 1.7 over models"
    assert takeaways.optimal_stretches(own) == []
    undefined = searched(t_star=None, interval=None)
    assert takeaways.optimal_range(undefined) == "n/a"
    assert takeaways.optimal_stretches(undefined) == []


def test_results_without_stretches_have_their_interval():
    result = searched()
    del result["stretches"]
    assert takeaways.optimal_stretches(result) == [[0.01, 0.041]]


def calibrated(after, *, before=0.5, alone=0.4, edge=False):
    return {
        "cross_model_accuracy": {
            "edge": edge,
            "baseline": {
                "clean accuracy alone vs attack distance": 0.99,
                "clean accuracy alone vs robust accuracy": alone,
            },
            "agreement": {"robust accuracy": {"before": before, "after": after}},
        }
    }


@pytest.mark.parametrize(
    ("results", "part"),
    [
        (calibrated(0.5, alone=0.86), "Clean accuracy alone agrees with robust accuracy at least as well (+0.860)"),
        (calibrated(0.5, before=0.6), "No calibration improves agreement with robust accuracy over T = 1 (+0.600)"),
        (calibrated(-0.1, before=-0.8), "No calibrated score ranks the models like robust accuracy"),
        (calibrated(0.9), "Calibrating by cross-model accuracy gives the best agreement with robust accuracy: +0.900"),
        (calibrated(None, edge=True), "The optimum of 1 of 1 objectives reaches the end of the search"),
        (calibrated(None), "No optimum reaches the end of the search"),
        ({"x": {**calibrated(None)["cross_model_accuracy"], "undefined": "all equal"}}, "No objective has an optimum"),
        (calibrated(0.5, alone=None), "No optimum reaches the end of the search; agreement with robust"),
    ],
)
def test_calibration(results, part):
    assert takeaways.calibration(results).startswith(part)


def test_logit_shift_moves_sigmoid_and_not_softmax():
    audit = synthetic_audit(models=2, per_class=10, calibrated=False)
    shifts = audit.sensitivity[audit.sensitivity["scale"] == 1]
    sentence = takeaways.logit_shift(shifts)
    assert sentence.startswith("Adding up to ±8 to every logit changes no prediction, yet moves great-sigmoid by up to")
    assert sentence.endswith("great-softmax stays the same")
    softmax = shifts[shifts["measure"] == "great-softmax"]
    assert takeaways.logit_shift(softmax).endswith("changes no score: great-softmax cannot see it")


def test_logit_factor_names_the_largest_change_from_the_score_at_one():
    audit = synthetic_audit(models=2, per_class=10, calibrated=False)
    rows = audit.sensitivity[(audit.sensitivity["shift"] == 0) & (audit.sensitivity["measure"] == "great-softmax")]
    moved = [abs(own["value"] - own["value"][own["scale"] == 1].item()).max() for _, own in rows.groupby("model")]
    start = "A factor of 0.25 to 4 on every logit changes no"
    sentence = takeaways.logit_factor(rows)
    assert sentence == f"{start} prediction, yet moves great-softmax by up to {number(max(moved))}"
    assert takeaways.logit_factor(rows.assign(value=0.5)) == f"{start} score of great-softmax"
