"""Figures: they say what the data say, stand any name and any size, and are the same bytes on every run."""

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from gfscore.audit.audit_tables import AuditTables
from gfscore.measures import measure_of
from gfscore.show import figures
from gfscore.show.figures.grid import class_grid
from gfscore.show.figures.heatmap import colour_limits
from gfscore.show.figures.placement import place_labels, spread_out
from gfscore.show.figures.saving import save_figure
from gfscore.show.figures.style import drawing
from gfscore.show.figures.vulnerability import rank_bounds
from gfscore.show.words import takeaways
from synthetic import LAM, synthetic_audit

HOSTILE_MODELS = ["<script>alert(1)</script>", "$x_1$ & \\frac{a}{b}", "</svg><b>'\"", "a" * 90, "new\nline\u202eback"]
HOSTILE_CLASSES = [
    "<img src=x onerror=alert(1)>", "$\\alpha$", "_under_score_", "</text>", "it's \"q\"",
    "a class with a very long name indeed", "日本語", "é\x00\x1b[31m", "%s {{7*7}}", "9",
]  # fmt: skip
GREAT = measure_of({"kind": "great"})
GREAT_ONLY = ("great-softmax",)
PER_MEASURE = ("class_heatmap", "class_vulnerability", "score_against_rdi", "disparity_bars", "class_profiles")


@cache
def hostile_figures():
    return drawn(hostile())


@cache
def hostile():
    return synthetic_audit(
        models=5, model_names=HOSTILE_MODELS, class_names=HOSTILE_CLASSES, weak_class=9, measures=GREAT_ONLY
    )


def tables_of(audit):
    return AuditTables(
        audit.class_scores,
        audit.model_summary,
        audit.vulnerability,
        audit.calibration,
        audit.calibration_results,
        audit.sensitivity,
    )


def drawn(audit):
    return dict(figures.figures_of_audit(tables_of(audit), measures=audit.measures, fp_lambda=LAM))


def title(figure):
    return " ".join(text.get_text() for text in figure.texts if (text.get_gid() or "").startswith("takeaway"))


def texts(figure):
    return [text for axes in figure.axes for text in axes.findobj(lambda item: hasattr(item, "get_parse_math"))]


def svg_of(figure, folder, name="figure"):
    save_figure(figure, folder / name)
    return (folder / f"{name}.svg").read_text(encoding="utf-8")


def test_every_figure_of_an_audit_is_drawn():
    """Measures beside the score get a heatmap of their classes; their disparity stands in tables and dashboard."""
    audit = synthetic_audit(models=3, per_class=20)
    assert set(drawn(audit)) == {
        "class_heatmap_clean",
        *(f"{name}_{measure}" for name in PER_MEASURE for measure in ("great-softmax", "great-sigmoid")),
        "calibration_curves",
        "logit_shift_sensitivity",
    }


def test_audit_without_great_measure_has_no_temperature_figures():
    audit = synthetic_audit(models=2, per_class=20, measures=("clean",))
    assert set(drawn(audit)) == {
        f"{name}_clean" for name in PER_MEASURE
    }  # fmt: skip


def test_title_is_the_takeaway_of_planted_data():
    audit = synthetic_audit(models=6, per_class=300, weak_class=4, calibrated=False)
    figure = figures.class_heatmap(audit.of("class_scores"), GREAT)
    assert title(figure) == "Class 4 is the weakest class in all 6 models, each time significantly"
    ranking = figures.class_vulnerability(audit.of("vulnerability"), audit.of("class_scores"), GREAT)
    assert title(ranking).startswith("Class 4 ranks lowest on average (1.00 of 10)")


def test_every_axis_names_its_unit_and_direction_and_every_figure_its_samples():
    audit = synthetic_audit(models=3, per_class=25, measures=GREAT_ONLY)
    for name, figure in drawn(audit).items():
        labels = [label for axes in figure.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
        words = " ".join([*labels, *(text.get_text() for text in figure.texts)])
        assert re.search(r"higher is better|more equal", words), name
        assert re.search(r"n = 25 samples per class|3 models", words), name


def test_two_runs_give_identical_bytes(tmp_path):
    files = []
    for run in ("first", "second"):
        for name, figure in drawn(hostile()).items():
            save_figure(figure, tmp_path / run / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / run).iterdir()})
    assert files[0] == files[1]
    assert len(files[0]) == 3 * 7


def test_files_hold_no_dates_no_half_files_and_no_addresses(tmp_path):
    text = svg_of(hostile_figures()["class_heatmap_great-softmax"], tmp_path)
    assert "dc:date" not in text
    assert "Matplotlib" not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.pdf", "figure.png", "figure.svg"]
    outside = set(re.findall(r'https?://[^"\s<>]+', text)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd",
        "http://purl.org/dc/elements/1.1/",
        "http://purl.org/dc/dcmitype/StillImage",
        "http://creativecommons.org/ns#",
    }
    assert outside == set()


@pytest.mark.parametrize("name", ["class_heatmap", "class_vulnerability", "score_against_rdi", "disparity_bars"])
def test_hostile_names_are_text_and_nothing_else(tmp_path, name):
    svg = svg_of(hostile_figures()[f"{name}_great-softmax"], tmp_path)
    root = ElementTree.fromstring(svg)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags.isdisjoint({"script", "b", "img"})
    words = "".join(root.itertext())
    if name == "class_vulnerability":
        assert "$\\alpha$" in words
        assert "日本語" in words
    else:
        assert "$x_1$ & \\frac{a}{b}" in words
        assert "<script>alert(1)</script>" in words


def test_no_text_is_ever_read_as_a_formula():
    for figure in hostile_figures().values():
        assert not any(text.get_parse_math() for text in [*figure.texts, *texts(figure)])


def test_heatmap_of_a_thousand_classes_has_few_labels_and_no_numbers(tmp_path):
    audit = synthetic_audit(models=3, classes=1000, per_class=3, calibrated=False, permutations=19)
    figure = figures.class_heatmap(audit.of("class_scores"), GREAT)
    heatmap = figure.axes[0]
    assert len(heatmap.get_xticks()) == 5
    assert len(heatmap.texts) <= 4
    image = heatmap.images[0].get_array()
    assert image.shape == (3, 1000)
    means = image.mean(axis=0)
    assert np.all(np.diff(means) >= -1e-12)
    ranking = figures.class_vulnerability(audit.of("vulnerability"), audit.of("class_scores"), GREAT)
    assert len(ranking.axes[0].get_yticks()) == 30
    assert "970 classes between" in [text.get_text() for text in ranking.axes[0].texts]
    for number, item in enumerate((figure, ranking)):
        assert len(svg_of(item, tmp_path, f"f{number}")) < 200_000


def test_heatmap_numbers_every_cell_and_sorts_models_by_aggregate():
    audit = synthetic_audit(models=4, per_class=30, calibrated=False)
    figure = figures.class_heatmap(audit.of("class_scores"), GREAT)
    numbers = [text.get_text() for text in figure.axes[0].texts if re.fullmatch(r"[\d.]+", text.get_text())]
    assert len(numbers) == 4 * 10 + 4
    totals = class_grid(audit.of("class_scores")).total
    assert list(totals) == sorted(totals, reverse=True)
    assert np.allclose(sorted(totals), sorted(audit.of("model_summary")["value"]))


def test_class_without_samples_is_hatched_and_may_be_the_weakest():
    audit = synthetic_audit(models=2, per_class=30, empty_class=3, calibrated=False)
    scores = audit.of("class_scores")
    figure = figures.class_heatmap(scores, GREAT)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert {patch.get_x() for patch in hatched} == {2.5}
    assert any("no samples" in text.get_text() for text in figure.texts)
    # However sure the other classes are, the empty one may be lower: boxes stay dotted.
    known = scores["n"] > 0
    scores.loc[known, "low"] = scores.loc[known, "high"] = scores.loc[known, "value"]
    figure = figures.class_heatmap(scores, GREAT)
    boxes = [patch for patch in figure.axes[0].patches if not patch.get_hatch()]
    assert boxes and all(box.get_linestyle() != "-" for box in boxes)
    ranking = figures.class_vulnerability(audit.of("vulnerability"), audit.of("class_scores"), GREAT)
    assert len(ranking.axes[0].get_yticks()) == 9
    assert "3" not in [label.get_text() for label in ranking.axes[0].get_yticklabels()]


def test_classes_are_ranked_among_those_that_every_model_has():
    audit = synthetic_audit(models=3, per_class=30, lacking_class=9, calibrated=False, measures=GREAT_ONLY)
    low, high = rank_bounds(audit.of("class_scores"))
    assert np.isnan([low[9], high[9]]).all() and low[:9].min() >= 1 and high[:9].max() <= 9
    assert len(drawn(audit)["class_vulnerability_great-softmax"].axes[0].get_yticks()) == 9
    nowhere = audit.vulnerability.assign(mean_rank=np.nan)
    assert "class_vulnerability_great-softmax" not in drawn(replace(audit, vulnerability=nowhere))


def test_all_zero_scores_leave_nrgc_undefined_and_mark_no_class():
    audit = synthetic_audit(models=3, per_class=20, all_wrong=True, measures=GREAT_ONLY)
    drawings = drawn(audit)
    assert title(drawings["class_heatmap_great-softmax"]) == "All classes have the same value in each of the 3 models"
    boxes = [patch for patch in drawings["class_heatmap_great-softmax"].axes[0].patches if not patch.get_hatch()]
    assert boxes == []
    nrgc = drawings["disparity_bars_great-softmax"].axes[1]
    assert [text.get_text() for text in nrgc.texts] == ["undefined"] * 3
    reasons = [text.get_text() for axes in drawings["calibration_curves"].axes for text in axes.texts]
    assert any(reason.startswith("no optimum") for reason in reasons)


def test_one_model_alone_is_no_relation():
    audit = synthetic_audit(models=1, per_class=20, measures=GREAT_ONLY)
    drawings = drawn(audit)
    assert title(drawings["score_against_rdi_great-softmax"]).startswith("1 model: too few to show a relation")
    for name, figure in drawings.items():
        assert title(figure), name


def test_intervals_are_drawn_and_cut_ones_end_in_arrows():
    audit = synthetic_audit(models=4, per_class=10, calibrated=False)
    summary = audit.of("model_summary")
    figure = figures.score_against_rdi(summary, GREAT)
    axes = figure.axes[0]
    lines = sum(len(collection.get_segments()) for collection in axes.collections)
    assert lines == 2 * len(summary)
    beyond = (summary["rdi_high"] > axes.get_ylim()[1]).sum()
    arrows = [line for line in axes.lines if line.get_marker() == "^"]
    assert beyond > 0
    assert sum(len(line.get_xdata()) for line in arrows) == beyond
    bars = figures.disparity_bars(summary, GREAT, fp_lambda=LAM)
    for panel, name in zip(bars.axes, ("rdi", "nrgc", "wcr", "fp"), strict=True):
        drawn_low = sorted(segment[0][0] for segment in panel.collections[0].get_segments())
        assert np.allclose(drawn_low, sorted(summary[f"{name}_low"]))


def test_edge_of_the_search_is_said_in_words():
    audit = synthetic_audit(models=5, per_class=40)
    results = {name: {**result, "edge": False} for name, result in audit.calibration_results.items()}

    def warned(results):
        figure = figures.calibration_curves(audit.calibration, results, models=5)
        return sum("reaches the end of the search" in text.get_text() for axes in figure.axes for text in axes.texts)

    assert warned(results) == 0
    results["ranking_stability"]["edge"] = True
    assert warned(results) == 1


def test_every_optimal_stretch_is_shaded_and_nothing_else():
    audit = synthetic_audit(models=5, per_class=40, measures=GREAT_ONLY)
    results = {name: dict(result) for name, result in audit.calibration_results.items()}
    results["ranking_stability"] |= {"interval": [2.0, 3.0], "stretches": [[0.5, 0.5], [1.0, 1.5], [2.0, 3.0]]}
    figure = figures.calibration_curves(audit.calibration, results, models=5)
    panels = dict(zip(results, figure.axes, strict=False))
    for name, axes in panels.items():
        shaded = [[span.get_x(), span.get_x() + span.get_width()] for span in axes.patches]
        assert np.allclose(shaded, takeaways.optimal_stretches(results[name])), name
    assert len(panels["ranking_stability"].patches) == 3
    assert len(panels["likelihood"].patches) == 0
    words = [text.get_text() for text in panels["ranking_stability"].texts]
    assert "optimal: 2 to 3 and 2 more stretches" in words
    note = " ".join(text.get_text() for text in figure.texts)
    assert "Shaded: the temperatures that are as good as the best one." in note


def test_nothing_is_written_over_curves_and_shading():
    audit = synthetic_audit(models=5, per_class=40, measures=GREAT_ONLY)
    figure = figures.calibration_curves(audit.calibration, audit.calibration_results, models=5)
    for axes in figure.axes:
        top = axes.get_window_extent().y1
        boxes = [text.get_window_extent() for text in axes.texts]
        assert all(box.y0 >= top for box in boxes)
        assert not any(boxes[i].overlaps(boxes[j]) for i in range(len(boxes)) for j in range(i))


@pytest.mark.parametrize(("models", "named"), [(9, 9), (17, 8)])
def test_lines_of_the_sensitivity_are_named_without_overlap(models, named):
    audit = synthetic_audit(models=models, per_class=20, calibrated=False)
    figure = figures.logit_shift_sensitivity(audit.sensitivity[audit.sensitivity["scale"] == 1])
    still, moving = figure.axes
    assert len(moving.texts) == named
    assert len(still.texts) == (named if named == models else 0)
    for axes in (still, moving):
        # Without the lines that lead to them.
        boxes = [Text.get_window_extent(text) for text in axes.texts]
        frame = axes.get_window_extent()
        assert not any(boxes[i].overlaps(boxes[j]) for i in range(len(boxes)) for j in range(i))
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 for box in boxes)


def test_places_keep_their_order_and_distance_within_the_limits():
    places = spread_out([0.5, 0.5, 0.52, 3.0], 1, low=0, high=4)
    assert np.all(np.diff(places) >= 1 - 1e-12)
    assert places[0] >= 0
    assert places[-1] <= 4
    assert np.allclose(spread_out([3, 1], 1, low=0, high=4), [3, 1])
    assert np.allclose(spread_out([5, 5, 5], 1, low=0, high=1), [0, 0.5, 1])


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([1.06, 1.25], (1.25 - GREAT.value_range[1] / 2, 1.25)),
        ([0.2, 1.2], (0.2, 1.2)),
        ([0.1, 0.3], (0.0, 0.3)),
        ([0.0, 0.0], (0.0, 0.05 * GREAT.value_range[1])),
    ],
)
def test_colours_do_not_make_small_differences_large(values, limits):
    found = colour_limits(np.array(values), GREAT)
    assert (found["vmin"], found["vmax"]) == pytest.approx(limits)


def test_heatmap_says_what_its_colours_span():
    figure = figures.class_heatmap(synthetic_audit(models=2, calibrated=False).of("class_scores"), GREAT)
    bottom, top = figure.axes[0].images[0].get_clim()
    note = " ".join(text.get_text() for text in figure.texts)
    assert f"Colours run from {bottom:.3g} to {top:.3g}; the measure from 0 to 1.2533." in note


def test_labels_of_points_do_not_overlap():
    audit = synthetic_audit(models=17, per_class=60, calibrated=False)
    figure = figures.score_against_rdi(audit.of("model_summary"), GREAT)
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    frame = axes.get_window_extent()
    assert len(boxes) == 17
    overlapping = [
        (first, second) for first in range(17) for second in range(first) if boxes[first].overlaps(boxes[second])
    ]
    assert overlapping == []
    assert all(frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)


def test_labels_on_one_spot_spread():
    from matplotlib.figure import Figure

    with drawing():
        figure = Figure(figsize=(6, 4))
        axes = figure.subplots()
        lines = np.empty((0, 4))
        place_labels(axes, np.full(4, 0.5), np.full(4, 0.5), ["one", "two", "three", "four"], lines=lines)
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(boxes[i].overlaps(boxes[j]) for i in range(4) for j in range(i))


def test_rank_bounds_hold_every_rank_the_intervals_allow():
    rows = pd.DataFrame(
        {
            "dataset": "d",
            "threat": "none",
            "model": "m",
            "class_index": range(4),
            "class_name": list("abcd"),
            "n": [10, 10, 10, 0],
            "value": [0.1, 0.5, 0.55, np.nan],
            "low": [0.0, 0.4, 0.45, 0.0],
            "high": [0.2, 0.6, 0.65, 1.0],
        }
    )
    low, high = rank_bounds(rows)
    assert low[:3].tolist() == [1, 2, 2]
    assert high[:3].tolist() == [1, 3, 3]
    assert np.isnan(low[3])
    assert np.isnan(high[3])


def test_same_name_under_two_threats_stays_apart():
    audit = synthetic_audit(models=2, per_class=20, model_names=["A", "B"], calibrated=False)
    both = audit.of("class_scores").replace({"model": {"B": "A"}})
    both.loc[len(both) // 2 :, "threat"] = "L2"
    assert sorted(class_grid(both).models) == ["L2/A", "none/A"]
