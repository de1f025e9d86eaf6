"""The view of groups and projections: absent without their tables, and with them what the tables say."""

import csv

import pytest

from dashboard_pages import audit_for_page, opened, page_of, rows_of_chart, rows_of_table
from grouped_tables import grouped_tables

CHARTS = ("groups-chart", "cells-chart", "fairness-chart", "tolerance-chart", "deviation-chart", "censored-chart")
CHARTS += ("class-tolerance-chart", "class-deviation-chart")
SETTINGS = {"models": 3, "classes": 4, "per_class": 30, "permutations": 9, "calibrated": False}
HOSTILE = {"<img src=x>": ["<script>alert(1)</script>", "=cmd()"]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dashboard") / "grouped.html"
    path.write_text(page_of(audit_for_page(grouped=True, **SETTINGS)), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, path):
    with opened(browser, path, fragment="#model=1") as page:
        yield page


def values(rows):
    return {row["label"]: round(row["value"], 9) for row in rows}


def test_groups_of_the_chosen_model_by_the_largest_difference(page):
    rows = rows_of_chart(page, "groups-chart")
    assert values(rows) == {
        "size: tiny (n = 200)": 0.61, "size: normal (n = 200)": 0.66, "size: huge (n = 8)": 0.71,
        "side: left (n = 200)": 0.51, "side: right (n = 200)": 0.56,
    }  # fmt: skip
    assert [row["size"] for row in rows] == ["enough samples"] * 2 + ["few samples"] + ["enough samples"] * 2
    assert (round(rows[0]["lower"], 9), round(rows[0]["upper"], 9)) == (0.57, 0.65)
    takeaway = page.inner_text("#groups-takeaway")
    # The gap of size rests on few samples, so that of side stands in the sentence.
    assert takeaway.startswith("model_1: side left lies below side right by 0.0500")
    assert "under great-softmax; groups surely differ by 1 of 2 attributes" in takeaway
    assert "left out: 5 of size." in page.inner_text("#groups-note")


def test_attribute_and_model_change_the_view_and_stay_in_the_address(browser, path, page):
    page.select_option("#attribute", "0")
    page.select_option("#grouped-model", "2")
    assert values(rows_of_chart(page, "groups-chart")) == {"left (n = 200)": 0.52, "right (n = 200)": 0.57}
    assert page.input_value("#model-select") == "2"
    assert "which is within the intervals" in page.inner_text("#groups-takeaway")
    page.wait_for_function("location.hash.includes('attribute=0')")
    fragment = page.evaluate("location.hash")
    with opened(browser, path, fragment=fragment) as again:
        assert again.input_value("#attribute") == "0" and again.input_value("#grouped-model") == "2"
    with opened(browser, path, fragment="#attribute=7&model=99") as again:
        assert again.input_value("#attribute") == ""


def test_groups_within_classes_of_the_chosen_attribute(page):
    cells = {(row["group"], row["class"]): row for row in rows_of_chart(page, "cells-chart")}
    assert len(cells) == 5 * 4
    assert cells["size: normal", "3"]["value"] == pytest.approx(0.66 - 0.06)
    assert cells["size: normal", "3"]["text"] == "0.600 (0.560 to 0.640)"
    # few samples are marked, and a cell without any stays blank
    assert cells["size: huge", "0"]["mark"].endswith("°")
    assert (cells["size: huge", "3"]["value"], cells["size: huge", "3"]["mark"]) == (None, "")
    assert "Within class 0 groups by" in page.inner_text("#cells-takeaway")
    page.select_option("#attribute", "0")
    assert {row["group"] for row in rows_of_chart(page, "cells-chart")} == {"left", "right"}
    assert page.inner_text("#cells-takeaway").endswith("left 0.510, right 0.560")
    labels = page.locator("#cells-chart .role-axis-label text").all_text_contents()
    assert {"left", "right", "0"} <= set(labels)


def test_a_group_without_samples_in_the_first_class_keeps_its_place(browser, tmp_path):
    made = audit_for_page(grouped=True, **SETTINGS)
    scores = made.tables.measures["group_scores"]
    chosen = (scores["group"] == "tiny") & (scores["class_index"] == 0)
    scores.loc[chosen, "n"], scores.loc[chosen, "value"] = 0, None
    path = tmp_path / "first.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path, fragment="#model=1&attribute=1") as page:
        rows = rows_of_chart(page, "cells-chart")
    assert list(dict.fromkeys(row["group"] for row in rows)) == ["tiny", "normal", "huge"]
    assert list(dict.fromkeys(row["class"] for row in rows)) == ["0", "1", "2", "3"]


def test_fairness_metrics_are_approximate_and_stand_beside(page):
    rows = rows_of_chart(page, "fairness-chart")
    expected = {"DP": 0.0, "EOpp": 0.02, "EOdd": 0.04, "AOdd": 0.06}
    assert values(rows) == {
        f"{attribute}: {metric}": round(base + more, 9)
        for attribute, base in (("size", 0.2), ("side", 0.1))
        for metric, more in expected.items()
    }
    # The metrics of size rest on few samples.
    assert page.inner_text("#fairness-takeaway") == (
        "Under clean the largest fairness gap of model_1 is AOdd by side: 0.160, approximately 0.130 to 0.190"
    )
    assert "Intervals are approximate" in page.inner_text("#fairness-note")


def test_projection_orders_dimensions_by_tolerance_with_censoring_and_accuracy_beside(page):
    assert list(values(rows_of_chart(page, "tolerance-chart")).items()) == [
        ("slant=left", 0.71), ("z1", 0.81), ("z0", 0.91)
    ]  # fmt: skip
    assert list(values(rows_of_chart(page, "deviation-chart")).values()) == [0.15, 0.1, 0.05]
    assert "changes brightness most (\u22120.500)" in rows_of_chart(page, "tolerance-chart")[0]["text"]
    assert page.inner_text("#projection-takeaway").startswith("model_1 tolerates moves along slant=left least: ")
    note = page.inner_text("#projection-note")
    assert "accuracy 0.950, 0.850 on reconstructions" in note and "80% of moves change no prediction" in note


def test_projection_by_class_puts_the_least_tolerant_first(page):
    assert values(rows_of_chart(page, "class-tolerance-chart")) == {
        "3": 0.78, "2": 0.79, "1": 0.8, "0": 0.81
    }  # fmt: skip
    assert list(values(rows_of_chart(page, "class-tolerance-chart"))) == ["3", "2", "1", "0"]
    assert set(values(rows_of_chart(page, "class-deviation-chart")).values()) == {0.1}
    assert page.inner_text("#class-tolerance-caption") == "Least tolerant class: class 3, 0.780"


def test_attributes_have_no_deviation_to_draw_and_a_constant_classifier_is_marked_in_every_table(browser, tmp_path):
    made = audit_for_page(grouped=True, **SETTINGS)
    measures = made.tables.measures
    measures["projection_scores"] = measures["projection_scores"].assign(deviation=None, down=None)
    models = measures["projection_models"]
    measures["projection_models"] = models.assign(constant=models["model"] == "model_2")
    path = tmp_path / "attributes.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path, fragment="#model=1") as page:
        assert len(rows_of_chart(page, "tolerance-chart")) == 3
        assert [page.is_visible(f"#{part}-chart") for part in ("tolerance", "class-tolerance")] == [True, True]
        for part in ("deviation", "class-deviation"):
            assert not page.is_visible(f"#{part}-chart") and not page.is_visible(f"#{part}-caption")
        for host, rows in (("projection-data", 3), ("projected-classes-data", 4), ("projected-data", 1)):
            marked = [text for text in rows_of_table(page, host) if "(constant)" in text]
            assert len(marked) == rows and all("model_2" in text for text in marked)


@pytest.mark.parametrize(
    ("host", "first", "lines"),
    [
        ("groups-data", ["model_0", "side", "left", "0.5", "0.46", "0.54"], 15),
        ("fairness-data", ["model_0", "side", "dp", "0.1", "0.07", "0.13"], 24),
        ("projection-data", ["model_0", "z0", "0.9", "0.87", "0.93", "0.05"], 9),
        ("projected-data", ["model_0", "0.8"], 3),
        ("cells-data", ["model_0", "side", "left", "0", "0.5", "0.46", "0.54", "50"], 60),
        ("projected-classes-data", ["model_0", "0", "0.8", "0.77", "0.83", "0.1"], 12),
    ],
)
def test_every_table_behind_is_saved_with_all_rows(page, host, first, lines):
    page.focus(f"#{host} summary")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#{host} tbody tr")
    with page.expect_download() as download:
        page.click(f"#{host} button.save")
    rows = list(csv.reader(download.value.path().read_text(encoding="utf-8").splitlines()))[1:]
    found = [text if not text.replace(".", "").isdigit() else f"{float(text):.9g}" for text in rows[0]]
    assert found[: len(first)] == first and len(rows) == lines
    assert page.locator(f"#{host} tbody tr").count() == lines


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_fits_its_window_and_keeps_a_screenshot(browser, path, artefacts, width, scheme):
    with opened(browser, path, width=width, color_scheme=scheme) as page:
        for chart in CHARTS:
            rows_of_chart(page, chart)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.locator("#groups").screenshot(path=artefacts / f"groups-{width}-{scheme}.png")


def test_keyboard_reaches_the_controls(page):
    page.focus("#grouped-model")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "attribute"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("dashboard.state.attribute") == 0


def test_hostile_names_of_groups_stay_text(browser, tmp_path):
    made = audit_for_page(**SETTINGS)
    made.tables.measures.update(grouped_tables(made.audit, HOSTILE, ["</script><b>"]))
    path = tmp_path / "hostile.html"
    path.write_text(page_of(made), encoding="utf-8")
    with opened(browser, path) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a name was executed: {dialog.message}"))
        assert "<script>alert(1)</script>" in rows_of_chart(page, "groups-chart")[0]["label"]
        assert rows_of_chart(page, "tolerance-chart")[0]["label"] == "</script><b>"
        assert page.locator("img").count() == 0
