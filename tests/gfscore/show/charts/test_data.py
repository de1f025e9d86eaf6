"""Data and findings of charts against numbers computed by hand."""

from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from gfscore.audit.classwise.confusion import Predictions, confusion_tables
from gfscore.audit.findings.finding import Finding
from gfscore.audit.findings.words import FAILURES, OF_ANY_VALUES
from gfscore.core.identity import ALL, ModelName
from gfscore.show.audit_charts import WHOLE, draw_chart, drawing_of, drawings
from gfscore.show.charts import CHARTS
from gfscore.show.charts.class_vulnerability import rank_bounds
from gfscore.show.charts.declaration import NothingToDraw
from gfscore.show.charts.fp_reranking import LEAST_RANGE
from gfscore.show.drawing.axes import spread_out
from gfscore.show.drawing.cells import cell_text, limits_around_zero, limits_from_zero, limits_of_measure
from gfscore.show.drawing.layout import PHONE, new_figure
from gfscore.show.drawing.marks import runs_of
from gfscore.statistics.ranking import vulnerability
from helpers.synthetic_audits import (
    CORRUPTION,
    GREAT,
    MINIMAL,
    MODEL,
    TARGETED,
    drawn_of,
    error_tables,
    falsification_table,
    full_subject,
    grouped_tables,
    measured,
    pictures,
    radius_tables,
    scores_of,
    subject_of,
    swaps_of,
    synthetic_audit,
    target_tables,
)


def of(name, tables, measure=GREAT, **settings):
    """Frame and finding of a chart, None of both without anything to draw."""
    try:
        frame = CHARTS[name].data(subject_of(tables, measure, **settings))
    except NothingToDraw:
        return None, None
    return frame, CHARTS[name].finding(frame)


@pytest.mark.parametrize(
    ("values", "half", "kind", "numbers"),
    [
        ([[0.1, 0.5, 0.6], [0.2, 0.5, 0.9]], 0.05, "weakest_in_models", {"times": 2, "models": 2, "sure": 2}),
        ([[0.1, 0.15, 0.6], [0.2, 0.25, 0.9]], 0.05, "weakest_class_open", {"times": 2, "models": 2, "sure": 0}),
        (
            [[0.1, 0.5, 0.6], [0.5, 0.1, 0.9]],
            0.05,
            "weakest_classes",
            {"times": 1, "models": 2, "sure": 1, "classes": 2},
        ),
        ([[0.1, 0.5, 0.6]], 0.05, "weakest_class_of_one", {"value": 0.1, "suspects": 1}),
        ([[0.1, 0.15, 0.6]], 0.05, "weakest_class_of_one_open", {"value": 0.1, "suspects": 2}),
        ([[0.1, 0.15, 0.6]], 0.5, "classes_alike_of_one", {"value": 0.1}),
        ([[0.1, 0.1, 0.6]], 0.5, "classes_alike_of_one", {"value": 0.1, "tied": 1}),
        # The lowest value is not of the class that is the lowest in most models.
        ([[0.3, 0.4, 0.6], [0.3, 0.4, 0.6], [0.6, 0.1, 0.6]], 0.9, "classes_alike", {"times": 2, "models": 3}),
        ([[0.5, 0.5, 0.5]], 0.05, "classes_equal", {"models": 1}),
    ],
)
def test_the_weakest_class_is_claimed_as_far_as_intervals_go(values, half, kind, numbers):
    _, finding = of("class_heatmap", {"class_scores": scores_of(values, half=half)})
    assert (finding.kind, dict(finding.numbers)) == (kind, numbers)


def test_models_stand_by_their_mean_over_samples_and_an_empty_class_may_be_the_weakest():
    scores = scores_of([[0.1, 0.5, np.nan], [0.9, 0.3, np.nan]], n=[10, 30, 0], half=0.001)
    frame, _ = of("class_heatmap", {"class_scores": scores})
    assert frame.drop_duplicates("model")[["model", "total"]].to_numpy().tolist() == [["B", 0.45], ["A", 0.4]]
    assert set(frame["weakest"].dropna()) == {"open"}


def test_frames_of_cells_lie_over_the_gaps_between_halves():
    values = [[0.1, 0.5, 0.6], [0.5, 0.1, 0.9]]
    tables = {"class_scores": scores_of(values, most=np.array(values) + 0.1, half=0.3)}
    drawing = drawing_of(CHARTS["class_heatmap"], subject_of(tables, GREAT))
    (axes,) = (axes for axes in drawing.figure().axes if axes.patches)
    gaps = [lines for lines in axes.collections if type(lines).__name__ == "LineCollection"]
    assert gaps and all(frame.get_zorder() > gap.get_zorder() for frame in axes.patches for gap in gaps)


def test_shares_of_models_are_no_objective():
    drawing = drawing_of(CHARTS["calibration_curves"], full_subject(models=3, classes=4))
    labels = {axes.get_title(loc="left").replace("\n", " "): axes.get_ylabel() for axes in drawing.figure().axes}
    (of_likelihood,) = (label for title, label in labels.items() if title.startswith("Likelihood"))
    assert of_likelihood.replace("\n", " ") == "share of models"
    assert any("higher is better" in label.replace("\n", " ") for label in labels.values())


def test_wide_names_leave_room_for_the_plot_on_a_phone():
    scores = scores_of([[0.1, 0.5, 0.6], [0.5, 0.1, 0.9]])
    scores["model"] = scores["model"].map({"A": "m" * 99 + "1", "B": "m" * 99 + "2"})
    drawing = drawing_of(CHARTS["class_heatmap"], subject_of({"class_scores": scores}, GREAT))
    figure = drawing.picture(PHONE)
    assert figure.axes[0].get_position().width > 0.3
    names = {text.get_text() for text in figure.texts}
    assert any(name.endswith("m1") for name in names) and any(name.endswith("m2") for name in names)


@pytest.mark.parametrize(("half", "kind"), [(0.04, "groups_overlap"), (0.01, "groups_differ_most")])
def test_groups_are_said_to_differ_where_intervals_of_any_are_apart(half, kind):
    audit = synthetic_audit(models=2, classes=3, per_class=10, calibrated=False)
    scores = grouped_tables(audit)["group_scores"]
    scores = scores.assign(low=scores["value"] - half, high=scores["value"] + half)
    tables = {"class_scores": audit.class_scores, "group_scores": scores}
    assert drawing_of(CHARTS["group_scores"], subject_of(tables, GREAT)).finding.kind == kind


def groups_of(values, *, half=0.2):
    """Table group_scores of model A by attribute: values (2, K) of two groups in K classes, and the groups' means."""
    rows = []
    for attribute, groups in values.items():
        for index, classes in enumerate(groups):
            for k, value in zip([ALL, *range(len(classes))], [np.mean(classes), *classes], strict=True):
                cell = {"attribute": attribute, "group_index": index, "group": ["no", "yes"][index]}
                cell |= {"class_index": k, "class_name": "all" if k == ALL else f"c{k}", "value": value}
                ends = {"low": value - half, "high": value + half, "confidence": 0.95}
                rows.append(MODEL | {"model": "A", "measure": GREAT, "n": 50, "small": False} | cell | ends)
    return pd.DataFrame(rows)


def test_groups_are_said_to_overlap_only_where_those_that_are_not_drawn_do_too():
    wide = groups_of({f"a{index}": [[0.4, 0.4], [0.7, 0.7]] for index in range(9)})
    narrow = groups_of({"sure": [[0.5, 0.5], [0.6, 0.6]]}, half=0.01)
    for tables, kind in ((wide, "groups_overlap"), (pd.concat([wide, narrow]), "groups_differ_most")):
        frame, finding = of("group_scores", {"group_scores": tables, "class_scores": scores_of([[0.5, 0.5]])})
        assert finding.kind == kind and finding.numbers["times"] == 0
        assert "sure" not in set(frame["attribute"])


def test_classes_of_few_samples_do_not_keep_the_others_out_of_the_fairness_metrics():
    rows = []
    for k in range(60):
        cell = {"class_index": k, "class_name": f"c{k}", "small": k < 50, "value": 0.9 if k < 50 else 0.1 + 0.001 * k}
        rows.append(MODEL | {"model": "A", "measure": GREAT, "attribute": "side", "metric": "eopp", "n": 500} | cell)
    tables = {"group_metrics": pd.DataFrame(rows), "class_scores": scores_of([[0.5, 0.5]])}
    frame, finding = of("group_metrics", tables)
    assert frame["class"].nunique() == 40
    assert (finding.kind, finding.subject["cls"]) == ("recall_differs_of_one", "c59")
    rows += [row | {"model": "B", "value": 0.3} for row in rows]
    _, finding = of("group_metrics", tables | {"group_metrics": pd.DataFrame(rows)})
    expected = "Largest difference of recall between groups, mean over 2 models: c59 by side, 23 points"
    assert finding.sentence == expected


def test_attributes_are_drawn_by_class_that_differ_most_within_a_class():
    # Groups of the last attribute differ in each class, but not on the whole.
    values = {f"a{index:02d}": [[0.5, 0.5], [0.55, 0.55]] for index in range(30)}
    values["opposed"] = [[0.9, 0.2], [0.2, 0.9]]
    frame, finding = of("group_classes", {"group_scores": groups_of(values), "class_scores": scores_of([[0.5, 0.5]])})
    assert finding.subject["attribute"] == "opposed"
    assert frame["row"].nunique() == 40


def test_the_title_of_a_scale_is_not_cut_on_a_phone():
    measures = ["clean", "adversarial-linf-2of255", "proven-linf-2of255"]
    pairs = [{"first": a, "second": b} for a, b in combinations(measures, 2)]
    agreement = pd.DataFrame(pairs).assign(dataset="toy", over="models", n=3, rho=[0.5, -0.5, np.nan], p=0.2)
    tables = {"class_scores": scores_of([[0.1]]), "measure_agreement": agreement}
    figure = drawing_of(CHARTS["measure_agreement"], subject_of(tables)).picture(PHONE)
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert max(text.get_window_extent().x1 for text in texts) <= PHONE + 1


def test_a_long_name_before_a_short_one_is_not_cut():
    scores = scores_of([np.linspace(0.1, 0.9, 30)])
    scores["class_name"] = scores["class_name"].replace({"c26": 18 * "W"})
    drawing = drawing_of(CHARTS["class_heatmap"], subject_of({"class_scores": scores}, GREAT))
    figure = drawing.picture(PHONE)
    (name,) = (text for text in figure.texts if text.get_text() == 18 * "W")
    assert name.get_window_extent().x1 <= PHONE + 1


@pytest.mark.parametrize(("most", "said"), [(None, False), ([[0.7, 0.9]] * 2, True)])
def test_values_that_leave_undecided_samples_out_are_not_said_to_be_known(most, said):
    scores = scores_of([[0.0, 0.0], [0.0, 0.0]], most=most)
    summary = pd.DataFrame({"model": ["A", "B"], "value": 0.0, "value_most": 0.8 if most else 0.0})
    summary = summary.assign(**MODEL_OF_SUMMARY)
    ranks = pd.DataFrame({"threat": "none", "model": ["A", "B"], "measure": GREAT, "rank_best": 1, "rank_worst": 2})
    tables = {"class_scores": scores, "model_summary": summary, "rank_intervals": ranks}
    for name in ("class_heatmap", "model_ranking"):
        sentence = drawing_of(CHARTS[name], subject_of(tables, GREAT)).finding.sentence
        assert sentence.startswith("Undecided samples counted as failures, ") == said


MODEL_OF_SUMMARY = {"dataset": "toy", "threat": "none", "measure": GREAT, "calibration": "none", "confidence": 0.95}
MODEL_OF_SUMMARY |= {"value_low": 0.0, "value_high": 1.0, "wcr": 0.0}

HALVES = {"class_heatmap": "QuadMesh", "class_profiles": "PolyCollection"}
"""Charts of class values -> the collection that shows a band."""


@pytest.mark.parametrize("chart", HALVES)
@pytest.mark.parametrize("undecided", [True, False])
def test_a_band_between_value_and_most_is_drawn_where_samples_are_undecided(chart, undecided):
    values = np.array([[0.1, 0.5, 0.6], [0.4, 0.5, 0.9]])
    most = np.array([[0.3, 0.5, 0.8], [0.4, 0.7, 0.9]]) if undecided else values
    scores = scores_of(values, most=most, n=[10, 30, 10])
    drawing = drawing_of(CHARTS[chart], subject_of({"class_scores": scores}, GREAT))
    assert (drawing.chart.undecided in drawing.words.note) == undecided

    figure = drawing.picture(PHONE)
    bands = [item for item in figure.axes[0].collections if type(item).__name__ == HALVES[chart]]
    if chart == "class_profiles":
        assert len(bands) == undecided and (not bands or len(bands[0].get_paths()) == 2)
        return
    # In the order of the rows, the best model on top; a cell has the colour of its value, or of value and most.
    colours = bands[0].get_array()
    expected = np.stack([values, most], axis=-1).reshape(2, 6) if undecided else values
    assert np.allclose(colours, expected[::-1])
    written = {text.get_text() for text in figure.findobj(Text)}
    assert ("0.440 to 0.520" in written, "0.440" in written) == (undecided, not undecided)


@pytest.mark.parametrize(("classes", "order"), [(60, "in their own order"), (61, "by their mean, the weakest left")])
def test_the_note_says_how_the_classes_stand(classes, order):
    subject = subject_of({"class_scores": scores_of(np.linspace(1, 0.1, classes)[None])}, GREAT)
    assert f" Classes stand {order}. " in drawing_of(CHARTS["class_heatmap"], subject).words.note


def test_many_classes_stand_by_their_mean():
    frame, _ = of("class_heatmap", {"class_scores": scores_of(np.linspace(1, 0.1, 61)[None])})
    assert frame["value"].is_monotonic_increasing


def test_ranks_are_those_that_intervals_allow():
    scores = scores_of([[0.1, 0.5, 0.55, np.nan]], half=0.1).assign(label="A")
    bounds = rank_bounds(scores)
    assert bounds.to_numpy().tolist() == [[1, 1], [2, 3], [2, 3]] and bounds.index.tolist() == [0, 1, 2]


def summary_of(means, rdis):
    rows = pd.DataFrame(MODEL | {"model": list("ABCD")[: len(means)], "measure": GREAT, "calibration": "none"})
    return rows.assign(class_mean=means, rdi=rdis)


def test_lines_of_the_re_ranking_cross_at_the_exact_lambda():
    # A leads by .1 and has .4 more RDI: they are equal at .25.
    summary = summary_of([1.0, 0.9, 0.2], [0.6, 0.2, 0.2])
    frame, finding = of("fp_reranking", {"model_summary": summary, "lambda_swaps": swaps_of(summary)})
    lines = {name: own for name, own in frame.groupby("model")}
    for name in "AB":
        assert np.interp(0.25, lines[name]["fp_lambda"], lines[name]["place"]) == pytest.approx(1.5)
    assert set(lines["C"]["place"]) == {3} and frame["fp_lambda"].max() == LEAST_RANGE
    assert finding.kind == "places_change" and finding.numbers["first"] == pytest.approx(0.25)
    assert finding.numbers["moved"] == 2
    fixed = summary_of([1.0, 0.5], [0.1, 0.2])
    _, finding = of("fp_reranking", {"model_summary": fixed, "lambda_swaps": swaps_of(fixed)})
    assert finding == Finding("places_fixed", numbers={"models": 2})


def test_the_bound_of_rdi_is_that_of_equation_12_and_holds_for_the_draws():
    scores = scores_of([[0.5, 0.5, 0.5, 0.5]])
    frame, finding = of("rdi_concentration", {"class_scores": scores}, measured={GREAT: drawn_of(["M"], 4)})
    last = frame[frame["bound"]].iloc[-1]
    # 2 sqrt(pi log(2 * 4 / .05) / (4 * 30))
    assert (last["n"], last["distance"]) == (30, pytest.approx(2 * np.sqrt(np.pi * np.log(160) / 120)))
    assert frame["beyond"].sum() == 0 and finding.kind == "rdi_bound_is_wide"
    still = measured(np.ones(30), np.repeat(np.arange(3), 10))
    _, finding = of("rdi_concentration", {"class_scores": scores_of([[1, 1, 1]])}, measured={GREAT: [still]})
    assert finding.kind == "rdi_does_not_vary"


# ---- errors ----


def test_cfps_names_the_class_that_draws_the_errors_and_claims_none_of_equal_ones():
    frame, finding = of("cfps", error_tables(), "clean")
    assert finding.subject["cls"] == "c5" and finding.numbers["times"] == 3
    assert frame.groupby("model")["cfps"].sum().to_numpy() == pytest.approx(1)
    assert frame.drop_duplicates("class")["mean"].is_monotonic_decreasing
    _, finding = of("cfps", error_tables(taken=None, per_class=20, seed=1), "clean")
    assert finding.kind == "errors_even"
    copies = error_tables(corrupted=True)
    _, finding = of("cfps", copies, "corruption", measures={"corruption": CORRUPTION})
    assert finding.kind == "errors_drawn_untested" and finding.confidence is None


def test_models_whose_only_errors_are_abstentions_have_no_share():
    tables = error_tables()
    first = tables["class_errors"]["model"] == "model_0"
    tables["class_errors"].loc[first, ["cfps", "false_positives"]] = 0.0
    frame, _ = of("cfps", tables, "clean")
    assert frame["model"].nunique() == 2
    tables["class_errors"][["cfps", "false_positives"]] = 0.0
    assert of("cfps", tables, "clean") == (None, None)


def test_the_mean_confusion_counts_every_model_alike():
    tables = error_tables(models=2, taken=None, accuracy=1.0)
    confusions = tables["confusions"]
    # The first model, measured on ten times the samples, calls every sample of class 0 a 1.
    first = confusions["model"] == "model_0"
    confusions.loc[first, "count"] *= 10
    confusions.loc[first & (confusions["true_index"] == 0), "predicted_index"] = 1
    tables["class_errors"].loc[tables["class_errors"]["model"] == "model_0", "n"] *= 10
    frame, finding = of("confusion", tables, "clean")
    cells = frame.set_index(["true", "predicted"])
    assert cells.loc[("c0", "c1"), "share"] == pytest.approx(0.5)
    assert np.isnan(cells.loc[("c3", "c3"), "share"]) and cells.loc[("c3", "c3"), "recall"] == 1
    assert finding.subject == {"true": "c0", "predicted": "c1"}
    _, finding = of("confusion", error_tables(accuracy=1.0, taken=None), "clean")
    assert finding.kind == "nothing_confused"


@pytest.mark.parametrize("name", ["confusion", "confusion_models"])
def test_the_diagonal_of_a_confusion_is_the_recall_where_samples_are_abstained_on(name):
    tables = error_tables(models=2, taken=None, accuracy=1.0)
    confusions = tables["confusions"]
    confusions.loc[confusions["true_index"] == 0, "count"] //= 10
    frame, _ = of(name, tables, "clean")
    cells = frame.set_index(["true", "predicted"])
    recalls = confusions["count"][confusions["true_index"] == 0] / tables["class_errors"]["n"].iloc[0]
    assert (cells.loc[("c0", "c0"), "recall"] == recalls.iloc[0]).all() and recalls.iloc[0] < 0.2


def test_a_model_that_never_confuses_a_pair_counts_as_zero_in_its_mean():
    tables = error_tables(models=2, classes=60, per_class=5, accuracy=1.0)
    other = tables["confusions"]
    tables["confusions"] = other[(other["model"] == "model_0") | (other["true_index"] == other["predicted_index"])]
    frame, finding = of("confused_pairs", tables, "clean")
    assert frame["pair"].iloc[0] == "c3 \u2192 c5" and finding.numbers["share"] == pytest.approx(0.5)
    assert of("confusion", tables, "clean") == (None, None)


def equal_errors(classes):
    """Tables of one model that calls half of each class the next one."""
    labels = np.repeat(np.arange(classes), 10)
    predictions = (labels + np.arange(10 * classes) % 2) % classes
    samples = pd.DataFrame({"label": labels, "prediction": predictions})
    model = ModelName("toy", "none", "A")
    confusions, errors = confusion_tables([Predictions(model, "clean", samples)], [f"c{k}" for k in range(classes)])
    return {"confusions": confusions, "class_errors": errors, "class_scores": scores_of([[0.5]])}


@pytest.mark.parametrize("name", ["confused_pairs", "cfps"])
def test_classes_that_are_equal_are_counted_where_they_are_not_drawn_too(name):
    frame, finding = of(name, equal_errors(60), "clean")
    assert frame.iloc[:, 0].nunique() < 60 and finding.numbers["tied"] == 59


def test_a_class_that_surely_draws_errors_is_drawn_before_those_of_a_higher_mean():
    tables = equal_errors(60)
    errors = pd.concat([tables["class_errors"].assign(model=name) for name in "ABCD"], ignore_index=True)
    # Class 0 draws 19 of the 314 errors of the first model, surely more than a sixtieth, and none of the others.
    of_class = errors["class_index"] == 0
    errors.loc[of_class, "false_positives"] = np.where(errors.loc[of_class, "model"] == "A", 19, 0)
    errors["cfps"] = errors["false_positives"] / errors.groupby("model")["false_positives"].transform("sum")
    frame, finding = of("cfps", tables | {"class_errors": errors}, "clean")
    assert frame["class"].nunique() == 30 and frame["class"].iloc[-1] == "c0"
    assert (finding.kind, finding.subject["cls"], finding.numbers["times"]) == ("errors_drawn", "c0", 1)


def test_ranks_are_called_open_only_where_those_of_classes_that_are_not_drawn_are():
    values = np.linspace(0.4, 0.6, 60)
    scores = scores_of([values], half=0.3)
    vulnerable = vulnerability(np.array([values]), [f"c{k}" for k in range(60)]).assign(measure=GREAT)
    tables = {"class_scores": scores, "vulnerability": vulnerable.assign(calibration="none", dataset="toy")}
    assert of("class_vulnerability", tables)[1].kind == "ranks_open"
    # Two classes in the middle, which have many samples, differ.
    surely = scores["class_index"].isin([28, 31])
    scores.loc[surely, "low"] = scores.loc[surely, "value"] - 0.001
    scores.loc[surely, "high"] = scores.loc[surely, "value"] + 0.001
    frame, finding = of("class_vulnerability", tables)
    assert not frame["class"].isin(["c28", "c31"]).any() and finding.kind == "most_vulnerable"


def test_corruptions_are_sorted_and_name_the_hardest():
    tables = error_tables(corrupted=True)
    frame, finding = of("corruption_by_class", tables, "corruption", measures={"corruption": CORRUPTION})
    rows = tables["class_errors"]
    expected = rows[rows["corruption"] == "fog"].groupby("class_index")["recall"].mean()
    assert frame["corruption"].unique().tolist() == ["glass blur", "fog"]
    assert frame.loc[frame["corruption"] == "fog", "recall"].to_numpy() == pytest.approx(expected.to_numpy())
    assert (finding.subject["cls"], finding.numbers["times"]) == ("c3", 2)
    shares, finding = of("cfps_by_corruption", tables, "corruption", measures={"corruption": CORRUPTION})
    assert shares["corruption"].tolist() == frame["corruption"].tolist()
    assert shares.groupby("corruption")["cfps"].sum().to_numpy() == pytest.approx([1, 1])
    expected = rows[rows["corruption"] == "fog"].groupby("class_index")["cfps"].mean()
    assert shares.loc[shares["corruption"] == "fog", "cfps"].to_numpy() == pytest.approx(expected.to_numpy())
    # Every sample of c3 is called c5.
    assert (finding.subject["cls"], finding.numbers["times"]) == ("c5", 2)
    assert finding.numbers["share"] == shares["cfps"].max()


def test_similarity_stands_below_and_chance_above_the_diagonal():
    tables = error_tables(models=4)
    rows = tables["similarities"]
    errors = rows[rows["similarity"] == "error_cosine"]
    frame, finding = of("similarity", tables, "clean")
    own = frame[frame["errors_alone"]]
    for what, column in (("pair", "value"), ("chance", "baseline")):
        assert sorted(own.loc[own["what"] == what, "cosine"]) == pytest.approx(sorted(errors[column]))
    assert finding.kind == "alike" and finding.numbers["times"] == 6
    # One of six p-values at 0.02 is what chance gives.
    rows.loc[errors.index, "p_value"] = [0.02, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert of("similarity", tables, "clean")[1].kind == "not_alike"
    few = rows[rows["class_index"].isna() | (rows["class_index"] < 3)]
    assert of("similarity", tables | {"similarities": few}, "clean")[1].kind == "alike_not_settled"
    without_samples = rows.assign(n=rows["n"].where(rows["class_index"].isna() | (rows["class_index"] < 3), 0))
    assert of("similarity", tables | {"similarities": without_samples}, "clean")[1].kind == "alike_not_settled"


def test_models_whose_similarity_is_not_compared_are_said():
    tables = error_tables(models=4)
    pairs = tables["similarities"]
    last = pairs[["first", "second"]].eq("none/model_3").any(axis=1)
    assert last.any()
    tables |= {"similarities": pairs[~last], "class_scores": scores_of([[0.5] * 10] * 4, measure="clean")}
    words = drawing_of(CHARTS["similarity"], subject_of(tables, "clean")).words
    assert words.note.startswith("Models: the first 3 of the 4 in the audit.")


# ---- radii, targets, distances, pictures ----


def test_curves_name_the_best_and_the_worst_model_and_end_where_nothing_stands():
    rows, scores = radius_tables(MINIMAL)
    tables, minimal = {"radius_curves": rows, "class_scores": scores}, {"minimal": MINIMAL}
    frame, finding = of("survival", tables, "minimal", measures=minimal)
    means = scores.groupby("model")["value"].mean()
    assert finding.subject == {"best": "model_2", "worst": "model_0"}
    ends = {"high": pytest.approx(means.max()), "low": pytest.approx(means.min())}
    assert finding.numbers == ends | {"tied_worst": 0}
    assert frame["radius"].max() < MINIMAL["largest_distance"] and (frame.groupby("model")["share"].last() == 0).all()
    _, finding = of("survival_by_class", tables, "minimal", measures=minimal)
    assert finding == Finding("smallest_radius", {"cls": "c2"}, {"times": 3, "models": 3})
    assert of("certified_accuracy", tables, "minimal", measures=minimal) == (None, None)


def test_models_of_one_mean_radius_are_counted():
    scores = scores_of([[0.5], [0.5], [0.2]], measure="minimal")
    rows = pd.DataFrame({"model": scores["model"], "mean": scores["value"]})
    finding = CHARTS["survival"].finding(rows)
    assert finding.subject["worst"] == "C" and finding.numbers["tied"] == 1
    assert finding.sentence.endswith("(0.500) (tied with 1 other)")


def test_targets_show_the_easiest_and_leave_the_diagonal_empty():
    frame, finding = of("target_matrix", target_tables(), "targeted", measures={"targeted": TARGETED})
    cells = frame.set_index(["true", "target"])["success"]
    assert cells["all others", "c4"] == pytest.approx(0.8) and np.isnan(cells["c1", "c1"])
    assert finding.subject["easiest"] == "c4"


@pytest.mark.parametrize(
    ("scores", "censored", "kind", "times", "states"),
    [
        ([1.0, 0.5, 0.4], [0, 0, 0], "mean_score_refuted", 2, ["refuted", "not refuted", "refuted"]),
        ([1.0, 0.5, 0.4], [0, 0, 7], "mean_score_refuted", 1, ["refuted", "not refuted", "not settled"]),
        ([0.1, 0.1, 0.1], [0, 0, 0], "score_violated", 0, ["not refuted"] * 3),
    ],
)
def test_scores_above_the_distance_are_refuted_where_every_sample_was_broken(scores, censored, kind, times, states):
    rows = falsification_table(scores, [0.6, 0.6, 0.3]).assign(censored=censored)
    frame, finding = of("score_against_distance", {"falsification": rows})
    assert frame["state"].tolist() == states and (finding.kind, finding.numbers["times"]) == (kind, times)


def test_traversals_name_the_dimensions_that_change_pictures_most_and_least():
    tables = {"projection_effects": pd.DataFrame({"mapper": ["vae"]})}
    frame, finding = of("mapper_traversals", tables, None, pictures={"vae": pictures(["z0", "z1", "z2"])})
    assert finding.subject == {"most": "z2", "least": "z0"} and finding.numbers["change"] == 200
    assert len(frame) == 2 * 3 * 9 and frame["picture"].str.startswith("data:image/png;base64,").all()


# ---- models and measures ----


def test_differences_of_models_are_turned_so_that_the_better_one_comes_first():
    pairs = pd.DataFrame(
        {"measure": GREAT, "first_threat": "none", "second_threat": "none", "n": 40, "confidence": 0.95}
        | {"first_model": ["A", "A"], "second_model": ["B", "C"], "difference": [-0.3, 0.1]}
        | {"low": [-0.4, -0.1], "high": [-0.2, 0.3]}
    )
    frame, finding = of("model_differences", {"model_comparisons": pairs, "class_scores": scores_of([[0.5]])})
    assert frame["pair"].tolist() == ["B over A", "A over C"] and frame["sure"].tolist() == [True, False]
    assert frame[["low", "high"]].to_numpy().tolist() == [[0.2, 0.4], [-0.1, 0.3]]
    assert finding.kind == "models_differ" and finding.numbers == {"times": 1, "pairs": 2, "low": 0.2, "high": 0.4}


def test_models_that_differ_most_are_of_those_that_differ_significantly():
    """Undecided samples may make a difference large and unsure."""
    pairs = pd.DataFrame(
        {"measure": GREAT, "first_threat": "none", "second_threat": "none", "n": 300, "confidence": 0.95}
        | {"first_model": ["A", "A", "C"], "second_model": ["B", "C", "B"], "difference": [0.5, 0.3, 0.2]}
        | {"low": [-0.6, 0.22, -0.87], "high": [1.0, 0.87, 0.29]}
    )
    frame, finding = of("model_differences", {"model_comparisons": pairs, "class_scores": scores_of([[0.5]])})
    assert frame["pair"].tolist() == ["A over C", "A over B", "C over B"]
    assert finding.subject == {"better": "A", "worse": "C"}
    assert finding.sentence == "1 of 3 pairs of models differ significantly, most A from C, by 0.220 to 0.870"


def agreement_of(*pairs, models=7):
    """Table measure_agreement of pairs of measures and their correlations over models."""
    row = MODEL | {"over": "models", "n": models, "p": 0.4}
    rows = [row | {"first": first, "second": second, "rho": rho} for first, second, rho in pairs]
    return {"measure_agreement": pd.DataFrame(rows).assign(model=None), "class_scores": scores_of([[0.5]])}


def test_measures_that_agree_least_are_not_called_opposed_nor_alike():
    _, finding = of("measure_agreement", agreement_of(("a", "b", 0.9), ("a", "c", -0.1), ("b", "c", -0.1)), None)
    assert finding.subject == {"first": "a", "second": "c"}
    assert finding.numbers == {"rho": -0.1, "models": 7, "tied": 1}
    assert "opposite" not in finding.sentence and finding.sentence.endswith("(tied with 1 other)")
    _, finding = of("measure_agreement", agreement_of(("a", "b", 0.05)), None)
    assert finding.sentence == "Spearman +0.0500 over 7 models between a and b"


def test_measures_that_all_models_tie_in_are_not_called_too_few_models():
    _, finding = of("measure_agreement", agreement_of(("a", "b", np.nan)), None)
    assert finding.kind == "measures_unranked" and "same value for all models" in finding.sentence


@pytest.mark.parametrize(("models", "kind"), [(4, "measures_few"), (5, "measures_least_alike")])
def test_nothing_is_said_of_rankings_of_so_few_models_that_none_is_significant(models, kind):
    pairs = (("a", "b", 0.9), ("a", "c", -1.0))
    _, finding = of("measure_agreement", agreement_of(*pairs, models=models), None)
    assert finding.kind == kind and finding.numbers["models"] == models


@pytest.mark.parametrize(("models", "kind"), [(2, "calibration_few"), (4, "calibration_few"), (5, "calibration_helps")])
def test_calibration_helps_only_where_models_are_enough_to_show_it(models, kind):
    curve = {"objective": "cross_model_accuracy", "after": 1.0, "before": -1.0, "alone": -1.0, "edge": False}
    finding = CHARTS["calibration_curves"].finding(pd.DataFrame([curve | {"models": 7, "known": models}]))
    assert finding.kind == kind


def test_pairs_of_models_that_differ_as_much_are_counted():
    pairs = pd.DataFrame(
        {"measure": GREAT, "first_threat": "none", "second_threat": "none", "n": 40, "confidence": 0.95}
        | {"first_model": ["A", "A"], "second_model": ["B", "C"], "difference": [-0.3, 0.3]}
        | {"low": [-0.4, 0.2], "high": [-0.2, 0.4]}
    )
    _, finding = of("model_differences", {"model_comparisons": pairs, "class_scores": scores_of([[0.5]])})
    assert finding.numbers["tied"] == 1 and "1 other" in finding.sentence


@pytest.mark.parametrize("name", ["confusion", "confusion_models"])
def test_confusions_that_are_as_frequent_are_counted(name):
    share = [np.nan, 0.4, 0.4, np.nan]
    frame = pd.DataFrame({"true": ["a", "a", "b", "b"], "predicted": ["a", "b"] * 2, "share": share})
    finding = CHARTS[name].finding(frame.assign(model="M", models=1))
    assert finding.numbers["tied"] == 1 and "1 other" in finding.sentence


@pytest.mark.parametrize("name", ["confusion", "confusion_models", "cfps"])
def test_copies_of_an_image_are_no_samples(name):
    frame, _ = of(name, error_tables(per_class=6, corrupted=True), "corruption", measures={"corruption": CORRUPTION})
    assert (frame["n"] == 6).all()


@pytest.mark.parametrize(
    ("low", "ranks", "kind"),
    [
        (0.7, None, "best_model_apart"),
        (0.5, None, "best_model_overlaps"),
        (0.5, [(2, 2), (1, 1)], "best_model"),
        (0.7, [(1, 2), (1, 2)], "best_model_open"),
    ],
)
def test_a_model_is_the_best_by_paired_comparisons_or_else_by_its_interval(low, ranks, kind):
    rows = pd.DataFrame(MODEL | {"model": ["A", "B"], "measure": GREAT, "calibration": "none", "confidence": 0.95})
    rows = rows.assign(value=[0.5, 0.8], value_most=[0.5, 0.8], value_low=[0.4, low], value_high=[0.6, 0.9], wcr=0.1)
    tables = {"model_summary": rows, "class_scores": scores_of([[0.5], [0.8]])}
    if ranks:
        tables["rank_intervals"] = rows.assign(
            rank_best=[best for best, _ in ranks], rank_worst=[worst for _, worst in ranks]
        )
    _, finding = of("model_ranking", tables)
    assert (finding.kind, finding.subject["model"]) == (kind, "B")


# ---- forms and words ----


def test_the_example_of_the_documents_is_a_chart():
    path = Path(__file__).parents[4] / "docs/examples/class_spread.py"
    module = module_from_spec(spec := spec_from_file_location("class_spread", path))
    spec.loader.exec_module(module)
    frame = module.CHART.data(subject_of({"class_scores": scores_of([[0.1, 0.5], [0.2, 0.9]])}, GREAT))
    assert frame["class"].tolist() == ["c0", "c0", "c1", "c1"]
    assert module.CHART.finding(frame) == Finding("class_spread", {"cls": "c1"}, {"span": pytest.approx(0.4)})
    figure = new_figure()
    draw_chart(module.CHART, frame, {"unit": "share"}, figure)
    assert figure.axes[0].get_xlabel() == "share; higher is better"


def test_a_finding_says_how_many_others_are_equal():
    frame = pd.DataFrame({"class": ["a", "b", "c"], "cfps": [0.4, 0.4, 0.2], "mean": [0.4, 0.4, 0.2], "model": "M"})
    finding = CHARTS["cfps"].finding(frame.assign(above=False, tested=False, n=5, tied=1))
    assert finding.numbers["tied"] == 1 and "1 other" in finding.sentence


def test_numbers_of_a_sentence_have_three_digits_and_bounds_go_outwards():
    found = Finding("rdi_bound_is_wide", numbers={"n": 1234, "found": 0.12301, "bound": 0.45678, "ratio": 3.7134})
    assert {"1,234", "0.124", "0.457", "3.71"} <= set(found.sentence.replace(";", " ").replace(", ", " ").split())


RANGE = (0.0, 1.2533)


@pytest.mark.parametrize(
    ("values", "limits"),
    [([1.06, 1.25], (1.25 - RANGE[1] / 2, 1.25)), ([0.2, 1.2], (0.2, 1.2)), ([0.1, 0.3], (0, 0.3)), ([0, 0], (0, 0.05 * RANGE[1]))],
)  # fmt: skip
def test_colours_do_not_make_small_differences_large(values, limits):
    assert limits_of_measure(values, RANGE) == pytest.approx(limits)


def test_colours_of_differences_reach_as_far_on_both_sides_of_zero():
    assert limits_around_zero([-0.2, 0.5, np.nan]) == (-0.5, 0.5)


@pytest.mark.parametrize(
    ("values", "limits"), [([0.2, 0.5], (0, 0.5)), ([-1, np.nan], (-1, 0)), ([], (0, 1)), ([0], (0, 1))]
)
def test_colours_of_other_values_begin_at_zero(values, limits):
    assert limits_from_zero(values) == limits


def test_colours_of_a_measure_without_an_end_are_those_of_its_values():
    assert limits_of_measure([2.0, 5.0], (0.0, np.inf)) == (0.0, 5.0)


def test_places_keep_their_order_and_distance_within_the_limits():
    places = spread_out([0.5, 0.5, 0.52, 3.0], 1, low=0, high=4)
    assert np.all(np.diff(places) >= 1 - 1e-12) and places[0] >= 0 and places[-1] <= 4
    assert spread_out([5, 5, 5], 1, low=0, high=1) == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize(
    ("value", "room", "text"),
    [(0.00784, 60, "0.00784"), (0.00784, 34, "0.008"), (0.0414, 30, "0.041"), (0.5, 34, "0.500")],
)
def test_numbers_of_cells_do_not_reach_into_the_next_cell(value, room, text):
    assert cell_text(value, room) == text


def test_runs_are_from_their_first_to_their_last_place():
    assert runs_of([True, False, True, True]) == [(0, 0), (2, 3)]


def test_disparity_of_a_model_with_missing_samples_is_shown_without_chance():
    audit = synthetic_audit(models=2, classes=3, per_class=10, calibrated=False, permutations=19)
    summary = audit.model_summary.copy()
    first = summary["model"] == summary["model"].iloc[0]
    summary.loc[first, "rdi_p"] = np.nan
    frame, _ = of("disparity_bars", {"class_scores": audit.class_scores, "model_summary": summary})
    rdi = frame[frame["metric"] == "rdi"].set_index("model")["p"]
    assert rdi.isna().sum() == 1
    # The other's is corrected for both.
    own = summary.loc[~first & (summary["measure"] == GREAT), "rdi_p"].iloc[0]
    assert rdi.dropna().item() == pytest.approx(min(1, 2 * own))
    # And for models that were left out.
    frame, _ = of("disparity_bars", {"class_scores": audit.class_scores, "model_summary": summary}, left_out=1)
    left = frame[frame["metric"] == "rdi"]["p"].dropna().item()
    assert left == pytest.approx(min(1, 3 * own))
    frame, finding = of(
        "disparity_bars", {"class_scores": audit.class_scores, "model_summary": summary.assign(rdi_p=np.nan)}
    )
    assert frame["p"].isna().all() and finding.kind.startswith("disparity_unknown")


# ---- titles of what is not drawn, tied, constant or unknown ----


def test_dimensions_that_are_not_drawn_count_in_the_title():
    tables = {"projection_effects": pd.DataFrame({"mapper": ["vae"]})}
    names = [f"z{index}" for index in range(26)]
    frame, finding = of("mapper_traversals", tables, None, pictures={"vae": pictures(names)})
    assert frame["dimension"].nunique() == 24 and finding.subject == {"most": "z24", "least": "z0"}
    _, finding = of("mapper_traversals", tables, None, pictures={"vae": pictures(["z0"])})
    assert finding.kind == "dimensions_equal"


def test_models_that_are_not_drawn_count_in_the_mean_tolerance():
    models = [f"m{index:02d}" for index in range(61)]
    rows = pd.DataFrame({"model": models, "tolerance": [1.0] * 60 + [0.39], "accuracy": 0.9})
    rows = rows.assign(dataset="digits", threat="none", mapper="vae", constant=False, censored=0.0, n=50)
    rows = rows.assign(class_index=ALL, class_name="all", deviation=np.nan)
    whole = rows.assign(dimension_index=ALL, dimension="all")
    tables = {"projection_scores": pd.concat([whole, rows.assign(dimension_index=0, dimension="z0")])}
    frame, finding = of("projection_tolerance", tables, None)
    assert frame["model"].nunique() == 60
    assert finding.kind == "least_tolerated" and finding.numbers == {"mean": pytest.approx(0.99), "models": 61}


def test_one_model_of_equal_classes_does_not_make_those_of_all_models_equal():
    values = pd.DataFrame({"model": list("aaabbb"), "class": list("xyzxyz"), "value": [0.5, 0.5, 0.5, 0.1, 0.5, 0.9]})
    values = values.assign(most=values["value"])
    profiles = CHARTS["class_profiles"].finding
    assert profiles(values).kind == "profiles_unranked"
    equal = values.assign(value=0.5, most=0.5)
    assert profiles(equal).kind == "classes_equal"


def test_the_sentence_on_one_model_has_no_range():
    frame = pd.DataFrame({"model": ["a"], "rate": [0.25], "state": ["refuted"], "confidence": 0.95})
    sentences = set()
    for state in ("refuted", "not settled", "not refuted"):
        sentences.add(CHARTS["score_against_distance"].finding(frame.assign(state=state)).sentence)
    assert len(sentences) == 3
    assert all("0.250 of the correct samples" in text and "1 model" not in text for text in sentences)


def test_rdi_that_is_not_compared_with_chance_is_not_said_to_be_like_it():
    frame = pd.DataFrame({"metric": "rdi", "model": ["a", "b"], "value": [0.1, 0.2], "low": 0.0, "p": [0.5, np.nan]})
    finding = CHARTS["disparity_bars"].finding(frame)
    assert "in 1 of 2 models; of the others what chance gives is not known" in finding.sentence


def test_corruptions_of_one_recall_have_no_hardest():
    frame = pd.DataFrame({"corruption": ["fog", "fog", "snow", "snow"], "class": ["x", "y", "x", "y"]})
    finding = CHARTS["corruption_by_class"].finding(frame.assign(recall=1.0, mean=1.0))
    assert finding.sentence == "All corruptions leave the same recall, 1.00 on average; of a single class down to 1.00"


def test_no_task_depends_on_what_every_model_tolerates():
    finding = CHARTS["projection_tasks"].finding
    frame = pd.DataFrame({"task": ["a", "b"], "attribute": ["x", "y"], "value": 0.0})
    frame = frame.assign(metric="tolerance", own=False, models=3)
    assert finding(frame).kind == "tasks_tolerate_all"
    assert finding(frame.assign(own=True)).kind == "no_tolerance"


def test_a_number_of_one_task_does_not_differ_least_between_tasks():
    finding = CHARTS["projection_models"].finding
    frame = pd.DataFrame({"panel": ["Tol", "Tol", "EOpp"], "task": ["a", "b", "a"], "value": [0.1, 0.3, 0.2]})
    assert finding(frame).kind == "tasks_differ_alike"
    assert finding(frame.head(1)).sentence == "No number is known of two tasks: there is nothing to compare"


def test_titles_say_where_undecided_samples_count_as_failures():
    """Of every chart that is made of the smallest values, whether undecided samples are of its measure or of another."""
    subject = full_subject(models=6, classes=4)
    scores = subject.tables.class_scores
    some = scores["measure"] == GREAT
    undecided = replace(subject.tables, class_scores=scores.assign(value_most=scores["value"] + 0.1 * some))
    charts = set()
    for decided in drawings(subject, undrawn=[], parts=[GREAT, "clean", WHOLE]):
        opened = drawing_of(decided.chart, replace(decided.subject, tables=undecided))
        before, after = decided.words.title, opened.words.title
        if (
            decided.chart.as_failures
            and decided.subject.measure != "clean"
            and decided.finding.kind not in OF_ANY_VALUES
        ):
            charts.add(decided.chart.name)
            assert after.lower() == f"{FAILURES}{before}".lower()
        else:
            assert after == before
    assert {"fp_reranking", "score_against_rdi", "class_profiles", "class_vulnerability"} <= charts


def test_models_of_one_mean_radius_have_no_largest():
    rows = pd.DataFrame({"model": ["a", "b"], "mean": 0.3})
    assert CHARTS["survival"].finding(rows).sentence == "All models have the same mean radius, 0.300"


# ---- one of several that are tied ----

TIED = {
    "cfps",
    "cfps_by_corruption",
    "certified_accuracy_by_class",
    "disparity_bars",
    "group_metrics",
    "measure_agreement",
    "model_ranking",
    "projection_effects",
    "projection_tasks",
    "projection_tolerance",
    "survival_by_class",
    "target_matrix",
}
"""Charts that name one of several with the largest or smallest value where all values are equal."""


def with_equal_values(table):
    """The table with the numbers of its first row of each measure, metric and radius in every row."""
    if not isinstance(table, pd.DataFrame) or table.empty:
        return table
    keys = [name for name in ("measure", "metric", "objective", "radius", "severity") if name in table]
    values = [name for name in table.select_dtypes("float") if name not in keys and not name.endswith("_index")]
    if not keys:
        return table.assign(**table.iloc[0][values])
    return table.assign(**table.groupby(keys, dropna=False)[values].transform("first"))


def test_titles_of_equal_values_say_that_they_are_tied():
    subject = full_subject(classes=4, calibrated=False)
    tables = subject.tables
    others = {name: with_equal_values(table) for name, table in tables.others.items()}
    rows = {
        name: with_equal_values(getattr(tables, name)) for name in ("class_scores", "model_summary", "vulnerability")
    }
    subject = replace(subject, tables=replace(tables, **rows, others=others), cache={})

    sentences = {}
    for drawing in drawings(subject, undrawn=[]):
        sentences.setdefault(drawing.chart.name, drawing.finding.sentence)
    silent = [sentence for name, sentence in sentences.items() if name in TIED and "tied with" not in sentence]
    assert set(sentences) >= TIED
    assert not silent


def test_ties_of_the_smallest_and_of_the_largest_are_told_apart():
    rows = pd.DataFrame({"model": ["a", "b", "c"], "mean": [0.3, 0.3, 0.5]})
    sentence = CHARTS["survival"].finding(rows).sentence
    assert sentence == "The mean radius is smallest for a (0.300) (tied with 1 other), largest for c (0.500)"
    rows = pd.DataFrame({"metric": "rdi", "model": ["a", "b", "c"], "value": [0.1, 0.3, 0.3], "low": 0.0, "p": 0.5})
    sentence = CHARTS["disparity_bars"].finding(rows).sentence
    assert sentence.startswith("RDI runs from 0.100 (a) to 0.300 (b) (tied with 1 other), not")


def test_pairs_of_groups_that_differ_alike_are_counted():
    values = {"size": [[0.4, 0.4], [0.7, 0.7]], "side": [[0.7, 0.4], [0.4, 0.7]]}
    tables = {"group_scores": groups_of(values), "class_scores": scores_of([[0.5, 0.5]])}
    assert of("group_scores", tables)[1].numbers["tied_pairs"] == 0
    # Both classes by both attributes.
    assert of("group_classes", tables)[1].numbers["tied"] == 3


def test_the_hardest_of_several_corruptions_may_be_tied():
    frame = pd.DataFrame({"corruption": ["fog", "snow", "rain"], "class": "x", "recall": [0.2, 0.2, 0.9]})
    sentence = CHARTS["corruption_by_class"].finding(frame.assign(mean=frame["recall"])).sentence
    assert sentence.startswith("Fog (tied with 1 other) costs most recall")


def test_the_lowest_recall_of_a_class_is_under_the_corruption_that_the_sentence_names():
    frame = pd.DataFrame({"corruption": ["blur", "blur", "fog", "fog"], "class": ["x", "y"] * 2})
    frame = frame.assign(recall=[0.5, 0.4, 0.95, 0.05], mean=[0.45, 0.45, 0.5, 0.5])
    finding = CHARTS["corruption_by_class"].finding(frame)
    assert finding.sentence.startswith("Blur costs most recall (to 0.450 on average; of a single class down to 0.400)")


def test_pairs_of_models_that_err_alike_may_be_tied():
    names = {"first": ["a", "a", "b"], "second": ["b", "c", "c"]}
    pairs = pd.DataFrame(names).assign(cosine=0.9, what="pair", p=0.01, errors_alone=True, classes=10)
    assert CHARTS["similarity"].finding(pairs).sentence.endswith("b and a most (tied with 2 others)")


def test_objectives_of_one_agreement_are_tied():
    frame = pd.DataFrame(
        {"objective": ["x", "y"], "after": 0.9, "before": 0.5, "alone": 0.6, "known": 8, "edge": False}
    )
    sentence = CHARTS["calibration_curves"].finding(frame).sentence
    assert sentence.startswith("Calibrating by x (tied with 1 other) gives the best agreement")


def test_dimensions_that_change_pictures_alike_are_tied():
    frame = CHARTS["mapper_traversals"].data(full_subject_with_pictures(["z0", "z1", "z2", "z3"], [10, 10, 200, 200]))
    sentence = CHARTS["mapper_traversals"].finding(frame).sentence
    assert sentence == "z2 (tied with 1 other) changes pictures most, z0 (tied with 1 other) least"


def full_subject_with_pictures(names, moves):
    """Subject of one mapper whose dimensions move every pixel by that much."""
    drawn = pictures(names)
    drawn["traversals"][:, :, -1] = np.reshape(moves, (1, -1, 1, 1, 1))
    return subject_of({}, pictures={"vae": drawn})


def test_tied_attributes_are_the_same_only_where_all_are():
    by = {"task": "t", "attribute": ["x", "y", "x", "y"]}
    frame = pd.DataFrame(by).assign(influence=["1 \u2212 Tol"] * 2 + ["EOpp"] * 2)
    frame["metric"] = ["tolerance"] * 2 + ["eopp"] * 2
    finding = CHARTS["projection_profiles"].finding
    assert finding(frame.assign(value=[0.3, 0.3, 0.3, 0.1])).numbers["times"] == 0
    assert finding(frame.assign(value=[0.3, 0.3, 0.2, 0.2])).numbers["times"] == 1
