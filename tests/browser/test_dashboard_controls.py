"""Every control of the dashboard changes what it should, to the value that gfscore computes."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dashboard_pages import audit_for_page, enter, headings, opened, page_of, ranking, rows_of_chart
from gfscore.audit.verdicts.gate_rules import verdict_of
from gfscore.core.numbers import interval, lower_bound, number, upper_bound
from gfscore.statistics.classes import ClassValues
from gfscore.statistics.ranking import ranks, spearman
from gfscore.tables.parquet_tables import frame_of
from gfscore.workflow.catalogue import CATALOGUE
from made import intervals, metric
from synthetic import LAM, synthetic_audit

SETTINGS = {"models": 6, "classes": 10, "per_class": 60, "weak_class": 3, "permutations": 9}
SCALE_OF_TAU = (0.05, 0.2, 0.4)


@pytest.fixture(scope="module")
def made():
    return audit_for_page(**SETTINGS)


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("dashboard") / "dashboard.html"
    path.write_text(page_of(made), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, path):
    with opened(browser, path) as page:
        yield page


def values_of(made, measure="great-softmax"):
    rows = made.audit.of("class_scores", measure)
    return {model: part.sort_values("class_index") for model, part in rows.groupby("model", sort=False)}


def shown(page, *columns):
    """Model -> the cells of some columns, as the page prints them."""
    titles = [title.rstrip(" ▲▼") for title in headings(page)]
    return {row[0][0]: [row[titles.index(column)] for column in columns] for row in ranking(page)}


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_ranking_at_lambda_equals_gfscore_to_the_last_printed_digit(page, made, lam):
    values = values_of(made)
    enter(page, "lambda", lam)
    scores = {model: metric("fp", part["value"], lam=lam) for model, part in values.items()}
    places = dict(zip(scores, len(scores) + 1 - ranks(list(scores.values())), strict=True))
    before = dict(
        zip(
            scores,
            len(scores) + 1 - ranks([metric("fp", part["value"], lam=0) for part in values.values()]),
            strict=True,
        )
    )
    rows = shown(page, "Place", "FP")
    assert list(rows) == sorted(scores, key=places.get)
    for model, part in values.items():
        box = intervals(part["low"], part["high"], n=part["n"], lam=lam)["fp"]
        place, penalised = rows[model]
        assert penalised == [number(scores[model]), interval(*box, highest=np.sqrt(np.pi / 2))]
        assert place[0] == f"{places[model]:g}"
        moved = before[model] - places[model]
        assert place[1].startswith(f"λ = 0: {before[model]:g}") and ("▲" in place[1]) == (moved > 0)


@pytest.mark.parametrize("tau", SCALE_OF_TAU)
def test_verdicts_at_tau_equal_those_of_the_gate(page, made, tau):
    judged = synthetic_audit(**SETTINGS, at_least=tau, calibrated=False).verdict["rules"][0]["models"]
    enter(page, "tau", tau)
    rows = shown(page, f"WCR ≥ {tau}")
    assert {model: cells[0][0].split()[-1] for model, cells in rows.items()} == {
        model["model"]: model["verdict"] for model in judged
    }
    cells = rows_of_chart(page, "heatmap-chart")
    glyphs = {"PASS": "", "FAIL": "×", "INCONCLUSIVE": "?"}
    expected = {
        (model, row.class_name): glyphs[verdict_of({"at_least": tau}, row.low, row.high)]
        for model, part in values_of(made).items()
        for row in part.itertuples()
    }
    assert {(cell["model"], cell["class"]): cell["glyph"] for cell in cells} == expected
    assert f"{list(expected.values()).count('×')} of 60 class values are surely below" in page.inner_text(
        "#tau-takeaway"
    )


def test_the_three_thresholds_give_different_verdicts(made):
    verdicts = [synthetic_audit(**SETTINGS, at_least=tau, calibrated=False).verdict["verdict"] for tau in SCALE_OF_TAU]
    assert len(set(verdicts)) > 1


def marks(page):
    """What the page says about every class value at tau: glyphs of the heatmap, words of all tooltips."""
    cells = rows_of_chart(page, "heatmap-chart")
    return {cell["glyph"] for cell in cells}, {row["verdict"] for row in cells + rows_of_chart(page, "model-chart")}


def test_without_a_rule_on_the_measure_nothing_is_judged_until_tau_is_chosen(page):
    assert "Gate" in headings(page) and "WCR ≥ 0.05" in headings(page)
    page.select_option("#measure", "clean")
    assert "Gate (great-softmax)" in headings(page)
    assert not [title for title in headings(page) if title.startswith("WCR ")]
    assert marks(page) == ({""}, {""})
    assert page.input_value("#tau-number") == "" and page.get_attribute("#tau", "aria-valuetext") == "not chosen"
    assert "choose τ above" in page.inner_text("#tau-takeaway")
    assert "τ" not in page.inner_text("#model-note")
    # the panels of all measures, in which nothing is judged
    page.wait_for_selector("#measures-grid figure:last-child svg")
    assert page.locator("#measures-grid [aria-label*='value:']").count()
    assert page.locator("#measures-grid [aria-label*='τ']").count() == 0
    page.click("#heatmap-data summary")
    assert "at τ" not in page.inner_text("#heatmap-data thead")
    enter(page, "tau", 0.5)
    assert "WCR ≥ 0.5" in headings(page) and "at τ" in page.inner_text("#heatmap-data thead")
    glyphs, words = marks(page)
    assert glyphs > {""} and "" not in words and "At τ = 0.5" in page.inner_text("#tau-takeaway")
    page.focus("#measure")
    page.select_option("#measure", "great-softmax")
    assert "Gate" in headings(page) and page.input_value("#tau-number") == "0.05"


@pytest.mark.parametrize(("fragment", "column"), [("", None), ("&tau=0", "WCR ≥ 0"), ("&tau=0.5", "WCR ≥ 0.5")])
def test_an_address_keeps_tau_on_a_measure_without_a_rule(browser, path, fragment, column):
    with opened(browser, path, fragment=f"#measure=clean{fragment}") as page:
        assert [title for title in headings(page) if title.startswith("WCR ")] == ([column] if column else [])


@pytest.mark.parametrize("step", [0, 20, 41])
def test_temperature_shows_the_swept_scores(page, made, step):
    page.evaluate(
        "step => { const slider = document.getElementById('t'); slider.value = step; slider.dispatchEvent(new Event('input')); }",
        step,
    )
    t = page.evaluate("dashboard.state.t")
    rows = shown(page, "FP", "Class mean", "RDI", "NRGC")
    for name, curves in made.sweeps.items():
        values = ClassValues(curves.n, curves(np.array([t]))[0], None)
        expected = [metric(name, values.mean, lam=LAM) for name in ("fp", "class_mean", "rdi", "nrgc")]
        # No interval stands beside a value at a temperature that was looked for.
        assert rows[name.split("/")[1]] == [[number(value)] for value in expected]
    assert "no interval" in page.inner_text("#ranking-note")
    assert {cells[0][0] for cells in shown(page, "Gate").values()} == {"–"}
    page.click("#t-one")
    assert page.evaluate("dashboard.state.t") == 1
    assert "–" not in {cells[0][0] for cells in shown(page, "Gate").values()}


def test_measure_changes_every_view(page, made):
    page.select_option("#measure", "clean")
    rows = shown(page, "Class mean")
    assert {model: cells[0][0] for model, cells in rows.items()} == {
        model: number(part["value"].mean()) for model, part in values_of(made, "clean").items()
    }
    cells = {(cell["model"], cell["class"]): cell["value"] for cell in rows_of_chart(page, "heatmap-chart")}
    part = values_of(made, "clean")["model_0"]
    assert [cells["model_0", name] for name in part["class_name"]] == list(part["value"])
    assert page.is_hidden("#temperature-control")


@pytest.mark.parametrize("metric", ["nrgc", "wcr", "rdi_over_mean"])
def test_disparity_metric_changes_the_relation(page, made, metric):
    summary = made.audit.of("model_summary")
    page.select_option("#metric", metric)
    rho = number(abs(spearman(summary["value"], summary[metric])))
    assert rho in page.inner_text("#scatter-takeaway")
    assert {row["model"]: row["y"] for row in rows_of_chart(page, "scatter-chart")} == dict(
        zip(summary["model"], summary[metric], strict=True)
    )


def test_two_models_show_paired_differences_in_either_order(page):
    page.select_option("#a-select", "0")
    page.select_option("#b-select", "1")
    assert "model_0 is significantly better on" in page.inner_text("#pair-takeaway")
    forth = {row["class"]: row["difference"] for row in rows_of_chart(page, "pair-chart")}
    page.select_option("#a-select", "1")
    page.select_option("#b-select", "0")
    back = {row["class"]: row["difference"] for row in rows_of_chart(page, "pair-chart")}
    assert forth == {name: -value for name, value in back.items()}
    # the line of no difference
    assert page.locator("#pair-chart .layer_0_marks line").count() == 1
    page.select_option("#b-select", "3")
    assert page.inner_text("#pair-takeaway") == "These two models were not compared sample by sample"


def test_search_order_and_model(page, made):
    page.fill("#find", "7")
    assert {cell["class"] for cell in rows_of_chart(page, "heatmap-chart")} == {"7"}
    page.fill("#find", "no such class")
    assert "0 classes of 10 match" in page.inner_text("#find-note")
    page.fill("#find", "")
    page.select_option("#order", "given")
    assert [cell["class"] for cell in rows_of_chart(page, "heatmap-chart")][:10] == [str(index) for index in range(10)]
    page.select_option("#model-select", "2")
    part = values_of(made)["model_2"]
    bars = {row["class"]: row["value"] for row in rows_of_chart(page, "model-chart")}
    assert bars == dict(zip(part["class_name"], part["value"], strict=True))


def test_a_view_can_be_shared_by_its_address(browser, path, page):
    enter(page, "lambda", 0.77)
    page.select_option("#measure", "great-sigmoid")
    page.select_option("#order", "name")
    page.wait_for_function("location.hash.includes('order=name')")
    fragment = page.evaluate("location.hash")
    with opened(browser, path, fragment=fragment) as other:
        assert other.input_value("#lambda-number") == "0.77"
        assert other.input_value("#measure") == "great-sigmoid"
        assert ranking(other) == ranking(page)
    with opened(browser, path, fragment="#measure=nonsense&lambda=-3&model=99&t=abc") as other:
        assert other.input_value("#lambda-number") == "0.5"


def test_sorting_and_download_keep_the_numbers(page, made):
    page.click("#ranking-table thead button:has-text('RDI')")
    summary = made.audit.of("model_summary").sort_values("rdi")
    assert [row[0][0] for row in ranking(page)] == list(summary["model"])
    with page.expect_download() as download:
        page.click("#ranking-csv")
    with download.value.path().open(encoding="utf-8", newline="") as file:
        rows = {row["Model"]: row for row in csv.DictReader(file)}
    for row in summary.itertuples():
        assert float(rows[row.model]["rdi"]) == row.rdi
        assert float(rows[row.model]["wcr_low"]) == row.wcr_low


def test_numbers_are_printed_as_gfscore_prints_them(page):
    rng = np.random.default_rng(0)
    values = [*(10.0 ** rng.uniform(-7, 5, 400) * rng.choice([-1, 1], 400)), 0.0, 1.0, 0.29, 0.9996, 0.99951, 12345.0]
    values += [0.5, 0.0001, 9.999e-5, 1.2533141373155, 1 - 1e-9, 100.0, 999.6]
    for name, function in (("number", number), ("lowerBound", lower_bound), ("upperBound", upper_bound)):
        printed = page.evaluate("([name, values]) => values.map((value) => dashboard[name](value))", [name, values])
        assert printed == [function(value) for value in values]
    ends = [value for value in rng.uniform(1.24, 1.2533141373155, 50)]
    printed = page.evaluate("values => values.map((value) => dashboard.upperBound(value, 1.2533141373155))", ends)
    assert printed == [upper_bound(value, highest=1.2533141373155) for value in ends]


def test_the_commonest_mistake_is_that_of_the_largest_share_of_its_class(browser, made, tmp_path):
    # More samples of class 0 are confused than of class 1, of which half are.
    rows = [(0, 0, 950), (0, 1, 50), (1, 1, 10), (1, 2, 10), *((index, index, 9) for index in range(2, 10))]
    confusions = frame_of(
        CATALOGUE["confusions"],
        [
            {key: model[key] for key in ("dataset", "threat", "model")}
            | {"measure": "clean"}
            | dict(zip(("true_index", "predicted_index", "count"), row, strict=True))
            for model in made.audit.models
            for row in rows
        ],
    )
    changed = SimpleNamespace(**vars(made) | {"tables": replace(made.tables, confusions=confusions)})
    path = tmp_path / "dashboard.html"
    path.write_text(page_of(changed), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.inner_text("#confusion-takeaway") == (
            f"Commonest mistake of {page.inner_text('#model-select option:checked')} under clean: class 1 taken for "
            "class 2, 10 of its 20 samples; 60 mistakes in all"
        )


@pytest.mark.parametrize(
    ("rhos", "words"),
    [
        ([], "The measures cannot be compared over classes"),
        ([0.5], "a and b order the classes of m with a Spearman correlation of +0.500 over 10 classes"),
        ([0.5, 0.5], "Every two measures agree alike on which classes of m are weak (Spearman +0.500 over 10 classes)"),
        ([0.2, 0.5], "a and b agree least on which classes of m are weak (Spearman +0.200 over 10 classes)"),
    ],
)
def test_measures_that_agree_alike_are_not_told_apart(page, rhos, words):
    pairs = [{"first": "a", "second": "b", "rho": rho, "n": 10} for rho in rhos]
    assert page.evaluate("(pairs) => agreementOf(pairs, 'm')", pairs) == words
