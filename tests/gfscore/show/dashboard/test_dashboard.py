"""The dashboard as a file: its numbers, its size, what it leaves out, and that no name gets out of its place."""

import base64
import json
import re

import altair as alt
import numpy as np
import pytest

from dashboard_pages import audit_for_page, page_of
from gfscore.core.files import read_json, write_json
from gfscore.show.dashboard.charts import charts
from gfscore.show.dashboard.index import render_index
from gfscore.show.dashboard.packing import packed, plain
from gfscore.show.dashboard.rendering import in_script
from gfscore.show.dashboard.shared import PARTS, shared_parts
from gfscore.show.report.comparison import sensitivity_views
from made import gate_rule
from synthetic import synthetic_audit

MEGABYTE = 1_000_000
SMALL = {"models": 2, "classes": 3, "per_class": 20, "permutations": 9, "calibrated": False}


@pytest.fixture(scope="module")
def made():
    return audit_for_page(models=17, classes=10, per_class=20, permutations=9)


def contents(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def unpacked(array):
    return np.frombuffer(base64.b64decode(array["f64"]), dtype="<f8").reshape(array["shape"])


def test_arrays_survive_packing_to_the_last_bit():
    array = np.array([[1 / 3, np.nan], [-0.0, 1e-300]])
    assert unpacked(packed(array)).tobytes() == array.tobytes()
    assert plain({"a": [np.float64(np.nan), np.int64(3), np.bool_(True)], "b": (np.inf,)}) == {
        "a": [None, 3, True],
        "b": [None],
    }


def test_script_data_cannot_end_their_element():
    value = ["</script><!--", "\u2028", "é"]
    text = in_script(value)
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == value


def test_page_holds_the_numbers_of_the_tables(made):
    page = page_of(made)
    assert "summarised on 1 January 2026" in page
    data = contents(page)
    scores = made.audit.of("class_scores").sort_values(["model", "class_index"])
    order = sorted(range(17), key=lambda index: data["models"][index]["label"])
    for column in ("value", "low", "high", "n"):
        grid = unpacked(data["scores"]["great-softmax"][column])[order]
        assert np.array_equal(grid.ravel(), scores[column])
    assert data["gate"][0]["models"][3]["low"] == made.audit.verdict["rules"][0]["models"][3]["low"]


def test_a_mean_score_is_called_refuted_only_where_every_sample_was_broken():
    made = audit_for_page(**SMALL)
    table = made.tables.measures["falsification"]
    for censored, said in ((0, "refuted"), (7, "not settled")):
        known = {"mean_score": 0.9, "mean_distance": 0.5, "p_mean": 0.001}
        made.tables.measures["falsification"] = table.assign(**known, censored=censored)
        ((rows,),) = (found.values() for found in contents(page_of(made))["falsification"].values())
        assert [(row["mean"], row["censored"]) for row in rows] == [(said, censored)] * 2


def test_means_have_the_intervals_of_their_measures_where_they_are_of_the_same_samples():
    made = audit_for_page(models=2, classes=3, per_class=20, permutations=9, measures=("clean", "great-softmax"))
    summary = made.tables.of("model_summary", "clean")
    rows = made.tables.measures["falsification"]
    distances = summary["value"].add([0, 0.01]).to_numpy()
    made.tables.measures["falsification"] = rows.assign(distances="clean", mean_distance=distances)
    first, second = contents(page_of(made))["falsification"]["great-softmax"]["clean"]
    ends = [summary[f"value_alone_{end}"].iloc[0] for end in ("low", "high")]
    assert [first["distance_low"], first["distance_high"]] == ends
    assert first["score_low"] < first["mean_score"] < first["score_high"]
    assert second["distance_low"] is second["distance_high"] is None


def test_the_verdict_says_what_the_scale_of_the_logits_does_to_it():
    """A threshold that a model crosses when its logits are scaled is a reader's business, as in the report."""
    made = audit_for_page(models=4, classes=5, per_class=40, permutations=9)
    verdict = made.audit.verdict
    words = sensitivity_views(made.tables.sensitivity, verdict["rules"])["great-softmax"]["gate"]
    sentence = words[verdict["rules"][0]["words"]]
    assert "the measured worst-class mean runs from" in sentence
    assert f"{sentence}." in verdict_section(page_of(made))


def verdict_section(page):
    return " ".join(page.split('id="verdict"')[1].split("</section>")[0].split())


def test_models_left_out_are_named_with_their_reason():
    excluded = [{"model": "Linf/<b>Bad</b>", "reason": "measured clean accuracy 40.00%, published 94.00%"}]
    section = verdict_section(page_of(audit_for_page(**SMALL, excluded=excluded)))
    left_out = "Left out of the verdict and of every number on this page"
    assert f"{left_out}: Linf/&lt;b&gt;Bad&lt;/b&gt;. {excluded[0]['reason']}." in section
    assert left_out not in verdict_section(page_of(audit_for_page(**SMALL)))


def test_warnings_of_models_stand_above_the_rules_and_beside_their_equality():
    warned = [{"model": "none/<b>0</b>", "reason": "may be guessing (clean accuracy 0.1)"}]
    page = page_of(audit_for_page(**SMALL, warned=warned, guessing=["none/model_0", "none/model_1"]))
    section = verdict_section(page)
    warning = f"<strong>none/&lt;b&gt;0&lt;/b&gt;:</strong> {warned[0]['reason']}."
    assert section.index(warning) < section.index("Rule:")
    assert "model_0 [may be guessing]" in page and "model_1 [may be guessing]" in page
    assert "guessing" not in page_of(audit_for_page(**SMALL))


@pytest.mark.parametrize(
    ("empty_class", "planned", "remedy"),
    [
        (2, 1, ": samples of class 2<"),
        (None, 2, " more in all)<"),
        (None, 1, " samples per class in a new audit<"),
    ],
)
def test_an_undecided_model_is_told_what_would_settle_it(empty_class, planned, remedy):
    """A class without samples leaves a model open whatever the other classes gain, so that class is named.

    Further samples settle nothing after the last planned look, a new audit does.
    """
    rules = [gate_rule("great-softmax", at_least=0.6, looks={"planned": planned, "this": 1})]
    section = verdict_section(page_of(audit_for_page(**SMALL, empty_class=empty_class, rules=rules)))
    assert ("in a new audit" in section) == ("in a new audit" in remedy)
    assert "INCONCLUSIVE" in section
    assert remedy in section and "no number of samples" not in section


@pytest.mark.parametrize(("models", "more"), [(5, 0), (8, 3)])
def test_every_undecided_model_is_listed_beyond_five_behind_their_number(models, more):
    rules = [gate_rule("great-softmax", at_least=0.6)]
    made = audit_for_page(**SMALL | {"models": models, "per_class": 4}, rules=rules)
    verdicts = [model["verdict"] for model in made.audit.verdict["rules"][0]["models"]]
    assert verdicts == ["INCONCLUSIVE"] * models
    section = verdict_section(page_of(made))
    assert section.count("<li>") == models and ("more undecided" in section) == (more > 0)
    if more:
        assert f"<summary>{more} more undecided</summary>" in section
        assert section.split("<summary>")[1].count("<li>") == more


def test_the_page_names_how_many_models_and_which_version():
    made = audit_for_page(**SMALL)
    facts = " ".join(page_of(made).split('class="facts">')[1].split("</p>")[0].split())
    assert facts.startswith("2 models; toy: ") and f"gfscore {made.audit.verdict['software']['version']};" in facts


@pytest.mark.parametrize(("method", "words"), [("clopper_pearson", "Clopper-Pearson"), ("some_method", "some method")])
def test_methods_of_intervals_are_called_what_the_report_calls_them(method, words):
    made = audit_for_page(**SMALL)
    summary = made.tables.model_summary
    summary.loc[summary["measure"] == "clean", "interval"] = method
    assert {entry["name"]: entry["interval"] for entry in contents(page_of(made))["measures"]}["clean"] == words


def test_one_file_of_bounded_size_that_loads_nothing(made):
    page = page_of(made)
    assert len(page.encode()) < 4 * MEGABYTE
    assert page == page_of(made)
    assert not re.search(r'<(?:script|img|iframe)[^>]+src=|<link|@import|url\(["\']?http', page.split("<script>")[0])
    assert "default-src 'none'" in page


def test_views_without_tables_are_absent():
    made = audit_for_page(models=2, classes=3, per_class=20, permutations=9, calibrated=False)
    page = page_of(made, sweeps=None, costs=None)
    data = contents(page)
    assert data["sweep"] is data["calibration"] is data["costs"] is None


def test_class_without_samples_is_a_gap_and_not_a_zero():
    made = audit_for_page(models=2, classes=4, per_class=20, permutations=9, empty_class=2, calibrated=False)
    grid = unpacked(contents(page_of(made))["scores"]["great-softmax"]["value"])
    assert np.isnan(grid[:, 2]).all() and np.isfinite(np.delete(grid, 2, axis=1)).all()


def test_imagenet_classes_are_named():
    made = audit_for_page(
        models=2, classes=2, per_class=20, permutations=9, calibrated=False, class_names=["n04525038", "n12057211"]
    )
    names = [(entry["label"], entry["name"]) for entry in contents(page_of(made))["classes"]]
    assert names == [("velvet", "n04525038"), ("yellow lady's slipper", "n12057211")]


def test_hostile_names_are_escaped():
    made = audit_for_page(models=2, classes=3, per_class=20, permutations=9, model_names=["<b>", "</script>"])
    page = page_of(made, title="<i>title", contact="<u>me", provenance={"<h>": {"<k>": "<v>"}})
    for name in ("<i>title", "<u>me", "<h>", "<k>", "<v>", ">&lt;b&gt;</b>"):
        assert name not in page
    assert "&lt;i&gt;title" in page


def test_charts_take_their_data_and_colours_from_the_page():
    for name, specification in charts().items():
        text = json.dumps(specification)
        assert "http" not in text.replace(specification["$schema"], ""), name
        assert {"ink", "accent"} <= {parameter["name"] for parameter in specification["params"]}, name
        assert "values" not in text.replace('"data": {"values"', ""), name


def test_charts_fit_the_schema():
    for name, specification in charts().items():
        assert alt.Chart.from_dict(specification, validate=True), name


def test_parts_made_beforehand_give_the_same_page(made, tmp_path):
    write_json(tmp_path / "parts.json", shared_parts())
    parts = read_json(tmp_path / "parts.json")
    assert set(parts) >= set(PARTS) and page_of(made, shared=parts) == page_of(made)


def test_index_links_every_audit():
    audit = synthetic_audit(models=2, classes=3, per_class=20, permutations=9, calibrated=False, measures=("clean",),
                            rules=[gate_rule("clean", at_least=0.1)])  # fmt: skip
    page = render_index({"a b": audit.verdict, "c": audit.verdict}, titles={"a b": "<One>", "c": "Two"})
    assert 'href="audits/a%20b/dashboard.html"' in page and 'href="audits/c/report.html"' in page
    assert "&lt;One&gt;" in page and "<One>" not in page
    assert audit.verdict["verdict"] in page


def test_groups_and_projection_are_absent_without_their_tables():
    page = page_of(audit_for_page(**SMALL))
    data = contents(page)
    assert data["groups"] is data["projection"] is None
    assert 'id="groups"' not in page and 'href="#groups"' not in page


@pytest.mark.parametrize(
    ("left_out", "heading", "absent"),
    [
        ("group", "Projection", "groups-chart"),
        ("projection", "Groups", "tolerance-chart"),
        ("-", "Groups and projection", "-"),
    ],
)
def test_groups_and_projection_show_what_there_is(left_out, heading, absent):
    made = audit_for_page(grouped=True, **SMALL)
    for name in [name for name in made.tables.measures if name.startswith(left_out)]:
        del made.tables.measures[name]
    page = page_of(made)
    assert f'<h2 id="groups-heading">{heading}</h2>' in page
    assert f'id="{absent}"' not in page


def test_groups_hold_the_numbers_of_the_tables():
    made = audit_for_page(grouped=True, **SMALL)
    data, scores = contents(page_of(made)), made.tables.measures["group_scores"]
    rows = scores[(scores["class_index"] == -1) & (scores["measure"] == "clean")]
    assert [row["value"] for row in data["groups"]["values"]["clean"]["rows"]] == list(rows["value"])
    gap = data["groups"]["values"]["clean"]["gaps"][0]
    assert (gap["lowest"], gap["highest"], gap["at"], gap["model"]) == ("left", "right", 0, 0)
    assert gap["gap"] == pytest.approx(0.05) and gap["gap_low"] == 0 and gap["gap_high"] == pytest.approx(0.13)
    worst = data["groups"]["metrics"]["clean"]["rows"][0]
    assert worst["worst"] == 2 * worst["value"] == 0.2
    assert data["projection"]["models"][1]["tolerance"] == pytest.approx(0.81)
    cells = unpacked(data["groups"]["cells"]["clean"]["value"])
    assert cells.shape == (2, 5, 3) and cells[1, 0] == pytest.approx([0.51, 0.49, 0.47]) and np.isnan(cells[1, 4, 2])
    assert unpacked(data["projection"]["classes"]["tolerance"])[1] == pytest.approx([0.81, 0.8, 0.79])
    assert data["projection"]["effects"]["z0"] == {"trait": "brightness", "shift": -0.5}
