"""Figures of an audit in a browser: no text of a file for papers lies on another."""

import json

import pytest

from gfscore.show.drawing import drawings
from gfscore.show.forms.saving import on_paper, svg_text
from made_charts import full_subject

LONG = [f"residual-network-trained-with-adversarial-examples-of-kind-{word}" for word in ("alpha", "beta", "gamma")]
LONG_CLASSES = [f"class-of-very-similar-things-that-differ-in-the-last-word-{index}" for index in range(6)]
SUBJECTS = {
    "ordinary": {},
    "long names": {"names": LONG, "class_names": LONG_CLASSES},
    "many models": {"models": 30, "classes": 3, "calibrated": False},
}

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("text, text tspan:only-child")]
    .filter((node) => node.textContent.trim() && !(new DOMMatrix(getComputedStyle(node).transform).b || /rotate/.test(node.getAttribute("transform") || "")))
    .map((node) => [node.textContent.trim().slice(0, 40), node.getBoundingClientRect(), node]);
  const faults = [];
  boxes.forEach(([text, a, node], i) => boxes.slice(i + 1).forEach(([other, b, second]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 4 && !node.contains(second) && !second.contains(node)) faults.push(`${text} on ${other}`);
  }));
  return faults;
}"""


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_text_lies_on_another(browser, artefacts, subject):
    drawn = {drawing.chart.name: drawing for drawing in drawings(full_subject(**SUBJECTS[subject]))}
    page, faults = browser.new_page(), {}
    for name, drawing in drawn.items():
        page.set_content(svg_text(on_paper(drawing.vega_lite(printed=True), drawing.printed[1])))
        if found := page.evaluate(OVERLAPS):
            faults[name] = found
            page.screenshot(path=artefacts / f"{subject}-{name}.png", full_page=True)
    page.close()
    assert not faults, json.dumps(faults, ensure_ascii=False)[:3000]
