"""The dashboard as a page: opens offline, in any size and colour scheme, by keyboard, with any names, and stays quick."""

import pandas as pd
import pytest

from dashboard_pages import audit_for_page, headings, opened, page_of, ranking, rows_of_chart, rows_of_table
from gfscore.core.names import shortened_all
from gfscore.show.dashboard.contents import LONGEST_CLASS, LONGEST_MODEL
from made import gate_rule

HOSTILE_MODELS = ["<script>alert(1)</script>", "=cmd()", "</script><b>'\"", "a" * 90, "{{ 7*7 }}"]
HOSTILE_CLASSES = ["<img src=x onerror=alert(1)>", "</table>", '"quoted"', "&amp;", "日本語", *map(str, range(5))]
WIDEST_DELAY_MS = 200
LARGEST_PAGE = 10_000_000
CHARTS = (
    "swaps-chart", "ranking-chart", "scatter-chart", "heatmap-chart", "vulnerability-chart", "model-chart",
    "agreement-chart", "confusion-chart", "pair-chart", "distances-chart-0", "shift-chart", "scale-chart", "costs-chart",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dashboards")


@pytest.fixture(scope="module")
def small(folder):
    made = audit_for_page(models=6, classes=10, per_class=60, weak_class=3, permutations=9)
    path = folder / "small.html"
    path.write_text(page_of(made), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def published(folder):
    path = folder / "published.html"
    path.write_text(page_of(audit_for_page(models=17, classes=10, per_class=60, permutations=9)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def large(folder):
    made = audit_for_page(
        models=5, classes=1000, per_class=4, permutations=9, calibrated=False, measures=("great-softmax",)
    )
    path = folder / "large.html"
    path.write_text(page_of(made), encoding="utf-8")
    return path


def test_every_chart_is_drawn_and_nothing_asks_the_network(browser, small):
    with opened(browser, small) as page:
        for chart in CHARTS:
            assert rows_of_chart(page, chart), chart
        assert page.locator("figcaption:visible").count() >= len(CHARTS) - 1
        assert all(text.strip() for text in page.locator("figcaption:visible").all_inner_texts())
        assert page.inner_text("#costs-takeaway") == "extract_logits took 75% of the 24.0 s of the models' jobs"
        assert rows_of_chart(page, "costs-chart")[1]["text"].endswith(", 0 images passed forward")
        extracted, scored, imported = rows_of_table(page, "costs-data")[:3]
        assert [row.split("\t")[-2:] for row in (extracted, scored, imported)] == [
            ["1,200", "0"],
            ["0", "0"],
            ["n/a", "n/a"],
        ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_fits_its_window_and_keeps_a_screenshot(browser, small, artefacts, width, scheme):
    with opened(browser, small, width=width, color_scheme=scheme) as page:
        for chart in CHARTS:
            rows_of_chart(page, chart)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(
            "[...document.querySelectorAll('.chart svg')].every((svg) => svg.getBoundingClientRect().right <= innerWidth)"
        )
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=artefacts / f"dashboard-{width}-{scheme}.png", full_page=True)


CUT_OFF = """() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const { left, right } = text.getBoundingClientRect();
    return left < frame.left - 1 || right > frame.right + 1;
  }).map((text) => text.textContent);
})"""


def test_no_word_is_cut_off_on_a_phone(browser, folder):
    path = folder / "grouped.html"
    path.write_text(page_of(audit_for_page(grouped=True, models=2, classes=4, per_class=20, permutations=9)))
    with opened(browser, path, width=360) as page:
        for chart in (*CHARTS, "groups-chart", "fairness-chart"):
            rows_of_chart(page, chart)
        assert page.evaluate(CUT_OFF) == []
        below = page.locator("#vulnerability-chart .role-axis-label").first
        assert below.locator("text").all_text_contents() == ["0", "1", "2"]


@pytest.fixture(scope="module")
def long_names(folder):
    classes = [f"{word} of the order number {number}" for number, word in enumerate(("shark", "ray", "cock", "grouse"))]
    models = [f"Rebuffi2021Fixing_70_16_cutmix_extra_L2_r{number}" for number in (18, 34, 50, 101)]
    path = folder / "long.html"
    made = audit_for_page(models=4, classes=4, per_class=20, permutations=9, class_names=classes, model_names=models)
    path.write_text(page_of(made), encoding="utf-8")
    return path, models, classes


def test_long_names_stand_whole_as_shortened_in_every_chart(browser, long_names):
    """In the middle, by gfscore.core.names: Vega-Lite would cut their ends, and drop every other one of a slanted row."""
    path, models, classes = long_names
    of_classes, of_models = shortened_all(classes, LONGEST_CLASS), shortened_all(models, LONGEST_MODEL)
    assert len({*of_classes, *of_models}) == 8 and "(" not in "".join(of_classes + of_models)
    with opened(browser, path, width=800) as page:
        for chart in ("heatmap-chart", "confusion-chart", "model-chart", "pair-chart"):
            rows_of_chart(page, chart)
            written = set(page.locator(f"#{chart} .role-axis-label text").all_text_contents())
            assert set(of_classes) <= written, chart
        for chart in ("heatmap-chart", "ranking-chart"):
            rows_of_chart(page, chart)
            assert set(of_models) <= set(page.locator(f"#{chart} .role-axis-label text").all_text_contents()), chart
        named = {row["name"] for row in rows_of_chart(page, "scatter-chart")} - {""}
        assert named <= set(of_models)
        assert named <= set(page.locator("#scatter-chart .mark-text text").all_text_contents())
        overflow = page.locator("#heatmap-chart svg.marks").evaluate("(svg) => getComputedStyle(svg).overflow")
        assert overflow == "visible", "the last slanted name reaches beyond the chart"


def test_long_names_are_whole_where_there_is_room(browser, long_names):
    path, models, classes = long_names
    with opened(browser, path) as page:
        assert {row[0][0] for row in ranking(page)} == set(models)
        table = page.inner_text("#ranking-table")
        assert any(name in table for name in classes)
        assert {row.split("\t")[0] for row in rows_of_table(page, "scatter-data")} == set(models)
        cells = rows_of_chart(page, "heatmap-chart")
        assert {cell["model"] for cell in cells} == set(models), "as tooltips show them"
        assert {cell["class"] for cell in cells} == set(classes)


def test_no_relation_is_claimed_over_few_models_by_any_metric(browser, long_names):
    with opened(browser, long_names[0]) as page:
        for metric, name in (("rdi", "disparity"), ("nrgc", "NRGC"), ("wcr", "WCR")):
            page.select_option("#metric", metric)
            words = page.inner_text("#scatter-takeaway")
            assert words == f"4 models: too few to show a relation between mean and {name}"


@pytest.mark.parametrize("sources", [["PGD, linf 0.15, 20 steps"], ["published", "PGD, linf 0.15, 20 steps"]])
def test_robust_accuracy_names_its_attack_below_its_heading_or_in_every_row(browser, folder, sources):
    made = audit_for_page(models=2, classes=4, per_class=20, permutations=9)
    summary = made.tables.model_summary
    summary.loc[summary["model"] == "model_1", "robust_accuracy_source"] = sources[0]
    words = {"as published" if source == "published" else source for source in sources}
    path = folder / "robust.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        heading = page.locator("#ranking-table thead th").last
        assert heading.inner_text().split("\n")[1:] == (list(words) if len(sources) == 1 else [])
        assert {tuple(row[-1][1:]) for row in ranking(page)} == ({()} if len(sources) == 1 else {(w,) for w in words})
        assert "not measured in this audit" in heading.locator("button").get_attribute("title")


def test_a_page_of_one_model_speaks_of_no_other(browser, folder):
    path = folder / "one.html"
    path.write_text(page_of(audit_for_page(models=1, classes=4, per_class=20, permutations=9)), encoding="utf-8")
    with opened(browser, path) as page:
        for chart in ("ranking-chart", "heatmap-chart", "model-chart", "distances-chart-0", "shift-chart"):
            rows_of_chart(page, chart)
        page.evaluate("document.getElementById('calibration').scrollIntoView()")
        page.wait_for_function("document.getElementById('calibration').innerText.includes('likelihood: best at T')")
        words = page.inner_text("body")
        assert "surely exceeds the mean distance" in words
        of_several = ("Ranking", "Two models", "its own temperature", "over models", "other models", "change places")
        for said in (*of_several, "1 of 1", "too few to show", "of each model"):
            assert said not in words, said
        assert not any(heading.startswith("Place") for heading in headings(page))
        assert not page.locator("#model-select").is_visible()


def test_what_a_change_leaves_alone_is_drawn_level(browser, folder):
    """Means under shifted logits differ by rounding, and an axis of that range would show a mountain."""
    path = folder / "level.html"
    path.write_text(page_of(audit_for_page(models=1, classes=4, per_class=20, permutations=9)), encoding="utf-8")
    with opened(browser, path) as page:
        values = [row["value"] for row in rows_of_chart(page, "shift-chart")]
        assert max(values) - min(values) < 1e-12
        labels = page.locator("#shift-chart .role-axis-label text").all_text_contents()
        assert all(len(label) <= 6 for label in labels), labels


def test_prints_charts_without_controls(browser, small, artefacts):
    with opened(browser, small, color_scheme="dark") as page:
        for chart in CHARTS:
            rows_of_chart(page, chart)
        page.emulate_media(media="print")
        assert page.is_hidden("#lambda")
        assert page.is_visible("#ranking-chart svg")
        page.pdf(path=artefacts / "dashboard.pdf", format="A4")


def test_keyboard_reaches_and_moves_every_control(browser, small):
    with opened(browser, small) as page:
        reached = []
        while "BODY" not in reached:
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        wanted = ["measure", "t", "t-one", "lambda", "lambda-number", "metric", "tau", "order", "find", "heatmap-chart"]
        assert [name for name in reached if name in wanted] == wanted
        page.focus("#lambda")
        page.keyboard.press("ArrowRight")
        assert page.input_value("#lambda-number") == "0.51"
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_keyboard_reads_the_heatmap_cell_by_cell(browser, small):
    with opened(browser, small) as page:
        rows_of_chart(page, "heatmap-chart")
        page.focus("#heatmap-chart")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        cell = page.evaluate("dashboard.shown('heatmap-chart', 'cursor')")[0]
        text = page.inner_text("#cell")
        assert text.startswith(f"{cell['model']}, {cell['class']}: ") and cell["text"] in text and "n = 60" in text
        page.keyboard.press("Enter")
        assert page.locator("#model-select option:checked").inner_text() == cell["model"]


def test_tables_behind_charts_hold_the_same_numbers(browser, small):
    with opened(browser, small) as page:
        cells = rows_of_chart(page, "heatmap-chart")
        assert len(rows_of_table(page, "heatmap-data")) == len(cells) == 60
        page.click("#heatmap-data thead button:has-text('value')")
        assert page.get_attribute("#heatmap-data thead th:has-text('value')", "aria-sort") == "ascending"
        for host in ("vulnerability", "swaps"):
            assert len(rows_of_table(page, f"{host}-data")) >= len(rows_of_chart(page, f"{host}-chart")) > 0
        for host in ("agreement", "calibration"):
            assert rows_of_table(page, f"{host}-data")[0].split()[-1] != "–"


def test_a_mean_score_is_not_settled_where_samples_were_not_broken(browser, folder):
    made = audit_for_page(models=3, classes=4, per_class=20, permutations=9)
    known = {"mean_score": [0.9, 0.9, 0.3], "mean_distance": 0.5, "p_mean": [0.001, 0.001, 1.0], "censored": [0, 7, 7]}
    made.tables.measures["falsification"] = made.tables.measures["falsification"].assign(**known)
    path = folder / "unbroken.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        sides = [row["side"] for row in rows_of_chart(page, "distances-chart-0")]
        assert sorted(sides) == ["above the line: not settled", "above the line: refuted on average", "on or below"]
        said = page.inner_text("#distances-grid figcaption")
        assert said.startswith("In 1 of 3 models mean ")
        assert said.endswith("; 1 not settled: 7 samples not broken up to the largest distance searched")


def test_each_measure_of_distances_has_its_chart_sentence_and_column(browser, folder):
    made = audit_for_page(models=3, classes=4, per_class=20, permutations=9)
    first = made.tables.measures["falsification"].assign(mean_score=0.9, mean_distance=0.5)
    other = first.assign(distances="minimal-other", mean_distance=[0.5, 1.5, 1.5], rate=0.75, low=0.7, high=0.8)
    made.tables.measures["falsification"] = pd.concat([first, other], ignore_index=True)
    path = folder / "distances.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        for place, (name, refuted) in enumerate((("minimal-l2", 3), ("minimal-other", 1))):
            rows = rows_of_chart(page, f"distances-chart-{place}")
            assert len([row for row in rows if row["side"] == "above the line: refuted on average"]) == refuted
            said = page.locator("#distances-grid figcaption").nth(place).inner_text()
            assert said.startswith(f"In {refuted} of 3 models mean ") and f"the attack of {name} succeeded" in said
        assert len(rows_of_table(page, "distances-data")) == 6
        titles = headings(page)
        cells = [row[titles.index("Falsified (minimal-l2)") :][:2] for row in ranking(page)]
        assert titles[titles.index("Falsified (minimal-l2)") + 1] == "Falsified (minimal-other)"
        assert cells == [[["0.250", "0.200 to 0.300"], ["0.750", "0.700 to 0.800"]]] * 3
        page.select_option("#measure", "clean")
        assert "Falsified" not in "".join(headings(page))


def test_more_undecided_models_open_and_print(browser, folder):
    rules = [gate_rule("great-softmax", at_least=0.6)]
    settings = {"models": 8, "classes": 3, "per_class": 4, "permutations": 9, "calibrated": False}
    path = folder / "undecided.html"
    path.write_text(page_of(audit_for_page(**settings, rules=rules)), encoding="utf-8")
    with opened(browser, path) as page:
        last = page.locator("#verdict li").last
        assert page.locator("#verdict li").count() == 8 and not last.is_visible()
        page.emulate_media(media="print")
        assert last.is_visible()
        page.emulate_media(media="screen")
        page.focus("#verdict summary")
        page.keyboard.press("Enter")
        assert last.is_visible() and "which lies at" in last.inner_text()


def test_a_permutation_p_of_the_coarse_steps_says_so(browser, folder):
    made = audit_for_page(models=3, classes=4, per_class=20, permutations=9)
    results = made.tables.calibration_results
    searched = [name for name, result in results.items() if (result["permutation"] or {}).get("p") is not None]
    assert len(searched) > 1
    for name in searched:
        results[name] = results[name] | {"search": "grid" if name == searched[0] else "exact"}
    path = folder / "grid.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        notes = dict(zip(results, page.locator("#calibration-grid .note").all_text_contents(), strict=True))
    assert "Permutation p of the maximum over the coarse steps of the grid alone: " in notes[searched[0]]
    assert all("Permutation p of the maximum: " in notes[name] for name in searched[1:])


def test_panels_of_measures_have_sentences_and_a_table(browser, small):
    with opened(browser, small) as page:
        rows_of_chart(page, "agreement-chart")
        captions = page.locator("#measures-grid figcaption").all_text_contents()
        model, sentence = page.inner_text("#model-takeaway").split(": ", 1)
        assert model == page.locator("#model-select option:checked").inner_text()
        assert f"great-softmax: {sentence}" in captions and len(set(captions)) == 3
        lines = rows_of_table(page, "measures-data")
        assert len(lines) == 3 * 10
        bars = rows_of_chart(page, "model-chart")
        assert any("great-softmax" in line and bars[0]["text"].split(" ")[0] in line for line in lines)
        page.select_option("#model-select", "0")
        assert page.locator("#measures-grid figcaption").all_text_contents() != captions


def test_hostile_names_stay_text(browser, folder):
    made = audit_for_page(
        models=5, classes=10, per_class=20, permutations=9, model_names=HOSTILE_MODELS, class_names=HOSTILE_CLASSES
    )
    path = folder / "hostile.html"
    path.write_text(page_of(made, title="<script>alert(2)</script>"), encoding="utf-8")
    with opened(browser, path) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a name was executed: {dialog.message}"))
        for chart in CHARTS:
            rows_of_chart(page, chart)
        names = {row[0][0] for row in ranking(page)}
        assert "<script>alert(1)</script>" in names and "{{ 7*7 }}" in names
        assert page.locator("img").count() == 0
        page.hover("#heatmap-chart svg .mark-rect path >> nth=0", force=True)
        page.wait_for_selector("#vg-tooltip-element.visible")
        page.select_option("#model-select", "2")
        with page.expect_download() as download:
            page.click("#ranking-csv")
        assert "'=cmd()" in download.value.path().read_text(encoding="utf-8")


def test_thousand_classes_stay_responsive(browser, large, artefacts):
    assert large.stat().st_size < LARGEST_PAGE
    with opened(browser, large) as page:
        rows_of_chart(page, "heatmap-chart")
        page.screenshot(path=artefacts / "dashboard-1000-classes.png")
        for control, values in (("lambda", (0.1, 0.9, 0.3, 0.7, 0.2)), ("tau", (0.1, 0.4, 0.2, 0.5, 0.3))):
            delays = [page.evaluate(DELAY, [f"{control}-number", value]) for value in values]
            # The quickest of five, since the machine may be busy with other things.
            assert min(delays) < WIDEST_DELAY_MS, (control, delays)
        delays = [page.evaluate(DELAY, ["find", text]) for text in ("7", "77", "1", "99", "")]
        assert min(delays) < WIDEST_DELAY_MS, delays
        assert len(rows_of_chart(page, "strip-chart")) == 5000


FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) done(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""


@pytest.mark.parametrize(("name", "longest_ms"), [("published", 1000), ("large", 2000)])
def test_first_paint(browser, request, record_property, name, longest_ms):
    path, paints = request.getfixturevalue(name), []
    for _ in range(3):
        with opened(browser, path) as page:
            paints.append(page.evaluate(FIRST_PAINT))
    record_property("first_contentful_paint_ms", paints)
    print(f"first contentful paint of the page {name}: {', '.join(f'{paint:.0f}' for paint in paints)} ms")
    # The quickest of three, and three times the bar, since the machine may be busy with other things.
    assert 0 < min(paints) < 3 * longest_ms


DELAY = """([id, value]) => new Promise((done) => {
  const control = document.getElementById(id), start = performance.now();
  control.value = value;
  control.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def test_thousand_classes_zoom_and_search(browser, large):
    with opened(browser, large) as page:
        first = rows_of_chart(page, "heatmap-chart")
        page.evaluate("document.getElementById('from').value = 500")
        page.dispatch_event("#from", "input")
        second = rows_of_chart(page, "heatmap-chart")
        assert not {cell["class"] for cell in first} & {cell["class"] for cell in second}
        page.fill("#find", "777")
        assert {cell["class"] for cell in rows_of_chart(page, "heatmap-chart")} == {"777"}
        page.fill("#find", "")
        page.evaluate("document.getElementById('strip-chart').scrollIntoView({block: 'center'})")
        box = page.locator("#strip-chart canvas").bounding_box()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 30, steps=5)
        page.mouse.up()
        page.wait_for_function("dashboard.state.from > 300")
