"""Figures inside a page."""

import re
from functools import cache

from gfscore.show.charts import CHARTS
from gfscore.show.drawing import drawing_of
from gfscore.show.report.svg import inline_figure
from made_charts import GREAT, subject_of
from synthetic import synthetic_audit


@cache
def heatmap():
    audit = synthetic_audit(
        models=2, per_class=20, calibrated=False, class_names=["</svg><script>x", *map(str, range(9))], empty_class=1
    )
    return drawing_of(CHARTS["class_heatmap"], subject_of({"class_scores": audit.class_scores}, GREAT))


@cache
def svg():
    return heatmap().svg()


def test_ids_of_two_figures_do_not_clash_and_references_follow():
    text = svg()
    first, second = (inline_figure(text, prefix=prefix).markup for prefix in ("a-", "b-"))
    ids = [set(re.findall(r'\bid="([^"]+)"', markup)) for markup in (first, second)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert len(re.findall(r'\bid="([^"]+)"', first)) == len(ids[0])
    used = set(re.findall(r"url\(#([^)]+)\)", first)) | set(re.findall(r'href="#([^"]+)"', first))
    assert used
    assert used <= ids[0]


def test_header_and_note_leave_the_drawing():
    inline = inline_figure(svg(), prefix="a-")
    assert inline.takeaway == heatmap().finding.sentence
    assert inline.subtitle.startswith("Attack-free margin score (GREAT) of each class")
    assert "Empty: no samples." in inline.note
    assert inline.takeaway not in re.sub(r'aria-label="[^"]*"', "", inline.markup)
    _, top, _, height = map(float, re.search(r'viewBox="([^"]+)"', inline.markup)[1].split())
    original = float(re.search(r'viewBox="0 0 \S+ (\S+)"', svg())[1])
    assert 0 < top < 80
    assert top + height < original


def test_markup_is_escaped_themed_and_without_addresses():
    markup = inline_figure(svg(), prefix="a-").markup
    assert "<script" not in markup
    assert "&lt;/svg&gt;&lt;script&gt;x" in markup
    assert markup.count("</svg>") == 1
    assert "http" not in markup
    assert "font-family" not in markup
    assert "var(--ink)" in markup
    assert "#1d2330" not in markup
    assert "<metadata" not in markup
    assert "<style" not in markup
