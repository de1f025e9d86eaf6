"""The page of two audits in a browser: whole first screen, nothing sideways, readable by everybody, at any size."""

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe

from gfscore.audit.class_changes import BETTER, UNDECIDED, WORSE
from gfscore.measures import named_measures
from gfscore.show.page.comparison import Side, render_comparison
from helpers.pages import opened
from helpers.synthetic_audits import MEASURES, synthetic_audit

pytestmark = pytest.mark.seconds(25)

LONG = [f"residual-network-trained-with-adversarial-examples-of-kind-{word}" for word in ("alpha", "beta", "gamma")]
LONG_CLASSES = [f"class-of-very-similar-things-that-differ-in-the-last-word-{index}" for index in range(10)]
NO_STATISTICS = pd.DataFrame(
    columns=["threat", "model", "measure", "statistic", "verdict", "first", "second"]
    + [f"{end}_{side}" for end in ("first", "second") for side in ("low", "high")]
)
CASES = {
    "one": (["net"], [f"class {k}" for k in range(10)], ["clean"], True),
    "long names": (LONG, LONG_CLASSES, ["clean", "great-softmax", "great-sigmoid"], True),
    "many classes": (["first", "second"], [f"class {k}" for k in range(1000)], ["clean"], False),
}


def changes(models, classes, measures, *, declined):
    """Table of class changes, of which the last class of the last model may have declined surely."""
    rng = np.random.default_rng(0)
    rows = []
    for model in models:
        for measure in measures:
            for index, name in enumerate(classes):
                first, change = rng.uniform(0.4, 0.9), rng.normal(0, 0.02)
                rows.append(("none", model, measure, index, name, 100, first, first + change, change, change - 0.1))
    columns = ["threat", "model", "measure", "class_index", "class_name", "n", "first", "second", "change", "low"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["high"], frame["verdict"] = frame["change"] + 0.1, UNDECIDED
    if declined:
        values = {"second": 0.1, "change": -0.4, "low": -0.5, "high": -0.3, "verdict": WORSE}
        for column, value in values.items():
            frame.loc[frame.index[-1], column] = value
    # Every sample is decided.
    for end in ("first", "second"):
        frame[f"{end}_most"] = frame[end]
    frame["change_least"] = frame["change_most"] = frame["change"]
    return frame


@pytest.fixture(scope="module", params=CASES)
def page_file(request, tmp_path_factory):
    models, classes, measures, declined = CASES[request.param]
    verdict = synthetic_audit(models=1, classes=3, per_class=10, permutations=19).verdict
    path = tmp_path_factory.mktemp("compare") / f"{request.param}.html"
    text = render_comparison(
        Side("Release 1 <b>", verdict, "a" * 64),
        Side("Release 2", verdict, None),
        classes=changes(models, classes, measures, declined=declined),
        statistics=NO_STATISTICS,
        models={f"none/{model}": f"none/{model}" for model in models},
        measures=named_measures({name: MEASURES[name] for name in measures}),
        confidence=0.95,
    )
    path.write_text(text, encoding="utf-8")
    return request.param, path, declined


def test_no_decline_is_named_where_every_class_gained():
    verdict = synthetic_audit(models=1, classes=3, per_class=10, permutations=19, calibrated=False).verdict
    frame = changes(["net"], ["a", "b", "c"], ["clean"], declined=False)
    frame = frame.assign(second=frame["first"] + 0.2, change=0.2, low=0.1, high=0.3, verdict=BETTER)
    frame = frame.assign(second_most=frame["second"], change_least=0.2, change_most=0.2)
    text = render_comparison(
        Side("Before", verdict, None),
        Side("After", verdict, None),
        classes=frame,
        statistics=NO_STATISTICS,
        models={"none/net": "none/net"},
        measures=named_measures({"clean": MEASURES["clean"]}),
        confidence=0.95,
    )
    assert "BETTER" in text and "No decline was seen; the smallest change: " in text
    assert "largest decline seen" not in text and "may still be hidden" not in text


def test_the_first_screen_is_whole_and_answers_and_every_width_is_readable_by_everybody(page_file, browser, artefacts):
    name, path, declined = page_file
    with opened(browser, path) as page:
        for width, height, screens in ((1280, 800, 1), (390, 844, 2)):
            page.set_viewport_size({"width": width, "height": height})
            bottom = page.evaluate("document.getElementById('first').getBoundingClientRect().bottom")
            page.screenshot(path=artefacts / f"compare-{name}-{width}.png")
            assert bottom <= screens * height, width
        assert ("WORSE" in page.locator(".verdict .word").inner_text()) == declined
        assert page.locator("h1 b").count() == 0, "names are escaped"
        page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
        for width in (360, 768, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= inner, width
            violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
            assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in violations] == [], width
