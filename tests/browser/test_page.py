"""The page of an audit in a browser: what a reader sees of it, on which screen, how soon, and that it says no more."""

import contextlib
import json
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe

from gfscore.audit.metrics import METRICS
from gfscore.audit.verdicts.gate_rules import verdict_of
from gfscore.core.numbers import interval, number, setting
from gfscore.show.drawing.layout import PHONE, WIDTH
from helpers.configurations import gate_rule
from helpers.finished_audits import finished_audit
from helpers.pages import OVERLAPS, audit_for_page, opened, page_of, rows_of
from helpers.synthetic_audits import LAM

pytestmark = pytest.mark.seconds(90)

LONG = [f"residual-network-trained-with-adversarial-examples-of-kind-{word}" for word in ("alpha", "beta", "gamma")]
LONG_CLASSES = [f"class-of-very-similar-things-that-differ-in-the-last-word-{index}" for index in range(10)]
CASES = {
    "usual": {"models": 17, "classes": 10, "grouped": True},
    "long names": {"models": 3, "classes": 10, "model_names": LONG, "class_names": LONG_CLASSES},
    "one model, two classes": {"models": 1, "classes": 2},
    "a remedy": {"models": 3, "classes": 10, "at_least": 1.2, "with_remedy": {}},
    "a class without samples": {"models": 4, "classes": 6, "empty_class": 2},
    "1,000 classes": {"models": 3, "classes": 1000, "per_class": 3, "permutations": 19},
    "190 models": {"models": 190, "classes": 10, "per_class": 10, "calibrated": False, "permutations": 19},
}
LARGE = {"1,000 classes", "190 models"}
MEGABYTE = 1_000_000


@pytest.fixture(scope="session", params=CASES)
def page_file(request, tmp_path_factory):
    """Name of a case, path of its page, and seconds that it took."""
    made = audit_for_page(**CASES[request.param])
    began = time.process_time()
    text = page_of(made)
    seconds = time.process_time() - began
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text, encoding="utf-8")
    return request.param, path, seconds


@pytest.fixture(scope="session")
def usual(tmp_path_factory):
    """A small audit and the path of its page."""
    made = audit_for_page(models=5, classes=6)
    path = tmp_path_factory.mktemp("usual") / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    return made, path


def heights(page):
    return page.evaluate(
        """() => [document.documentElement.scrollHeight, document.getElementById("first").getBoundingClientRect().bottom,
                  document.documentElement.scrollWidth, innerWidth]"""
    )


SCREENS = {(1280, 800): (1, 7000), (390, 844): (2, 12_000)}
"""Width and height of a screen -> how many of them the first part may fill, and how tall the page may be."""


def test_the_first_screen_is_whole_the_page_short_and_nothing_scrolls_sideways(page_file, browser, artefacts):
    name, path, _ = page_file
    with opened(browser, path) as page:
        for (width, height), (screens, tallest) in SCREENS.items():
            page.set_viewport_size({"width": width, "height": height})
            whole, first, wide, _ = heights(page)
            page.screenshot(path=artefacts / f"{name}-{width}.png")
            page.screenshot(path=artefacts / f"{name}-{width}-whole.png", full_page=True)
            assert page.evaluate(OVERLAPS) == [], width
            assert first <= screens * height, width
            assert whole <= tallest, width
            assert wide <= width
        page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
        for width in (360, 768, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            _, _, wide, inner = heights(page)
            assert wide <= inner, width


def test_files_are_small_and_made_soon(page_file):
    name, path, seconds = page_file
    large = name in LARGE
    assert path.stat().st_size < (8 if large else 3) * MEGABYTE
    # Seconds of a processor, since other tests may share the machine.
    assert seconds < (45 if large else 15)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(usual, browser, artefacts, scheme):
    with opened(browser, usual[1], color_scheme=scheme) as page:
        page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
        page.screenshot(path=artefacts / f"{scheme}.png", full_page=True)
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found] == []


@pytest.fixture(scope="session")
def between_proof_and_attack(tmp_path_factory):
    """Path of the page of an audit whose gate judges an evidence interval."""
    folder = tmp_path_factory.mktemp("proven")
    with contextlib.chdir(folder):
        finished_audit(bands=(([12, 10, 9], [14, 12, 9]), ([12, 10, 3], [14, 13, 12])))
    return folder / "results/audits/toy/report.html"


@pytest.fixture(scope="session")
def usual_page(usual):
    """Path of the page of the small audit."""
    return usual[1]


def test_the_picture_names_its_ball_and_its_samples(between_proof_and_attack, browser):
    with opened(browser, between_proof_and_attack) as page:
        title = page.inner_text("#evidence figcaption")
        # Its measure is not the one of every rule, nor measured on as many samples.
        assert title.startswith("Each class between proof and attack, l_inf 2/255: ")
        assert "n = 15 per class" in page.inner_text("#evidence .note")


@pytest.mark.parametrize(
    ("metric", "unit", "ends"),
    [("wcr", "share of samples", "Band: from"), ("rdi", "share of samples", "Of what is proven alone"),
     ("nrgc", "no unit", "Of what is proven alone")],
)  # fmt: skip
def test_numbers_of_the_ranking_have_their_unit_and_say_what_they_are_of(
    between_proof_and_attack, browser, metric, unit, ends
):
    with opened(browser, between_proof_and_attack, fragment=f"#metric={metric}") as page:
        note = page.inner_text("#ranking-note")
    assert note.startswith(f"Robust accuracy, l_inf 2/255, {unit}") and ends in note


@pytest.mark.parametrize("page_of_audit", ["usual_page", "between_proof_and_attack"])
def test_it_says_the_same_without_scripts(page_of_audit, browser, artefacts, request):
    path = request.getfixturevalue(page_of_audit)
    with opened(browser, path) as page:
        scripted = {host: rows_of(page, host) for host in ("evidence", "strip", "ranking", "pairs")}
        words = _words_of_pictures(page)
    with opened(browser, path, java_script_enabled=False) as page:
        page.screenshot(path=artefacts / "without-scripts.png", full_page=True)
        assert not page.locator("input, select").first.is_visible()
        pictures = page.locator(".plot > svg").count()
        static = {host: _static_rows(page, host) for host in scripted}
        static_words = _words_of_pictures(page)
    assert static == scripted
    assert static_words == words
    assert pictures > 0


def _words_of_pictures(page):
    """What rows of tracks say to readers of screens, and the numbers on their scales."""
    words = [track.get_attribute("aria-label") for track in page.locator(".tracks .track").all()]
    return words + [axis.text_content() for axis in page.locator(".tracks .axis").all()]


def _static_rows(page, host):
    rows = page.locator(f"#{host} .tracks tbody tr")
    names = [row.locator("button").first if row.locator("button").count() else row.locator("th") for row in rows.all()]
    return [
        [name.inner_text().strip(), row.locator("td").last.inner_text().strip()]
        for name, row in zip(names, rows.all(), strict=True)
    ]


def test_choosing_a_model_changes_the_picture_and_the_address_keeps_it(usual, browser):
    with opened(browser, usual[1]) as page:
        before = rows_of(page, "evidence")
        other = page.locator("#strip button[aria-pressed=false]").first
        name = other.inner_text()
        other.focus()
        page.keyboard.press("Enter")
        assert rows_of(page, "evidence") != before
        assert page.inner_text("#evidence-model") == name
        page.wait_for_url("**/*model=*")
        chosen, fragment = rows_of(page, "evidence"), page.evaluate("location.hash")
    with opened(browser, usual[1], fragment=fragment) as page:
        assert rows_of(page, "evidence") == chosen


def test_lambda_ranks_models_as_python_does(usual, browser):
    made, path = usual
    summary = made.audit.of("model_summary").set_index("model")
    for lam in (0, LAM, 1.37, 2):
        expected = {model: number(row["class_mean"] - lam * row["rdi"]) for model, row in summary.iterrows()}
        with opened(browser, path, fragment=f"#metric=fp&lambda={lam}&measure=great-softmax") as page:
            shown = rows_of(page, "ranking")
        assert dict(shown) == expected
        values = [summary["class_mean"][name] - lam * summary["rdi"][name] for name, _ in shown]
        assert values == sorted(values, reverse=True)


def test_scripts_print_bounds_as_python_does(browser, tmp_path):
    made = audit_for_page(models=2, classes=3, calibrated=False)
    summary = made.tables.model_summary
    ends = {"fp_low": -0.1234, "fp": -0.05, "fp_high": -1.5e-6}
    summary.loc[summary["model"] == "model_0", list(ends)] = list(ends.values())
    path = tmp_path / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path, fragment="#metric=fp&measure=great-softmax") as page:
        words = page.locator("#ranking tbody title").all_text_contents()
    (of_model,) = (text for text in words if text.startswith("model_0"))
    assert interval(ends["fp_low"], ends["fp_high"], 1.2533) in of_model


def test_metrics_and_temperatures_are_those_that_python_tabulated(usual, browser):
    made, path = usual
    with opened(browser, path) as page:
        grid = page.evaluate("audit.data.temperatures.temperatures")
    for metric in ("value", "rdi", "nrgc", "wcr"):
        for step in (0, len(grid) // 2):
            with opened(browser, path, fragment=f"#measure=great-softmax&metric={metric}&temperature={step}") as page:
                shown = dict(rows_of(page, "ranking"))
            for threat, model in made.audit.of("model_summary")[["threat", "model"]].itertuples(index=False):
                curve, rows = made.sweeps[f"{threat}/{model}"], made.audit.of("class_scores")
                counts = rows[rows["model"] == model]["n"].to_numpy()
                assert shown[model] == number(METRICS[metric].compute(curve([grid[step]])[0], counts=counts))


def test_a_control_answers_at_once(usual, browser):
    with opened(browser, usual[1]) as page:
        slowest = page.evaluate(
            """() => Math.max(...["measure", "metric", "lambda", "temperature", "tau", "first-model"].map((id) => {
                 const control = document.getElementById(id), began = performance.now();
                 if (control.options) control.selectedIndex = control.options.length - 1;
                 else control.value = (Number(control.min) + Number(control.max)) / 2;
                 for (const type of ["input", "change"]) control.dispatchEvent(new Event(type, { bubbles: true }));
                 document.body.getBoundingClientRect();
                 return performance.now() - began;
               }))"""
        )
    assert slowest < 200


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pictures_can_be_taken_away_in_the_colours_of_the_page(usual, browser, kind, width):
    with opened(browser, usual[1], width=width) as page:
        with page.expect_download() as waiting:
            page.locator(f"#class > figure .plot button:text('{kind.upper()}')").click()
        assert waiting.value.suggested_filename.endswith(f".{kind}")
        taken = Path(waiting.value.path()).read_bytes()
    if kind == "png":
        assert taken.startswith(b"\x89PNG") and len(taken) > 5000
    else:
        root = ElementTree.fromstring(taken)
        assert float(root.get("width")) == (WIDTH if width == 1280 else PHONE)
        assert b"var(" not in taken


VEILED = """() => {
  const svg = [...document.querySelectorAll("#class > figure .plot svg")].find((own) => own.checkVisibility());
  const [, , width, height] = svg.dataset.box.split(" ").map(Number);
  return [...svg.querySelectorAll(".veil")].reduce((sum, own) => sum + own.width.baseVal.value * own.height.baseVal.value, 0) / (width * height);
}"""
"""Share of the heatmap's cells that lie under a veil."""


@pytest.mark.parametrize("width", [1280, 390])
def test_heatmap_fades_what_reaches_tau_and_what_the_search_does_not_find(usual, browser, width):
    made, path = usual
    values = made.audit.of("class_scores").query("measure == 'great-softmax'")["value"]
    tau, classes = float(values.median()), sorted(made.audit.of("class_scores")["class_name"].unique())
    with opened(browser, path, width=width) as page:
        assert page.evaluate(VEILED) == 0
        page.locator("#tau").evaluate(
            "(control, tau) => { control.value = tau; control.dispatchEvent(new Event('input')); }", tau
        )
        shown = page.evaluate("audit.state.tau")
        assert page.evaluate(VEILED) == pytest.approx((values >= shown).mean(), abs=0.001)
        page.locator("#find").fill(classes[0])
        own = made.audit.of("class_scores").query("measure == 'great-softmax' and class_name == @classes[0]")["value"]
        left = (own < shown).sum() / values.size
        assert page.evaluate(VEILED) == pytest.approx(1 - left, abs=0.001)


CLASS_THRESHOLD, RDI_THRESHOLD = 0.1, 0.3


@pytest.fixture(scope="session")
def by_disparity(tmp_path_factory):
    """Path of the page of an audit whose first rule is about RDI, its second about the worst class; and its verdict."""
    rules = [
        gate_rule("great-softmax", statistic="rdi", at_most=RDI_THRESHOLD),
        gate_rule("great-softmax", at_least=CLASS_THRESHOLD),
    ]
    made = audit_for_page(models=5, classes=6, calibrated=False, rules=rules)
    path = tmp_path_factory.mktemp("by_disparity") / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    return path, made.audit.verdict


def test_the_threshold_of_a_disparity_is_none_of_classes(by_disparity, browser):
    path, _ = by_disparity
    ends = "[...document.querySelectorAll('#evidence .threshold')].map((line) => line.getAttribute('x1'))"
    with opened(browser, path, java_script_enabled=False) as page:
        static = [line.get_attribute("x1") for line in page.locator("#evidence .threshold").all()]
    with opened(browser, path, fragment="#tau=0.7") as page:
        assert page.evaluate(ends) == static
        assert page.inner_text("#evidence .tau-value") == str(CLASS_THRESHOLD)
        assert page.inner_text("#painted") == ""
        assert page.evaluate(VEILED) == 0


def test_thresholds_of_the_slider_are_round_numbers(browser, tmp_path):
    made = audit_for_page(
        models=2, classes=3, calibrated=False, rules=[gate_rule("great-softmax", statistic="fp", at_least=0.3)]
    )
    path = tmp_path / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        page.locator("#tau").evaluate(
            "(control) => { control.value = 0.1534; control.dispatchEvent(new Event('input')); }"
        )
        assert page.inner_text("#strip-tau") == "0.155"


@pytest.mark.parametrize("tau", [0, RDI_THRESHOLD, 0.85, "a bound"])
def test_models_are_counted_as_the_gate_would(by_disparity, browser, tau):
    path, verdict = by_disparity
    rule = verdict.rules[0]
    if tau == "a bound":
        tau = rule.models[0].high
    words = [verdict_of(rule.direction, tau, model.low, model.high) for model in rule.models]
    with opened(browser, path, fragment=f"#tau={tau}") as page:
        counts = [int(count) for count in re.findall(r"(\d+) (?:surely|open)", page.inner_text("#tau-out"))]
        assert counts == [words.count(word) for word in ("FAIL", "PASS", "INCONCLUSIVE")]
        # The caption names the threshold that is drawn; signs of the rule's own say nothing of another one.
        assert page.inner_text("#strip-tau") == setting(tau)
        signs = [sign.inner_text() for sign in page.locator("#strip .sign").all()]
        assert any(signs) == (tau == RDI_THRESHOLD)


def test_paper_shows_what_the_reader_opened_and_no_controls(usual, browser, artefacts):
    with opened(browser, usual[1]) as page:
        page.locator("summary").first.click()
        page.emulate_media(media="print")
        assert page.locator("details[open]").count() == 1
        assert page.locator("input:visible, select:visible, nav:visible").count() == 0
        page.pdf(path=artefacts / "printed.pdf")


def test_a_search_says_what_it_leaves_out(browser, tmp_path):
    names = [f"c{index}" for index in range(12)]
    made = audit_for_page(models=13, classes=12, class_names=names, per_class=5, calibrated=False, permutations=19)
    path = tmp_path / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        page.locator("#find").fill("c")
        assert page.inner_text("#found .note") == "Here: the first 8 of 12 classes, the first 12 of 13 models."
        page.locator("#find").fill("c11")
        assert page.inner_text("#found .note") == "Here: the first 12 of 13 models."


@pytest.mark.parametrize("name", ["__proto__", "constructor", "nothing"])
def test_an_address_that_names_nothing_shows_the_page_as_it_opens(usual, browser, name):
    with opened(browser, usual[1]) as page:
        whole = rows_of(page, "ranking")
    with opened(browser, usual[1], fragment=f"#measure={name}&metric={name}&{name}=1") as page:
        assert rows_of(page, "ranking") == whole


FORMULA = "=1+1;@x"


def test_tables_taken_away_hold_no_formulas(browser, tmp_path):
    made = audit_for_page(models=2, classes=3, calibrated=False, class_names=[FORMULA, "b", "\uff0bc"])
    path = tmp_path / "report.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
        table = page.locator("details:has(table[data-name=vulnerability])").last
        with page.expect_download() as waiting:
            table.locator("button:text('CSV of this table')").click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
    names = {line.split(",")[0] for line in text.splitlines()[1:]}
    assert names == {"'=1+1;'@x", "b", "'\uff0bc"}


HOSTILE = '</script><img src=x onerror="alert(1)">&{{ 7*7 }}'


def test_names_from_outside_stay_text(browser, tmp_path):
    made = audit_for_page(models=2, classes=3, model_names=[HOSTILE, "other"], class_names=[HOSTILE, "b", "c"])
    path = tmp_path / "report.html"
    path.write_text(page_of(made, title=HOSTILE), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.locator("img[src=x]").count() == 0
        assert page.inner_text("h1") == HOSTILE
        assert json.loads(page.evaluate("JSON.stringify(audit.data.models[0].label)")) == HOSTILE
