"""Figures of an audit in a browser: no text of a file for papers lies on another."""

import json

import pytest

from gfscore.show.drawing import drawings
from gfscore.show.forms.saving import on_paper, svg_text
from made_charts import full_subject
from pages import OVERLAPS

LONG = [f"residual-network-trained-with-adversarial-examples-of-kind-{word}" for word in ("alpha", "beta", "gamma")]
LONG_CLASSES = [f"class-of-very-similar-things-that-differ-in-the-last-word-{index}" for index in range(6)]
SUBJECTS = {
    "ordinary": {},
    "long names": {"names": LONG, "class_names": LONG_CLASSES},
    "many models": {"models": 30, "classes": 3, "calibrated": False},
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_text_lies_on_another(browser, artefacts, subject):
    drawn = {drawing.chart.name: drawing for drawing in drawings(full_subject(**SUBJECTS[subject]), undrawn=[])}
    page, faults = browser.new_page(viewport={"width": 1600, "height": 1000}), {}
    for name, drawing in drawn.items():
        svg = svg_text(on_paper(drawing.vega_lite(printed=True), drawing.printed[1]))
        page.set_content(f'<div class="plot">{svg}</div>')
        if found := page.evaluate(OVERLAPS):
            faults[name] = found
            page.screenshot(path=artefacts / f"{subject}-{name}.png", full_page=True)
    page.close()
    assert not faults, json.dumps(faults, ensure_ascii=False)[:3000]
