import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from gfscore.audit.agreement.rows import agreement_rows
from gfscore.show.words.measure_words import (
    SUCCESS,
    central_claim,
    differing_classes,
    mean_scores_refuted,
    mean_scores_refuted_by_measure,
    opposed,
)
from made_errors import falsification_table

TRIALS = 120
ALLOWED = binom.ppf(0.999, TRIALS, 0.05)
"""Most false warnings of so many trials, each with probability 0.05."""


def over_models(values):
    """Rows of measure_agreement over the models (M, columns) of one class, column by column."""
    scores = pd.DataFrame(
        [
            {"dataset": "d", "threat": "none", "model": f"m{m}", "measure": f"measure {k}", "calibration": "none"}
            | {"class_index": 0, "value": value, "n": 10}
            for (m, k), value in np.ndenumerate(values)
        ]
    )
    names = [f"measure {k}" for k in range(values.shape[1])]
    rows = pd.DataFrame(agreement_rows(scores, names, confidence=0.95, permutations=99, seed=0))
    return rows[rows["over"] == "models"]


def test_unrelated_measures_seldom_warn_of_opposite_orders():
    rng = np.random.default_rng(0)
    drawn = [over_models(rng.normal(size=(7, 6))) for _ in range(TRIALS)]
    warned = sum(opposed(rows) is not None for rows in drawn)
    # Pair by pair, a third of these audits would warn.
    unadjusted = sum(((rows["p"] <= 0.05) & (rows["rho"] < 0)).any() for rows in drawn)
    assert warned <= ALLOWED < unadjusted


def test_measures_in_opposite_order_are_named():
    values = np.random.default_rng(0).normal(size=(8, 3))
    values[:, 1] = -values[:, 0]
    words = opposed(over_models(values))
    assert words.startswith("These measures rank the models in opposite order, p <= 0.05 by Holm over 3 pairs: ")
    assert words.endswith("measure 0 and measure 1 (\u22121.00)")
    assert opposed(over_models(np.abs(values[:, :1] + [[0, 1]]))) is None
    constant = values.copy()
    constant[:, 1:] = 1
    assert opposed(over_models(constant)) is None


def predictor_rows(differences):
    """Rows of target_predictors with differences (definitions, models)."""
    rows = [
        {"definition": name, "rho_cfps": value / 2, "rho_miss_rate": -value / 2, "difference": value}
        for name, values in zip(SUCCESS, differences, strict=True)
        for value in values
    ]
    return pd.DataFrame(rows)


def test_a_better_predictor_is_seldom_named_under_any_definition_where_there_is_none():
    rng = np.random.default_rng(0)
    drawn = [predictor_rows(rng.normal(size=(3, 9))) for _ in range(TRIALS)]
    warned = sum(any("predicts better (" in central_claim(rows, name) for name in SUCCESS) for rows in drawn)
    alone = sum(
        any("predicts better (" in central_claim(rows[rows["definition"] == name], name) for name in SUCCESS)
        for rows in drawn
    )
    assert warned <= ALLOWED < alone


def test_three_definitions_need_seven_models():
    six, seven = (central_claim(predictor_rows(np.full((3, models), 0.1)), "excess") for models in (6, 7))
    assert "not settled (p = 0.094, sign-flip test over 6 models, Holm over 3 definitions, which cannot get" in six
    assert "CFPS predicts better (p = 0.047, sign-flip test over 7 models, Holm over 3 definitions" in seven
    one_known = np.full((3, 6), np.nan)
    one_known[1] = 0.1
    assert "CFPS predicts better (p = 0.032, sign-flip test over 6 models, which" in central_claim(
        predictor_rows(one_known), "excess"
    )
    assert central_claim(predictor_rows(one_known), "success") is None


def log_rank_rows(p, permutations=999):
    return pd.DataFrame({"p_permutation": p, "permutations": permutations})


def test_so_many_models_that_shuffling_cannot_tell_are_not_called_alike():
    many = differing_classes(log_rank_rows([0.001] * 60))
    assert many.startswith(
        "Whether distances differ between classes is not settled: a log-rank test by shuffling cannot"
    )
    assert many.endswith("get below 0.0600, each p-value times the number of models")
    assert differing_classes(log_rank_rows([0.001] * 50)).startswith(
        "Distances differ significantly between classes in 50"
    )
    assert "cannot get below 0.100" in differing_classes(log_rank_rows([0.1], permutations=9))
    assert " in 1 of 2 models (" in differing_classes(log_rank_rows([0.6, 0.02]))
    assert differing_classes(log_rank_rows([0.6, 0.5])).startswith("In no model do distances differ significantly")
    assert differing_classes(log_rank_rows([0.01])).startswith(
        "Distances differ significantly between classes in the only"
    )


@pytest.mark.parametrize("models", [1, 3])
def test_nothing_to_compare_names_every_reason(models):
    words = differing_classes(log_rank_rows([np.nan] * models))
    assert words.endswith("fewer than two have samples, nothing was found, or every sample is wrong anyway")


def test_refuted_scores_are_told_by_score_and_distances_at_t_1_alone():
    table = falsification_table([1.0, 0.2], [0.5, 0.5])
    others = [
        {"distances": "other", "mean_score": 0.1, "p_mean": 1.0},
        {"calibration": "rank", "temperature": 9.0},
        {"class_index": 0},
    ]
    words = mean_scores_refuted_by_measure(pd.concat([table, *(table.assign(**each) for each in others)]))
    assert words == {
        "great-softmax": {
            "minimal": "Attacks refute the mean score of 1 of 2 models (95% confidence for all of these), with examples "
            "nearer than the score for 0.500 of the correct samples",
            "other": "Attacks refute the mean score of none of the 2 models, yet find examples nearer than the score for "
            "0.500 of the correct samples",
        }
    }
    assert mean_scores_refuted_by_measure(None) == {}


@pytest.mark.parametrize(
    ("rates", "distances", "words"),
    [
        (
            [0.0, 0.0],
            [0.5, 0.5],
            "Attacks find no example nearer than the score in any of the 2 models, which confirms nothing",
        ),
        (
            [np.nan, np.nan],
            [np.nan, np.nan],
            "No sample is classified correctly, so that attacks have nothing to refute",
        ),
        (
            [0.2, np.nan],
            [0.1, np.nan],
            "Attacks refute the mean score with 95% confidence; examples nearer than the score for 0.200 of the correct samples",
        ),
    ],
)
def test_models_without_a_correct_sample_or_a_refuted_score_are_not_said_to_be_either(rates, distances, words):
    table = falsification_table([0.2, 0.2], distances).assign(rate=rates)
    assert mean_scores_refuted(table) == words


@pytest.mark.parametrize(
    ("scores", "censored", "words"),
    [
        (
            [0.9],
            [95],
            "Whether attacks refute the mean score is not settled: 95 samples were not broken up to the largest distance "
            "searched; examples nearer than the score for 0.500 of the correct samples",
        ),
        ([0.4], [95], "Attacks do not refute the mean score; examples"),
        (
            [0.9, 0.9],
            [95, 1],
            "Attacks refute the mean score of none of the 2 models (2 not settled: 96 samples were not broken up to the "
            "largest distance searched), yet find",
        ),
        (
            [0.9, 0.9, 0.4],
            [0, 1, 5],
            "Attacks refute the mean score of 1 of 3 models (95% confidence for all of these; 1 not settled: 1 sample was "
            "not broken up to the largest distance searched), with",
        ),
    ],
)
def test_a_mean_score_is_refuted_only_where_every_sample_was_broken(scores, censored, words):
    # What attacks did not break counts at the largest distance searched, and may lie far beyond it.
    table = falsification_table(scores, [0.5] * len(scores)).assign(censored=censored)
    assert mean_scores_refuted(table).startswith(words)


@pytest.mark.parametrize(
    ("p_mean", "words"),
    [
        ([0.2], "Whether attacks refute the mean score is not settled: means too close for 95% confidence; examples"),
        ([0.016, 0.9, 0.9], "Attacks refute the mean score of 1 of 3 models (95% confidence for all of these; 2 not"),
        # Holm: the smallest of three is held to 0.05 / 3.
        ([0.017, 0.9, 0.9], "Attacks refute the mean score of none of the 3 models (3 not settled: means too close"),
    ],
)
def test_a_mean_score_is_refuted_only_where_it_surely_exceeds_the_mean_distance(p_mean, words):
    table = falsification_table([0.9] * len(p_mean), [0.5] * len(p_mean)).assign(p_mean=p_mean)
    assert mean_scores_refuted(table).startswith(words)
