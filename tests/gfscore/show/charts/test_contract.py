"""What every registered chart keeps: a tidy frame, a drawing, words, a finding of its numbers."""

import re
from dataclasses import fields
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.findings.words import SENTENCES
from gfscore.core.names import harmless
from gfscore.show.audit_charts import drawings
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import SECTIONS, Subject
from gfscore.show.drawing.layout import PHONE, labels_of
from gfscore.show.drawing.saving import page_markup, svg_of
from helpers.synthetic_audits import full_subject

pytestmark = pytest.mark.seconds(60)

HOSTILE_MODELS = [
    "<script>alert(1)</script>",
    "$x_1$ & \\frac{a}{b}",
    "</svg><b>'\"",
    "a" * 60 + " one",
    "a" * 60 + " two",
]
HOSTILE_CLASSES = ["<img src=x onerror=alert(1)>", "$\\alpha$", "_under_score_", "</text>", "é\x00\x1b[31m", "日本語"]
SUBJECTS = {
    "a class without samples": {"empty": 2},
    "one model, two classes": {"models": 1, "classes": 2},
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


def test_frames_are_tidy(found):
    for name, drawing in found.items():
        frame = drawing.frame
        assert isinstance(frame, pd.DataFrame) and not isinstance(frame.columns, pd.MultiIndex), name
        plain = frame.map(lambda value: not isinstance(value, list | dict | tuple))
        assert plain.to_numpy().all(), name
        assert {"n", "models", "model", "picture"} & set(frame.columns), name


def test_tables_that_a_chart_reads_are_those_it_declares():
    for name, drawing in charts_of("a class without samples").items():
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


def test_every_chart_is_drawn_with_its_words_for_files_and_for_the_page(found):
    ids = []
    for name, drawing in found.items():
        root = svg_of(drawing.figure())
        words = " ".join(text.strip() for text in root.itertext() if text.strip())
        for text in (drawing.words.title, drawing.words.subtitle, drawing.note_of(drawing.printed_frame)):
            assert harmless(" ".join(text.split())) in words, (name, text)
        assert not root.findall(".//{*}script") and "nan" not in words.split(), name

        markup = page_markup(drawing.picture(PHONE), label=drawing.words.title, prefix=f"{name}-", kind="phone")
        root = ElementTree.fromstring(markup.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        assert root.get("role") == "img" and root.get("aria-label") == drawing.words.title
        assert float(root.get("width")) == PHONE, name
        assert not root.findall(".//{*}style"), "it would be one of the whole page"
        ids += [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_axes_name_what_they_show_and_figures_their_samples():
    for name, drawing in charts_of("a class without samples").items():
        assert re.search(r"n = \d|\d models?|[Ii]mage", drawing.words.subtitle), name
        labels = [label.get_text() for label in labels_of(drawing.figure())]
        words = " ".join([drawing.words.subtitle, drawing.words.note, *labels])
        assert "{" not in words, name
        assert re.search(r"better|equal|1 is best|chance|differ|change|correct|Mean|row|reconstruct", words), name
