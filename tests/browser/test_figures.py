"""Figures of an audit in a browser: no text of a file for papers lies on another."""

import json

import pytest

from gfscore.show.audit_charts import drawings
from gfscore.show.drawing.layout import PHONE, WIDTH
from gfscore.show.drawing.saving import file_markup, page_markup
from helpers.pages import OVERLAPS
from helpers.synthetic_audits import full_subject

pytestmark = pytest.mark.seconds(70)

LONG = [f"residual-network-trained-with-adversarial-examples-of-kind-{word}" for word in ("alpha", "beta", "gamma")]
LONG_CLASSES = [f"class-of-very-similar-things-that-differ-in-the-last-word-{index}" for index in range(6)]
SUBJECTS = {
    "long names": {"names": LONG, "class_names": LONG_CLASSES},
    "many models": {"models": 30, "classes": 3, "calibrated": False},
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_text_lies_on_another(browser, artefacts, subject):
    drawn = {drawing.chart.name: drawing for drawing in drawings(full_subject(**SUBJECTS[subject]), undrawn=[])}
    page, faults = browser.new_page(viewport={"width": 1600, "height": 1000}), {}
    for name, drawing in drawn.items():
        pictures = {"file": file_markup(drawing.figure())}
        for kind, width in (("wide", WIDTH), ("phone", PHONE)):
            pictures[kind] = page_markup(drawing.picture(width), label="", prefix="", kind=kind)
        for kind, svg in pictures.items():
            page.set_content(f'<style>body {{ font-family: "DejaVu Sans" }}</style><div class="plot">{svg}</div>')
            if found := page.evaluate(OVERLAPS):
                faults[f"{name}, {kind}"] = found
                page.screenshot(path=artefacts / f"{subject}-{name}-{kind}.png", full_page=True)
    page.close()
    assert not faults, json.dumps(faults, ensure_ascii=False)[:3000]
