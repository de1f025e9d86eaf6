"""The dashboard as a page: opens offline, in any size and colour scheme, by keyboard, with any names, and stays quick."""

import pytest

from dashboard_pages import audit_for_page, opened, page_of, ranking, rows_of_chart, rows_of_table

HOSTILE_MODELS = ["<script>alert(1)</script>", "=cmd()", "</script><b>'\"", "a" * 90, "{{ 7*7 }}"]
HOSTILE_CLASSES = ["<img src=x onerror=alert(1)>", "</table>", '"quoted"', "&amp;", "日本語", *map(str, range(5))]
WIDEST_DELAY_MS = 200
LARGEST_PAGE = 10_000_000
CHARTS = (
    "swaps-chart", "ranking-chart", "scatter-chart", "heatmap-chart", "vulnerability-chart", "model-chart",
    "agreement-chart", "confusion-chart", "pair-chart", "distances-chart", "shift-chart", "scale-chart", "costs-chart",
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
        counts = page.locator("#vulnerability-chart .role-axis-label text").all_text_contents()
        assert {"0", "1"} <= set(counts) and not [text for text in counts if "." in text]


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
    known = {"mean_score": [0.9, 0.9, 0.3], "mean_distance": 0.5, "censored": [0, 7, 7]}
    made.tables.measures["falsification"] = made.tables.measures["falsification"].assign(**known)
    path = folder / "unbroken.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        sides = [row["side"] for row in rows_of_chart(page, "distances-chart")]
        assert sorted(sides) == ["above the line: not settled", "above the line: refuted on average", "on or below"]
        said = page.inner_text("#distances-takeaway")
        assert said.startswith("In 1 of 3 models mean ")
        assert said.endswith("; 1 not settled: 7 samples not broken up to the largest distance searched")


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
