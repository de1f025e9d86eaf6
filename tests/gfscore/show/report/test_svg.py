"""Figures inside a page."""

import re
from functools import cache

from gfscore.measures import measure_of
from gfscore.show import figures
from gfscore.show.figures.saving import save_figure
from gfscore.show.report.svg import inline_figure
from gfscore.show.words import takeaways
from synthetic import synthetic_audit


@cache
def audit():
    return synthetic_audit(
        models=2, per_class=20, calibrated=False, class_names=["</svg><script>x", *map(str, range(9))], empty_class=1
    )


def svg(tmp_path):
    save_figure(figures.class_heatmap(audit().of("class_scores"), measure_of({"kind": "great"})), tmp_path / "figure")
    return (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_ids_of_two_figures_do_not_clash_and_references_follow(tmp_path):
    text = svg(tmp_path)
    first, second = (inline_figure(text, prefix=prefix).markup for prefix in ("a-", "b-"))
    ids = [set(re.findall(r'\bid="([^"]+)"', markup)) for markup in (first, second)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert len(re.findall(r'\bid="([^"]+)"', first)) == len(ids[0])
    used = set(re.findall(r"url\(#([^)]+)\)", first)) | set(re.findall(r'href="#([^"]+)"', first))
    assert used
    assert used <= ids[0]


def test_header_and_note_leave_the_drawing(tmp_path):
    inline = inline_figure(svg(tmp_path), prefix="a-")
    assert inline.takeaway == takeaways.weakest_class(audit().of("class_scores"))
    assert inline.subtitle.startswith("Attack-free margin score (GREAT) of each class")
    assert "Hatched: no samples." in inline.note
    assert inline.takeaway not in re.sub(r'aria-label="[^"]*"', "", inline.markup)
    _, top, _, height = map(float, re.search(r'viewBox="([^"]+)"', inline.markup)[1].split())
    original = float(re.search(r'viewBox="0 0 \S+ (\S+)"', svg(tmp_path))[1])
    assert 0 < top < 80
    assert top + height < original


def test_markup_is_escaped_themed_and_without_addresses(tmp_path):
    markup = inline_figure(svg(tmp_path), prefix="a-").markup
    assert "<script" not in markup
    assert "&lt;/svg&gt;&lt;script&gt;x" in markup
    assert markup.count("</svg>") == 1
    assert "http" not in markup
    assert "font-family" not in markup
    assert "var(--ink)" in markup
    assert "#1d2330" not in markup
    assert "<metadata" not in markup
    assert "<style" not in markup
