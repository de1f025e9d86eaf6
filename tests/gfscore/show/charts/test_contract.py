"""What every registered chart keeps: a tidy frame, a form of its columns, words, a finding of its numbers."""

import json
import re
from dataclasses import fields
from functools import cache
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert

from gfscore.audit.findings.words import SENTENCES
from gfscore.core.names import harmless
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import SECTIONS, Subject
from gfscore.show.drawing import drawings
from gfscore.show.forms.saving import on_paper, svg_text
from gfscore.show.forms.theme import PARAMETERS
from made_charts import full_subject

HOSTILE_MODELS = [
    "<script>alert(1)</script>",
    "$x_1$ & \\frac{a}{b}",
    "</svg><b>'\"",
    "a" * 60 + " one",
    "a" * 60 + " two",
]
HOSTILE_CLASSES = ["<img src=x onerror=alert(1)>", "$\\alpha$", "_under_score_", "</text>", "é\x00\x1b[31m", "日本語"]
SUBJECTS = {
    "ordinary": {},
    "one model": {"models": 1},
    "two classes": {"classes": 2},
    "a class without samples": {"empty": 2, "calibrated": False},
    "hostile names": {"names": HOSTILE_MODELS, "class_names": HOSTILE_CLASSES},
    "many classes": {"models": 2, "classes": 70, "calibrated": False},
    "many models": {"models": 30, "classes": 3, "calibrated": False},
}
DERIVED = re.compile(
    r"rho|mean|ratio|models|classes|pairs|times|kinds|n$|moved|sure|suspects|tied|open|objectives|images"
)
"""Roles of numbers that relate or count numbers of the frame."""


@cache
def drawn(name):
    return {drawing.name: drawing for drawing in drawings(full_subject(**SUBJECTS[name]), undrawn=[])}


def charts_of(name):
    """The first drawing of each chart."""
    return {drawing.chart.name: drawing for drawing in reversed(drawn(name).values())}


@pytest.fixture(params=SUBJECTS)
def found(request):
    return charts_of(request.param)


def test_every_chart_is_drawn_of_some_audit():
    assert set().union(*map(charts_of, SUBJECTS)) == set(CHARTS)
    assert [chart.section for chart in CHARTS.values()] == sorted(
        (chart.section for chart in CHARTS.values()), key=SECTIONS.index
    )


def test_frames_are_tidy_and_hold_what_the_form_draws(found):
    for name, drawing in found.items():
        frame, chart = drawing.frame, drawing.chart
        assert isinstance(frame, pd.DataFrame) and not isinstance(frame.columns, pd.MultiIndex), name
        assert set(chart.form.columns) <= set(frame.columns), name
        assert not frame[[*chart.form.columns]].duplicated().all() or len(frame) == 1, name
        plain = frame.map(lambda value: not isinstance(value, list | dict | tuple))
        assert plain.to_numpy().all(), name
        assert {"n", "models", "model"} & set(frame.columns) or "picture" in chart.form.columns, name


def test_tables_that_a_chart_reads_are_those_it_declares():
    for name, drawing in charts_of("ordinary").items():
        asked = []

        class Watched(Subject):
            def rows(self, table, *, tasks=False, asked=asked):
                asked.append(table)
                return super().rows(table, tasks=tasks)

        known = {item.name: getattr(drawing.subject, item.name) for item in fields(drawing.subject)}
        drawing.chart.data(Watched(**known))
        assert set(asked) <= set(drawing.chart.tables), name


def test_findings_are_data_of_their_frame(found):
    for name, drawing in found.items():
        finding = drawing.finding
        assert finding.kind in SENTENCES and finding.sentence, name
        assert "nan" not in finding.sentence and "n/a" not in finding.sentence, (name, finding.sentence)
        known = drawing.frame.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
        for role, value in finding.numbers.items():
            assert DERIVED.match(role) or (np.abs(known - value) < 1e-12).any(), (name, role)
        assert drawing.chart.finding(drawing.frame.copy()) == finding, name


def test_vega_lite_draws_every_form(found):
    for name, drawing in found.items():
        specification = drawing.vega_lite()
        json.dumps(specification, allow_nan=False)
        if "concat" not in specification:
            alt.Chart.from_dict(specification, validate=True)
        assert {item["name"] for item in specification["params"]} >= set(PARAMETERS), name
        if specification.get("width") == "container":
            specification["width"] = 600
        svg = vl_convert.vegalite_to_svg(specification, vl_version="6.4")
        assert "<script" not in svg and len(svg) > 1000, name


def test_files_hold_the_finding_and_what_is_shown(found):
    for name, drawing in found.items():
        frame_words = drawing.printed[1]
        svg = svg_text(on_paper(drawing.vega_lite(printed=True), frame_words))
        words = " ".join(text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip())
        for text in (frame_words.title, frame_words.subtitle, frame_words.note):
            assert harmless(" ".join(text.split())) in words, (name, text)


def test_axes_name_what_they_show_and_figures_their_samples():
    for name, drawing in charts_of("ordinary").items():
        assert re.search(r"n = \d|\d models?|[Ii]mage", drawing.words.subtitle), name
        words = " ".join([drawing.words.subtitle, drawing.words.note, *axis_titles(drawing)])
        assert re.search(r"better|equal|1 is best|chance|differ|change|correct|Mean|row|reconstruct", words), name


def axis_titles(drawing):
    return re.findall(r'"title": "([^"]*)"', json.dumps(drawing.vega_lite(), ensure_ascii=False))
