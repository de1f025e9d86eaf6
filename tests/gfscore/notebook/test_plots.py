"""Charts on axes of one's own and on new figures, and what a notebook shows of an audit."""

import inspect
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from gfscore import InputError, audit_logits, audit_values
from gfscore.notebook.plots import Plots

CHARTS = [name for name, function in inspect.getmembers(Plots, inspect.isfunction) if not name.startswith("_")]
OF_ONE_MODEL = {"heatmap", "ranking", "vulnerability", "mean_against_rdi", "sample_size", "confusion"}
NAMES = ["cat", "<b>dog</b>", "frog", "$wild$ horse"]
MODELS = ("plain", "augmented & distilled", "adversarially trained")


@pytest.fixture(autouse=True)
def closed_figures():
    matplotlib.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    logits = {}
    for index, name in enumerate(MODELS):
        logits[name] = rng.normal(size=(400, 4))
        logits[name][np.arange(400), labels] += (1 + index) * np.array([1, 1.5, 1.2, 0.6])[labels]
    return audit_logits(logits, labels, class_names=NAMES)


def texts_of(figure):
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_figure_of_pyplot_that_names_what_it_shows(audit, name, tmp_path):
    before = len(pyplot.get_fignums())
    result = getattr(audit.plot, name)()
    axes = result[0] if isinstance(result, list) else result
    assert len(pyplot.get_fignums()) == before + 1
    assert pyplot.figure(pyplot.get_fignums()[-1]) is axes.figure
    texts = texts_of(axes.figure)
    assert not [text for text in texts if "{" in text]
    assert "these samples" in " ".join(texts)
    axes.figure.savefig(tmp_path / "chart.svg")
    ET.parse(tmp_path / "chart.svg")


@pytest.mark.parametrize("name", [name for name in CHARTS if name not in ("disparity", "profiles")])
def test_a_chart_on_given_axes_keeps_to_their_place(audit, name):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14, 5))
    place = left.get_position()
    right.set_xlabel("{not a format}")
    assert getattr(audit.plot, name)(ax=left) is left
    figure.canvas.draw()
    written = [text.get_window_extent() for text in figure.texts]
    limits = figure.transFigure.transform(place.get_points())
    for box in [*written, left.get_tightbbox()]:
        assert box.x0 >= limits[0, 0] - 20 and box.x1 <= limits[1, 0] + 20, name
        assert box.y0 >= limits[0, 1] - 20 and box.y1 <= limits[1, 1] + 20, name
    assert right.get_xlabel() == "{not a format}"
    assert len(pyplot.get_fignums()) == 1


def test_a_title_on_the_left_of_given_axes_stays_the_only_one(audit):
    _, axes = pyplot.subplots()
    axes.set_title("my title", loc="left")
    audit.plot.heatmap(axes)
    titles = [axes.get_title(loc=place) for place in ("left", "center", "right")]
    assert titles == ["my title", "", ""]


def test_two_heatmaps_on_one_figure_have_a_scale_each(audit):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14, 5))
    audit.plot.heatmap(left)
    audit.plot.heatmap(right)
    assert len(figure.axes) == 4


def test_the_picture_shows_the_numbers_of_the_tables(audit):
    texts = texts_of(audit.plot.heatmap().figure)
    for value in audit.classes["value"]:
        assert f"{value:.3g}" in {text.rstrip("0") for text in texts} | set(texts)


def test_settings_of_matplotlib_stay_as_they_were(audit):
    before = dict(matplotlib.rcParams)
    audit.plot.heatmap()
    audit.plot.ranking(pyplot.subplots()[1])
    assert dict(matplotlib.rcParams) == before


def test_charts_that_compare_models_need_two(audit):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    logits = rng.normal(size=(100, 2))
    one = audit_logits(logits, labels)
    drawn = set()
    for name in CHARTS:
        try:
            getattr(one.plot, name)()
            drawn.add(name)
        except InputError as error:
            assert "two models or more" in str(error)
    assert drawn == OF_ONE_MODEL | {"disparity"}
    with pytest.raises(InputError, match="needs logits"):
        audit_values(labels, labels, value_range=(0, 1)).plot.confusion()


def test_a_notebook_shows_a_table_in_which_names_are_text(audit):
    html = audit._repr_html_()
    tree = ET.fromstring(f"<div>{html}</div>")
    rows = tree.findall(".//tbody/tr")
    assert len(rows) == len(MODELS)
    assert [row[0].text for row in rows] == audit.metrics["value"].sort_values(ascending=False).index.tolist()
    assert {row[2].text for row in rows} <= set(NAMES)
    assert "<b>dog</b>" not in html
    assert "augmented & distilled" in repr(audit)


def test_a_notebook_shows_the_sentence_of_a_verdict(audit):
    verdict = audit.judge(0.1)
    assert repr(verdict) == str(verdict) == verdict.sentence


def test_of_many_models_the_best_are_shown():
    labels = np.repeat([0, 1], 30)
    rng = np.random.default_rng(0)
    values = {f"model {index:02d}": rng.random(60) * index / 30 for index in range(30)}
    html = audit_values(values, labels, value_range=(0, 1))._repr_html_()
    assert html.count("<tr") == 21
    assert "the best 20 of them" in html
    assert "model 29" in html and "model 01" not in html
