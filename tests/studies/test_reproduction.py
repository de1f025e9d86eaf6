"""The papers' claims: what the printed tables and this package say about them, to the precision stated."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

from gfscore.statistics import SCALE
from studies.reference import (
    exact_binomial_table1,
    gf_score_table3,
    gf_score_table4,
    gf_score_table5,
    projection_tables,
    robustbench_leaderboard,
)
from studies.reproduction import classwise_analysis as classwise
from studies.reproduction import exact_binomial as binomial
from studies.reproduction import gf_score_tables as tables
from studies.reproduction import gf_score_theory as theory
from studies.reproduction import ledger
from studies.reproduction import measurement_algorithms as measurement
from studies.reproduction import projection_fairness as projection
from studies.reproduction import projection_tables as projection_text
from studies.reproduction.claims import UNTESTABLE, VERDICTS
from studies.reproduction.page import MARKS, PAPERS, page
from studies.reproduction.references import REFERENCES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "what-reproduces.md"
SCORE, CALIBRATED, ROBUST, CLEAN = "great_score", "great_score_calibrated", "robust_accuracy_pct", "clean_accuracy_pct"


@pytest.fixture(scope="module")
def claims():
    return {claim.key: claim for claim in ledger()}


def to(decimals):
    """Tolerance of a number printed with so many decimals."""
    return {"abs": 0.5 * 10**-decimals, "rel": 0}


# The reference tables


def test_reference_tables_have_the_printed_size():
    assert gf_score_table3().shape == (17, 9)
    assert gf_score_table4().shape == (5, 9)
    assert gf_score_table5().shape == (17, 12)
    assert exact_binomial_table1().shape == (7, 3)
    assert projection_tables().shape == (48, 8)
    assert not projection_tables().isna().any().any()


def test_class_scores_stand_in_the_order_of_table_3():
    assert list(gf_score_table5().index) == list(gf_score_table3().index)


def test_every_model_of_the_paper_is_on_the_leaderboard():
    for dataset, threat in (("cifar10", "L2"), ("imagenet", "Linf")):
        board = robustbench_leaderboard(dataset, threat)
        assert board.index.is_unique
        assert set(tables.scores_table(dataset).index) <= set(board.index)
    assert tables.robust_accuracy_difference() == 0


# Numbers that the ledger states, to the decimals that it prints

EXACT = {"abs": 1e-12}
NUMBERS = {
    # H1, H3: calibration lowers the agreement with robust accuracy, and with Eq. 8's own objective; H4: clean accuracy
    # alone ranks better.
    "score, robust": (tables.rank_agreement, ("cifar10", SCORE, ROBUST), 0.661765, to(6)),
    "calibrated, robust": (tables.rank_agreement, ("cifar10", CALIBRATED, ROBUST), 0.515022, to(6)),
    "score, clean": (tables.rank_agreement, ("cifar10", SCORE, CLEAN), 0.833, to(3)),
    "calibrated, clean": (tables.rank_agreement, ("cifar10", CALIBRATED, CLEAN), 0.709, to(3)),
    "clean, robust": (tables.rank_agreement, ("cifar10", CLEAN, ROBUST), 0.863, to(3)),
    "clean, robust, ImageNet": (tables.rank_agreement, ("imagenet", CLEAN, ROBUST), 1, EXACT),
    # H5: a perfect rank of five models is weak evidence.
    "calibrated, clean, ImageNet": (tables.rank_agreement, ("imagenet", CALIBRATED, CLEAN), 1, EXACT),
    "p of 0.9": (partial(tables.exact_p_value, models=5), (0.9,), 0.083, to(3)),
    "score, robust, ImageNet": (tables.rank_agreement, ("imagenet", SCORE, ROBUST), 0.9, EXACT),
    "calibrated, robust, ImageNet": (tables.rank_agreement, ("imagenet", CALIBRATED, ROBUST), 1, EXACT),
    # H6: the sign of robustness against fairness depends on the metric.
    "score, RDI": (tables.rank_agreement, ("cifar10", SCORE, "rdi"), 0.899510, to(6)),
    "score, NRGC": (tables.rank_agreement, ("cifar10", SCORE, "nrgc"), -0.806867, to(6)),
    # H7: the score exceeds the true distance.
    "uniform": (theory.uniform_counterexample, (), (0.9092, 0.25, 1), to(4)),
    "identity": (lambda: theory.identity_counterexample()[:2], (), (SCALE, np.sqrt(2 / np.pi)), {"abs": 1e-4}),
    # H9: the bound at ImageNet's size is not 0.35; Eq. 11 at CIFAR-10's.
    "Eq. 11, ImageNet": (theory.bound_per_class, (50, 1000), 0.407985, to(6)),
    "Eq. 12, ImageNet": (theory.bound_of_rdi, (50, 1000), 0.816, to(3)),
    "Eq. 11, CIFAR-10": (theory.bound_per_class, (1000, 10), 0.068598, to(6)),
    "samples by GREAT's theorem": (theory.great_theorem_samples, (0.05,), 128_351, EXACT),
    "samples for ten classes": (lambda: theory.great_theorem_samples(0.05, classes=10), (), 208_468, EXACT),
    # GF24: the first line of the proof fails.
    "first line": (theory.first_line_counterexample, (), (0.3, 0.0, 0.8), {"rel": 1e-6}),
    # The exact-binomial paper: repeating a fixed-level test is not of that level.
    "false calls": (binomial.repeated_test_false_calls, (), (0.188, 0.277), to(3)),
    "violations of printed bounds": (lambda: binomial.bound_violations()[0], (), 0, EXACT),
    # PF12: printed formulas leave the range that is stated; printed odds have no difference; coupling is 0 at both ends.
    "Tolerance": (projection.printed_tolerance, (3.0, -3.0, 3.0), 2, EXACT),
    "Deviation": (projection.printed_deviation, (3.0, 0.0, 0.0), 1.5, EXACT),
    "larger Deviation": (projection.printed_deviation, (6.0, 0.0, 0.0), 3, EXACT),
    "equalized odds": (projection.printed_equalized_odds, ((1.0, 1.0), (0.0, 0.0)), 1, EXACT),
    "average odds": (projection.printed_average_odds, ((1.0, 1.0), (0.0, 0.0)), 0.5, EXACT),
    "coupling of equal": (projection.printed_coupling, ([0.9] * 40,), 0, EXACT),
    "coupling of one alone": (projection.printed_coupling, ([0.0] + [1.0] * 39,), 0, EXACT),
    "formula violations": (lambda: projection.formula_violations()[0], (), 0, EXACT),
    "cells within the formula": (projection.cells_within_formula, (), (0, 0), EXACT),
    "Eyeglasses": (projection.models_with_equal, ("Eyeglasses", "dp", "eopp"), (24, 24), EXACT),
    "Attractive": (projection.models_with_equal, ("Attractive", "dp", "eopp"), (0, 24), EXACT),
    # P log P is largest at 1 / e.
    "dimensions of a coupling": (projection_text.latent_dimensions_needed, (16 / np.e,), 16, EXACT),
    "dimensions of the printed one": (projection_text.latent_dimensions_needed, (6.09,), 17, EXACT),
    # Measurement algorithms: printed pseudo-code misjudges.
    "accuracy": (lambda: measurement.printed_adversarial_accuracy([0.6, 0.7, 0.8], step=1.0), (), (0, 1), EXACT),
    "perturbation": (lambda: measurement.printed_minimal_perturbation(1, step=0.3, max_iterations=2), (), 0.6, EXACT),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_that_the_ledger_states(name):
    function, given, expected, tolerance = NUMBERS[name]
    assert function(*given) == pytest.approx(expected, **tolerance)


@pytest.mark.parametrize("key", ["H1", "H3", "H4", "H5", "H6", "H7", "H9", "H11", "GF24", "PF12"])
def test_what_these_numbers_refute(claims, key):
    assert claims[key].verdict == "refuted"


@pytest.mark.parametrize("key", ["H2", "H8", "H10", "H12"])
def test_discrepancies_without_printed_numbers_are_stated_with_their_source(claims, key):
    assert claims[key].verdict == UNTESTABLE
    assert claims[key].note.startswith("Stated only, from ")


def test_H5_eq_8_degenerates():
    gaps = [theory.distance_from_accuracy(temperature) for temperature in (1.0, 0.1, 0.01, 1e-6)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-12


def test_H6_on_imagenet_and_by_the_relative_range():
    assert tables.rank_agreement_with_relative_range() < -0.8
    assert tables.rank_agreement("imagenet", SCORE, "rdi") > 0 > tables.rank_agreement("imagenet", SCORE, "nrgc")


def test_H7_steepness_changes_the_score_but_not_the_classifier():
    gentle, steep = (theory.uniform_counterexample(steepness) for steepness in (1.0, 100.0))
    assert gentle[1] == steep[1]
    assert steep[0] > gentle[0]


def test_H11_names_of_two_imagenet_classes_are_wrong(claims):
    assert claims["H11"].ours == "velvet, yellow lady's slipper"
    assert "viaduct is n04532670 and cattail is none of the 1,000 classes" in claims["H11"].note


# GF-Score: what holds


@pytest.mark.parametrize("column", ["rdi", "nrgc", "wcr", "fp_great"])
def test_table_3_follows_from_table_5(column):
    assert tables.disparity_difference(column) <= 0.0015


def test_worst_classes_agree_in_all_rows_with_one_tie():
    assert tables.models_whose_worst_class_agrees() == 17
    ties = {model: worst for model, worst in tables.tied_worst_classes().items() if len(worst) > 1}
    assert ties == {"Rice2020Overfitting": ["cat", "dog"]}
    assert gf_score_table5().loc["Rice2020Overfitting", ["cat", "dog"]].tolist() == [0.031, 0.031]


def test_decomposition_is_exact():
    assert tables.aggregate_difference() <= 0.0005 + 1e-12
    assert theory.decomposition_error() < 1e-12


def test_class_patterns_and_ranking_by_penalised_score():
    assert (tables.times_worst("cifar10", "cat"), tables.times_worst("cifar10", "dog")) == (13, 4)
    assert tables.times_best() == {"automobile": 10, "horse": 5, "truck": 3}
    assert tables.times_worst("imagenet", "n04525038") == 3
    assert (gf_score_table4()["wcr"] == 0).sum() == 2
    assert [tables.place("Augustin2020Adversarial", column) for column in (SCORE, "fp_great")] == [2, 5]
    assert [tables.place("Wu2020Adversarial", column) for column in (SCORE, "fp_great")] == [16, 14]
    assert (gf_score_table4()["fp_great"] < 0).all()


def test_rank_correlation_of_five_models_is_coarse():
    assert np.diff(theory.rank_correlation_levels(5)) == pytest.approx(0.1)


def test_GF24_the_conclusion_holds_for_any_scores():
    truth, estimate = np.random.default_rng(0).random((2, 1000, 10))
    assert (abs(np.ptp(truth, axis=1) - np.ptp(estimate, axis=1)) <= 2 * abs(truth - estimate).max(axis=1)).all()


def test_GF14_clean_accuracy_orders_the_models_of_every_family(claims):
    families = tables.rank_agreement_in_families(CLEAN, ROBUST)
    assert families == dict.fromkeys(("Augustin", "Gowal", "Rebuffi", "Sehwag"), pytest.approx(1))
    assert "not within" not in claims["GF14"].note


# Other papers


def test_eq_5_has_the_wrong_sign():
    errors = {"false_pass": 0.04, "false_fail": 0.03}
    observed = binomial.observed_share(0.8, **errors)
    assert binomial.printed_robust_share(observed, **errors) == pytest.approx(0.7366, **to(4))
    assert binomial.solved_robust_share(observed, **errors) == pytest.approx(0.8, abs=1e-12)


def test_repeated_test_agrees_with_simulation():
    # Independent and plain: 400 sequences of neighbours, the two tails looked up at each step.
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    n = np.arange(1, 301)
    found = (rng.random((400, 300)) < 0.1).cumsum(axis=1)
    robust, broken = binom.cdf(found, n, 0.1) <= 0.05, binom.sf(found - 1, n, 0.1) <= 0.05
    first = [np.where(calls.any(1), calls.argmax(1), 300) for calls in (robust, broken)]
    simulated = np.mean(first[0] < first[1]), np.mean(first[1] < first[0])
    assert binomial.repeated_test_false_calls(0.1, 300) == pytest.approx(simulated, abs=0.07)


def test_printed_bounds_ignore_sampling_and_the_best_needs_a_small_alpha():
    assert binomial.misses_from_sampling() > 0.3
    assert [binomial.clean_samples_needed(kappa) for kappa in binomial.THRESHOLDS] == [29, 299, 2_995, 29_956]
    alpha = binomial.largest_alpha_for(0.9063)
    assert binomial.printed_bounds(1.0, alpha)[0] == pytest.approx(0.9063)
    assert alpha < 0.05


def test_certificates_are_for_the_smoothed_classifier_and_reusing_votes_doubles_the_error():
    radius, distance = measurement.spike_counterexample()
    assert radius > 100 * distance
    assert 0.001 < measurement.false_certificates_when_votes_are_reused(10_000) <= 0.002


def test_one_vs_rest_accuracy_hides_a_class_never_recognised_and_is_never_below_accuracy(claims):
    confusion = classwise.class_never_recognised()
    values = classwise.one_vs_rest_accuracy(confusion)
    assert values[0] == pytest.approx(0.9, abs=1e-12)
    assert max(classwise.largest_error_of_mean(), classwise.largest_error_of_sum()) < 1e-12
    assert classwise.smallest_excess_over_accuracy() >= 0
    # Equality: every error involves class 0.
    assert values.min() == pytest.approx(np.trace(confusion) / confusion.sum(), abs=1e-12)
    # What CW2 compares it with is no number that the paper prints.
    assert claims["CW2"].claimed == "accuracy of the class"


def test_printed_deviation_is_half_the_tolerance_and_no_column_has_the_ends_of_a_range(claims):
    assert projection.largest_distance_from_half_tolerance() < 0.3
    assert projection.columns_with_an_end() == (0, 10)
    tolerance = projection_tables().query("task == 'Attractive'")["tolerance"]
    assert f"from {tolerance.min():.2f} to {tolerance.max():.2f}" in claims["PF13"].note
    assert [projection_text.ranges(metric) for metric in ("tolerance", "deviation")] == [
        {"Attractive": (93.06, 95.95), "Eyeglasses": (99.19, 99.74)},
        {"Attractive": (46.5, 47.78), "Eyeglasses": (49.3, 49.89)},
    ]


# The ledger and its page


NEEDING_OTHERS = {"H2", "H8", "H10", "H12", "GF20", "GF21", "GF22"} | {"EB8", "EB9", "EB10"}
NEEDING_OTHERS |= {"PF9", "PF10", "PF13"}
"""Rows that take files, networks or people of the source."""


def test_what_is_untestable_needs_others(claims):
    assert {key for key, claim in claims.items() if claim.verdict == UNTESTABLE} == NEEDING_OTHERS


def test_every_claim_is_complete(claims):
    assert len(claims) == len(ledger())
    assert {claim.paper for claim in claims.values()} == set(PAPERS)
    for claim in claims.values():
        assert claim.verdict in VERDICTS
        assert claim.claim and claim.claimed and claim.ours
        assert claim.note or claim.verdict != UNTESTABLE


def test_page_names_every_claim_and_says_verdicts_in_words(claims):
    text = page()
    assert all(f"\n| {key} |" in text for key in claims)
    assert all(mark in text and verdict in mark for verdict, mark in MARKS.items())


def test_committed_page_is_the_generated_one():
    assert PAGE.read_text(encoding="utf-8") == page(), "run studies/write_reproduction_page.py"


# What is cited


def test_page_lists_every_reference_with_its_link():
    section = page().split("\n## References\n")[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(REFERENCES) == len({reference.title for reference in REFERENCES})
    for row, reference in zip(rows, REFERENCES, strict=True):
        assert row.startswith(f"| {reference.authors}")
        assert f"*{reference.title}*" in row
        assert f"]({reference.link})" in row or not reference.link
        assert str(reference.year or "") in row


def test_the_citation_file_cites_the_same():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    for entry, reference in zip(cited, REFERENCES, strict=True):
        assert (entry["title"], entry.get("year")) == (reference.title, reference.year)
        assert entry.get("url", entry.get("repository-code", "")) == reference.link
        found = [author.get("name") or f"{initials(author)} {author['family-names']}" for author in entry["authors"]]
        assert ", ".join(found) == reference.authors
        assert reference.venue.startswith(entry.get("journal") or entry.get("conference", {}).get("name", ""))


def initials(author):
    """Pin-Yu as P.-Y., as the page prints it."""
    names = [name.split("-") for name in author["given-names"].split()]
    return " ".join("-".join(f"{part[0]}." for part in parts) for parts in names)


def test_help_of_the_page_writer_writes_nothing():
    before = PAGE.stat().st_mtime_ns
    tool = PAGE.parents[1] / "studies" / "write_reproduction_page.py"
    told = subprocess.run([sys.executable, tool, "--help"], capture_output=True, text=True, check=True)
    assert "what-reproduces.md" in told.stdout and "wrote" not in told.stdout
    assert PAGE.stat().st_mtime_ns == before
