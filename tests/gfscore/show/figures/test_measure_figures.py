"""Figures of errors, attacks, radii, re-ranking and concentration: they show what was planted, in every size."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.audit_tables import AuditTables
from gfscore.audit.comparison.sensitivity import lambda_swaps
from gfscore.audit.measured import Measured
from gfscore.core.numbers import number
from gfscore.measures import measure_of
from gfscore.show import figures
from gfscore.show.figures import corruptions, errors, targets
from gfscore.show.figures.cells import ON_BRIGHT, ON_DARK
from gfscore.show.figures.errors import has_errors
from gfscore.show.figures.projections import effects_of_dimensions
from gfscore.show.figures.saving import save_figure
from gfscore.show.figures.traversals import traversals
from gfscore.statistics.concentration import rdi_deviations, sample_sizes
from gfscore.statistics.intervals import rdi_bound
from grouped_tables import grouped_tables
from made_errors import (
    CERTIFIED,
    CORRUPTION,
    MINIMAL,
    TARGETED,
    error_tables,
    falsification_table,
    radius_tables,
    target_tables,
)
from synthetic import LAM, synthetic_audit

CLEAN, GREAT = measure_of({"kind": "clean"}), measure_of({"kind": "great"})


def title(figure):
    return " ".join(text.get_text() for text in figure.texts if (text.get_gid() or "").startswith("takeaway"))


def note(figure):
    return " ".join(text.get_text() for text in figure.texts)


def rows_of(tables, name, *, corrupted=False):
    rows = tables[name]
    return rows[rows["corruption"].notna() == corrupted] if name == "class_errors" else rows


# ---- errors ----


def test_cfps_names_the_class_that_draws_the_errors():
    rows = rows_of(error_tables(), "class_errors")
    figure = figures.false_positive_shares(rows, CLEAN, independent=True)
    assert title(figure).startswith("Class c5 draws more than an equal share of the errors in all 3 models")
    filled = [
        line for line in figure.axes[0].lines if line.get_markerfacecolor() != "none" and line.get_marker() == "o"
    ]
    assert sum(len(line.get_xdata()) for line in filled) == 3
    bars = [patch.get_width() for patch in figure.axes[0].patches]
    assert bars == sorted(bars, reverse=True)
    assert sum(bars) == pytest.approx(1)


def test_cfps_of_equal_errors_claims_no_class():
    rows = rows_of(error_tables(taken=None, per_class=20, seed=1), "class_errors")
    figure = figures.false_positive_shares(rows, CLEAN, independent=True)
    assert title(figure).startswith("No class draws significantly more than an equal share")


def test_models_whose_only_errors_are_abstentions_have_no_share():
    tables = error_tables()
    rows = rows_of(tables, "class_errors").copy()
    first = rows["model"] == rows["model"].iloc[0]
    rows.loc[first, ["cfps", "cfps_relative", "false_positives"]] = 0.0
    figure = figures.false_positive_shares(rows, CLEAN, independent=True)
    assert title(figure).startswith("Class c5 draws more than an equal share of the errors in all 2 models")
    assert has_errors(rows)
    rows[["cfps", "cfps_relative", "false_positives"]] = 0.0
    assert not has_errors(rows)


def test_copies_of_images_are_not_tested():
    rows = rows_of(error_tables(corrupted=True), "class_errors")
    figure = figures.false_positive_shares(rows, measure_of(CORRUPTION), independent=False)
    assert "no test is made" in note(figure)
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert {line.get_markerfacecolor() for line in dots} == {"none"}


def test_confusion_matrix_shows_the_planted_confusion_and_nothing_on_the_diagonal():
    tables = error_tables()
    drawn = dict(figures.confusion_figures(tables["confusions"], rows_of(tables, "class_errors"), CLEAN))
    assert set(drawn) == {"confusion", "confusion_models"}
    assert (
        title(drawn["confusion"])
        == "Class c3 is most often taken for class c5: in 1.00 of the cases, mean over 3 models"
    )
    image = drawn["confusion"].axes[0].images[0].get_array()
    assert image.mask[np.arange(10), np.arange(10)].all()
    assert image[3, 5] == pytest.approx(1)
    numbers = {text.get_position(): text.get_text() for text in drawn["confusion"].axes[0].texts}
    assert numbers[5, 3] == "1.000"
    assert numbers[3, 3] == "0"
    assert len([axes for axes in drawn["confusion_models"].axes if axes.images and axes.get_visible()]) == 3


def test_the_mean_confusion_counts_every_model_alike():
    tables = error_tables(models=2, taken=None, accuracy=1.0)
    confusions = tables["confusions"]
    # The first model, measured on ten times the samples, calls every sample of class 0 a 1.
    first = confusions["model"] == "model_0"
    confusions.loc[first, "count"] *= 10
    confusions.loc[first & (confusions["true_index"] == 0), "predicted_index"] = 1
    drawn = dict(figures.confusion_figures(confusions, rows_of(tables, "class_errors"), CLEAN))
    assert drawn["confusion"].axes[0].images[0].get_array()[0, 1] == pytest.approx(0.5)


def test_perfect_models_confuse_nothing():
    tables = error_tables(accuracy=1.0, taken=None)
    drawn = dict(figures.confusion_figures(tables["confusions"], rows_of(tables, "class_errors"), CLEAN))
    assert title(drawn["confusion"]) == "No class is ever taken for another"


def test_many_classes_list_the_most_confused_pairs():
    tables = error_tables(models=2, classes=60, per_class=5)
    drawn = dict(figures.confusion_figures(tables["confusions"], rows_of(tables, "class_errors"), CLEAN))
    assert set(drawn) == {"confused_pairs"}
    figure = drawn["confused_pairs"]
    assert title(figure) == "Class c3 is most often taken for class c5: in 1.00 of the cases, mean over 2 models"
    assert figure.axes[0].get_yticklabels()[0].get_text() == "c3 \u2192 c5"
    assert len(figure.axes[0].get_yticks()) == 25


def test_a_model_that_never_confuses_a_pair_counts_as_zero_in_its_mean():
    tables = error_tables(models=2, classes=60, per_class=5, accuracy=1.0)
    other = tables["confusions"]
    only = other[(other["model"] == "model_0") | (other["true_index"] == other["predicted_index"])]
    drawn = dict(figures.confusion_figures(only, rows_of(tables, "class_errors"), CLEAN))
    assert drawn["confused_pairs"].axes[0].patches[0].get_width() == pytest.approx(0.5)


def test_corruptions_are_sorted_and_name_the_hardest():
    rows = rows_of(error_tables(corrupted=True), "class_errors", corrupted=True)
    figure = figures.corruption_by_class(rows, measure_of(CORRUPTION))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["glass blur", "fog"]
    assert title(figure).startswith("Glass blur costs most recall")
    assert "class c3 has the lowest under 2 of 2 corruptions, down to 0" in title(figure)
    shown = figure.axes[0].images[0].get_array()
    expected = rows[rows["corruption"] == "fog"].groupby("class_index")["recall"].mean()
    assert np.allclose(shown[1], expected)


def test_similarity_stands_below_and_chance_above_the_diagonal():
    rows = error_tables(models=4)["similarities"]
    figure = figures.similarity_matrix(rows)
    matrix = figure.axes[1].images[0].get_array()
    errors = rows[rows["similarity"] == "error_cosine"]
    assert np.allclose(sorted(matrix[np.tril_indices(4, -1)]), sorted(errors["value"]))
    assert np.allclose(sorted(matrix[np.triu_indices(4, 1)]), sorted(errors["baseline"]))
    assert title(figure).startswith("All 6 pairs of models err significantly more alike than by chance")
    assert "n = 600 shared samples" in " ".join(text.get_text() for text in figure.texts), "not those of a class"


def test_models_are_called_alike_after_correction_for_their_pairs():
    rows = error_tables(models=4)["similarities"]
    of_errors = rows.index[rows["similarity"] == "error_cosine"]
    # One of six p-values at 0.02 is what chance gives; a pair at 0.001 is not, though another one's cosine is larger.
    rows.loc[of_errors, "p_value"] = [0.02, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert title(figures.similarity_matrix(rows)).startswith("No two models err significantly more alike than by")
    rows.loc[of_errors, "p_value"] = [0.001, 0.5, 0.5, 0.5, 0.5, 0.5]
    rows.loc[of_errors, "value"] = [0.6, 0.99, 0.1, 0.1, 0.1, 0.1]
    words = title(figures.similarity_matrix(rows))
    assert words.startswith("1 of 6 pairs of models err")
    pair = rows.loc[of_errors[0]]
    assert words.endswith(f"{pair['first'].split('/')[1]} and {pair['second'].split('/')[1]} most")


def test_few_classes_cannot_settle_whether_models_err_alike():
    rows = error_tables(models=2)["similarities"]
    few = rows[rows["class_index"].isna() | (rows["class_index"] < 3)].assign(p_value=1 / 6)
    assert title(figures.similarity_matrix(few)).startswith(
        "Whether models err more alike than by chance is not settled: renaming 3 classes at random cannot give a p below"
    )


# ---- radii, targets, distances ----


@pytest.mark.parametrize(("settings", "mean"), [(MINIMAL, "Mean distance found"), (CERTIFIED, "Mean radius")])
def test_curves_name_the_best_and_worst_model_and_the_weakest_class(settings, mean):
    (rows, scores), measure = radius_tables(settings), measure_of(settings)
    whole = figures.model_curves(rows, measure, scores)
    # The means of the samples, not areas under lines of a few points.
    first, last = (number(scores.loc[scores["model"] == f"model_{index}", "value"].mean()) for index in (0, 2))
    assert title(whole) == f"{mean}: largest for model_2 ({last}), smallest for model_0 ({first})"
    bands = [collection for collection in whole.axes[0].collections if len(collection.get_paths())]
    assert len(bands) == 3
    by_class = figures.class_curves(rows, measure, scores)
    assert title(by_class) == "Class c2 is the weakest class in all 3 models, each time significantly"
    side = "upper bound on the truth" if settings is MINIMAL else "lower bound on the truth"
    assert side in note(whole)
    assert side in note(by_class)


def test_curves_call_no_class_the_weakest_whose_interval_reaches_the_others():
    (rows, scores), measure = radius_tables(MINIMAL, models=2), measure_of(MINIMAL)
    figure = figures.class_curves(rows, measure, scores.assign(low=0.0, high=1.0))
    assert title(figure).startswith("No two classes differ beyond their intervals in any of the 2 models")


def test_the_mean_radius_counts_samples_and_leaves_absent_classes_out():
    rows, scores = radius_tables(CERTIFIED, models=1, classes=3)
    scores["value"], scores["n"] = [0.6, 0.2, np.nan], [30, 10, 0]
    figure = figures.model_curves(rows, measure_of(CERTIFIED), scores)
    assert title(figure) == "model_0: mean radius 0.500 (l2 distance, pixels in [0, 1])"


def test_radiuses_beyond_the_last_sample_are_cut():
    rows, scores = radius_tables(MINIMAL)
    figure = figures.model_curves(rows, measure_of(MINIMAL), scores)
    ends = [line.get_xdata()[-1] for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    assert max(ends) < MINIMAL["largest_distance"]
    assert all(line.get_ydata()[-1] == 0 for line in figure.axes[0].lines if len(line.get_xdata()) > 2)


def test_targets_show_the_easiest_and_leave_the_diagonal_empty():
    tables = target_tables()
    figure = figures.target_success_matrix(tables["target_matrix"], tables["target_success"], measure_of(TARGETED))
    assert title(figure).startswith("Class c4 is the easiest target (0.800 of the other samples, mean over 2 models)")
    shown = figure.axes[0].images[0].get_array()
    assert shown.shape == (7, 6)
    assert shown.mask[np.arange(6), np.arange(6)].all()
    assert shown[6, 4] == pytest.approx(0.8)


def test_scores_above_the_distance_are_refuted():
    rows = falsification_table([1.0, 0.5, 0.4], [0.6, 0.6, 0.3])
    figure = figures.score_against_distance(rows, measure_of(MINIMAL))
    assert title(figure).startswith("Attacks refute the mean score of 2 of 3 models")
    triangles = next(line for line in figure.axes[0].lines if line.get_marker() == "^")
    assert list(triangles.get_ydata()) == [1.0, 0.4]
    unrefuted = figures.score_against_distance(falsification_table([0.1], [0.6]), measure_of(MINIMAL))
    assert title(unrefuted).startswith("Attacks do not refute the mean score")


def test_scores_above_the_distance_are_hollow_where_samples_were_not_broken():
    rows = falsification_table([1.0, 0.5, 0.4], [0.6, 0.6, 0.3]).assign(censored=[0, 0, 7])
    figure = figures.score_against_distance(rows, measure_of(MINIMAL))
    assert title(figure).startswith(
        "Attacks refute the mean score of 1 of 3 models (95% confidence for all of these; 1 not settled: 7 samples"
    )
    hollow, filled = (line for line in figure.axes[0].lines if line.get_marker() == "^")
    assert list(hollow.get_ydata()) == [0.4] and list(filled.get_ydata()) == [1.0]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert "score above distance" in words and "refuted: score above distance" not in words


# ---- re-ranking, concentration, profiles ----


def summary_of(means, rdis):
    return pd.DataFrame(
        {
            "dataset": "toy",
            "threat": "none",
            "model": list("ABCD")[: len(means)],
            "measure": "great",
            "temperature": 1.0,
        }
        | {"calibration": "none", "class_mean": means, "rdi": rdis, "confidence": 0.95}
    ).assign(fp=lambda rows: rows["class_mean"] - LAM * rows["rdi"], fp_low=-1.0, fp_high=1.0)


def swaps_of(summary):
    models = summary["model"]
    return pd.DataFrame(
        [
            {"measure": "great", "fp_lambda": lam, "before_model": models[before], "after_model": models[after]}
            for lam, before, after in lambda_swaps(summary["class_mean"], summary["rdi"])
        ],
        columns=["measure", "fp_lambda", "before_model", "after_model"],
    )


def test_lines_of_the_re_ranking_cross_at_the_exact_lambda():
    # A leads by .1 and has .4 more RDI: they are equal at .25.
    summary = summary_of([1.0, 0.9, 0.2], [0.6, 0.2, 0.2])
    figure = figures.fp_reranking(summary, swaps_of(summary), GREAT, fp_lambda=LAM)
    assert (
        title(figure)
        == "Weighing RDI with \u03bb = 0.5, A and B change places; the first swap, of A and B, comes at 0.250"
    )
    first, second, third = (
        line for line in figure.axes[0].lines if len(line.get_xdata()) > 2 or line.get_ydata()[0] == 3
    )
    assert first.get_ydata()[0] == 1
    assert first.get_ydata()[-1] == 2
    assert np.interp(0.25, first.get_xdata(), first.get_ydata()) == pytest.approx(1.5)
    assert np.interp(0.25, second.get_xdata(), second.get_ydata()) == pytest.approx(1.5)
    assert set(third.get_ydata()) == {3}
    assert "0.250" in [text.get_text() for text in figure.axes[0].texts]
    assert "intervals of FP of all 2 neighbours overlap" in note(figure)


def test_re_ranking_without_swaps_says_so():
    summary = summary_of([1.0, 0.5], [0.1, 0.2])
    figure = figures.fp_reranking(summary, swaps_of(summary), GREAT, fp_lambda=LAM)
    assert title(figure) == "No weight of RDI changes the order of the 2 models"


def measured(values, labels):
    key = {
        "dataset": "toy",
        "threat": "none",
        "model": "M",
        "measure": "great",
        "calibration": "none",
        "temperature": 1,
    }
    return Measured(key, values, labels, values > 0, np.arange(len(values)).astype(str))


def test_draws_stay_within_the_bound_and_shrink_with_n():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 200)
    values = rng.beta(1, 1 + labels / 5) * GREAT.value_range[1]
    sizes = sample_sizes(200)
    found = rdi_deviations(values, labels, sizes=sizes, draws=300, rng=rng)
    bound = rdi_bound(sizes, classes=10, alpha=0.05, width=GREAT.value_range[1])
    assert (found.values <= bound[:, None]).mean() >= 0.95
    quantiles = found.quantile(0.95)
    assert quantiles[-1] < quantiles[0] / 3
    assert sizes[0] == 5
    assert sizes[-1] == 200


def test_deviations_of_known_values_are_exact():
    # Class 0 is always 0; class 1 is 0 or 1 alike: with one draw RDI is 0 or 1, the truth .5.
    values, labels = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0, 0, 1, 1])
    found = rdi_deviations(values, labels, sizes=[1], draws=50, rng=np.random.default_rng(0))
    assert set(found.values.ravel()) == {0.5}
    constant = rdi_deviations(
        np.array([0.2, 0.2, 0.9]), np.array([0, 0, 1]), sizes=[1, 7], draws=5, rng=np.random.default_rng(0)
    )
    assert np.allclose(constant.values, 0)


def test_concentration_draws_the_bound_of_equation_12():
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 50)
    item = measured(rng.uniform(0, 1.2, size=200), labels)
    figure = figures.rdi_concentration([item, item], GREAT, confidence=0.95, seed=0)
    bound = figure.axes[0].lines[0]
    # 2 sqrt(pi log(2 * 4 / .05) / (4 * 50))
    assert bound.get_ydata()[-1] == pytest.approx(2 * np.sqrt(np.pi * np.log(160) / 200))
    assert np.array_equal(figure.axes[0].lines[1].get_ydata(), figure.axes[0].lines[2].get_ydata())
    assert "0 of 6,400 draws go beyond the bound" in note(figure)


def test_concentration_of_constant_values_is_drawn():
    labels = np.repeat(np.arange(3), 10)
    figure = figures.rdi_concentration([measured(np.ones(30), labels)], GREAT, confidence=0.95, seed=0)
    assert title(figure).startswith("RDI does not vary at all at 10 samples per class")


def test_profiles_say_how_far_models_agree():
    audit = synthetic_audit(models=6, per_class=300, weak_class=4, calibrated=False)
    figure = figures.class_profiles(audit.of("class_scores"), GREAT)
    assert title(figure).startswith("Models agree on which classes are weak: mean Spearman +")
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 6
    one = synthetic_audit(models=1, per_class=30, calibrated=False)
    assert title(figures.class_profiles(one.of("class_scores"), GREAT)).startswith("model_0: best and worst class are")


# ---- all of them ----


def everything(**settings):
    audit = synthetic_audit(models=3, per_class=20, measures=("clean", "great-softmax"), calibrated=False, **settings)
    tables = error_tables(models=3, names=settings.get("model_names"))
    curves, _ = radius_tables(MINIMAL, names=settings.get("model_names"))
    return AuditTables(
        audit.class_scores,
        audit.model_summary,
        audit.vulnerability,
        calibration_results={},
        **tables,
        measures={"radius_curves": curves.assign(measure="clean")},
    ), audit.measures


def test_figures_are_drawn_where_tables_have_the_data():
    tables, measures = everything()
    names = [name for name, _ in figures.figures_of_audit(tables, measures=measures, fp_lambda=LAM)]
    assert len(names) == len(set(names))
    own = {"cfps_clean", "confusion_clean", "confusion_models_clean", "similarity_clean", "survival_clean"}
    assert own | {"survival_by_class_clean"} <= set(names)
    assert not any(name.startswith(("cfps_great", "target", "certified", "fp_reranking")) for name in names)


def test_hostile_names_are_text_and_bytes_repeat(tmp_path):
    names = ["<script>alert(1)</script>", "$x_1$ & \\frac{a}{b}", "a" * 90]
    for run in ("one", "two"):
        tables = error_tables(names=names, classes=4)
        rows, scores = radius_tables(MINIMAL, names=names, classes=4)
        save_figure(figures.model_curves(rows, measure_of(MINIMAL), scores), tmp_path / run / "curves")
        save_figure(figures.similarity_matrix(tables["similarities"]), tmp_path / run / "similarity")
        drawn = dict(figures.confusion_figures(tables["confusions"], rows_of(tables, "class_errors"), CLEAN))
        save_figure(drawn["confusion_models"], tmp_path / run / "confusions")
    first = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert len(first) == 9
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert all(content.startswith(b"%PDF") for name, content in first.items() if name.endswith(".pdf"))
    assert not any(b"CreationDate" in content or b"Matplotlib v" in content for content in first.values())
    assert not any(b"<script" in content for name, content in first.items() if name.endswith(".svg"))


def test_numbers_on_cells_are_black_or_white():
    tables = error_tables()
    drawn = dict(figures.confusion_figures(tables["confusions"], rows_of(tables, "class_errors"), CLEAN))
    plain = [text for text in drawn["confusion"].axes[0].texts if text.get_weight() != "bold"]
    assert {text.get_color() for text in plain} == {ON_BRIGHT, ON_DARK}


# ---- mappers ----


def pictures(names):
    """Two images of 4x4 pixels whose last dimension moves every pixel by 200, the others by 0, 10, 20 and so on."""
    moves = np.zeros((2, len(names), 9, 1, 4, 4), dtype=np.uint8)
    for place in range(len(names)):
        moves[:, place, -1] = 200 if place == len(names) - 1 else 10 * place
    return {
        "originals": moves[:, 0, 0],
        "reconstructions": moves[:, 0, 0],
        "traversals": moves,
        "positions": np.linspace(-1, 1, 9),
        "names": np.array(names),
    }


def test_traversals_name_the_dimension_that_changes_images_most_and_what_the_move_is():
    figure = traversals(pictures(["z0", "z1", "z2"]), mapper="vae")
    assert title(figure) == "z2 changes the 2 images most, z0 least"
    assert "from \N{MINUS SIGN}1 (left) to +1 sigma" in note(figure)
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["\N{MINUS SIGN}1", "0", "+1"]
    figure = traversals(pictures(["slant=left", "slant=right"]), mapper="gan", attributes=True)
    assert "Each row moves one attribute of gan from one end of its range" in note(figure)
    assert "sigma" not in note(figure) + figure.axes[0].get_xlabel()
    still = pictures(["z0"])
    assert title(traversals(still | {"traversals": 0 * still["traversals"]}, mapper="vae")).startswith(
        "No move changes"
    )


def test_effects_say_what_moves_and_in_which_unit():
    rows = grouped_tables(synthetic_audit(models=1, classes=2, per_class=4, permutations=9, calibrated=False))
    effects = rows["projection_effects"].assign(tolerance=0.9, censored=0.8, models=1, accuracy=0.95, divergence=1.0)
    figure = effects_of_dimensions(effects)
    assert "one dimension of vae goes from \N{MINUS SIGN}sigma to +sigma" in note(figure)
    assert "\N{MINUS SIGN}0.50" in [text.get_text() for text in figure.axes[0].texts]
    attribute = effects.assign(divergence=np.nan, how="classifier", trait="stroke_mass=thin").drop_duplicates(
        "dimension_index"
    )
    figure = effects_of_dimensions(attribute)
    assert "one attribute of vae goes from one end of its range to the other" in note(figure)
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["stroke_mass=thin"]


# ---- ties in titles ----


def test_titles_name_no_class_of_several_equal_ones():
    names, tied = ["a", "b", "c"], np.array([0.1 + 0.2, 0.3, 0.2])
    nobody = np.zeros((2, 3), dtype=bool)
    share = errors._sentence(names, tied, nobody, models=2, independent=False)
    assert share == "2 classes draw the largest shares of the errors, 0.300 on average"
    above = nobody | [True, True, False]
    assert errors._sentence(names, tied, above, models=2, independent=True).startswith(
        "2 classes draw more than an equal share of the errors in all 2 models each, 0.300 on average"
    )
    success = np.array([[np.nan, 0.5, 0.1], [0.5, np.nan, 0.1], [0.1, 0.1, np.nan]])
    assert targets._sentence(success, tied, names, models=1) == (
        "2 classes are the easiest targets (0.300 of the other samples); "
        "2 pairs of class and target succeed most often (0.500)"
    )
    recalls = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.5]])
    assert corruptions._sentence(recalls, ["fog", "frost"], names) == (
        "2 kinds of corruption cost most recall (to 0.167); 2 classes have the lowest under 2 of 2 corruptions each, down to 0"
    )
