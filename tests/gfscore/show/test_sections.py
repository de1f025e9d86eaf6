"""Sections of the page: what is said beside a picture."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gfscore import audit_values
from gfscore.audit.findings.finding import RANKED
from gfscore.audit.step_params import TrainedModel
from gfscore.audit.tables import TABLES, AuditTables
from gfscore.audit.verdicts.findings import with_findings
from gfscore.core import numbers
from gfscore.show.charts import CHARTS
from gfscore.show.page import ranking
from gfscore.show.page.elements import AS_FAILURES, ModelsAndClasses, text
from gfscore.show.page.first_screen import evidence_by_class, facts, first_screen, strip_of_models
from gfscore.show.page.index import render_index
from gfscore.show.page.sections import SAID_BY, sentences_beside
from gfscore.show.page.sections.contents import Contents
from gfscore.show.page.sections.groups import of_groups
from gfscore.show.page.sections.results import _numbers, of_certainty, of_classes, of_models
from gfscore.show.page.sections.trust import of_trust
from gfscore.show.page.tracks import Track
from gfscore.statistics.margins import SCALE
from gfscore.tables.parquet_tables import typed_frame
from helpers.pages import audit_for_page
from helpers.synthetic_audits import synthetic_audit


@pytest.mark.parametrize(
    ("name", "measure", "said"),
    [
        ("group_scores", "clean", []),
        ("group_scores", "attack", ["so"]),
        ("corruption_by_class", "clean", ["so"]),
        (None, None, ["so"]),
    ],
)
def test_what_the_title_of_a_picture_says_is_not_said_beside_it(name, measure, said):
    finding = SimpleNamespace(kind="groups_differ", subject={"measure": "clean"}, sentence="so")
    picture = SimpleNamespace(
        chart=SimpleNamespace(name=name), subject=SimpleNamespace(measure=measure), words=SimpleNamespace(title="is")
    )
    assert sentences_beside(picture if name else None, [finding]) == said
    picture.words.title = "so"
    assert sentences_beside(picture, [finding]) == []


def test_a_finding_and_the_chart_that_says_it_stand_in_one_section():
    for kind, name in SAID_BY.items():
        assert RANKED[kind][1] == CHARTS[name].section, kind


def test_rows_over_classes_keep_their_names():
    """The mean over classes and the worst of them have one index."""
    frame = pd.DataFrame({"class_index": [0, -1, -1, -1], "class_name": ["cat", "macro", "worst", None]})
    empty = pd.DataFrame()
    tables = AuditTables(empty, empty, empty, others={"group_metrics": frame})
    rows = Contents.rows(SimpleNamespace(tables=tables), "group_metrics")
    assert list(rows["class"].fillna("")) == ["cat", "macro", "worst", ""]


def contents_of(made, *, tables, verdict):
    """A page's contents without charts."""
    return Contents(
        tables=tables,
        verdict=verdict,
        measures=made.audit.named,
        measure="great-softmax",
        models=[],
        charts=[],
        fp_lambda=0.5,
        provenance={},
        costs=None,
        published_samples=None,
        screen_sentences=[],
    )


def test_models_of_one_name_are_told_apart_by_their_threat_model():
    made = audit_for_page(models=2, classes=3, calibrated=False)
    threats = {"model_0": "l2", "model_1": "linf"}
    summary = made.tables.model_summary
    summary = summary.assign(threat=summary["model"].map(threats), model="net")
    pairs = made.tables.named("model_comparisons")
    for side in ("first", "second"):
        pairs = pairs.assign(**{f"{side}_threat": pairs[f"{side}_model"].map(threats), f"{side}_model": "net"})
    (rule,) = made.audit.verdict.rules
    models = []
    for model in rule.models:
        changes = {"threat": threats[model.model], "model": "net", "value": 0.5, "value_most": 0.75, "high": SCALE}
        models.append(model.model_copy(update=changes))
    verdict = made.audit.verdict.model_copy(update={"rules": [rule.model_copy(update={"models": models})]})
    tables = replace(made.tables, model_summary=summary, others=made.tables.others | {"model_comparisons": pairs})
    contents = contents_of(made, tables=tables, verdict=verdict)
    tables = {detail.table.file: detail.table.rows for detail in of_certainty(contents) if detail is not None}
    assert {row[0] for row in tables["verdict"]} == {"l2/net", "linf/net"}
    # Both ends of what is known of a worst class; no bound beyond the end of the range.
    assert all(row[2] == "0.500 to 0.750" and row[3].endswith(" to 1.2533") for row in tables["verdict"])
    assert tables["model_comparisons"][0][:2] == ["l2/net", "linf/net"]


@pytest.mark.parametrize("most", [0.0, 0.1])
def test_tables_of_smallest_values_say_how_undecided_samples_count(most):
    made = audit_for_page(models=2, classes=3, calibrated=False)
    scores = made.tables.class_scores
    tables = replace(made.tables, class_scores=scores.assign(value_most=scores["value"] + most))
    contents = contents_of(made, tables=tables, verdict=made.audit.verdict)
    saying = set()
    for detail in (*of_models(contents), *of_classes(contents), *of_certainty(contents)):
        for table in [] if detail is None else [detail.table, *detail.tables]:
            if table is not None and AS_FAILURES in table.caption:
                saying.add(table.name)
            if table is not None and table.name == "Classes":
                assert ("At most" in [column.title for column in table.columns]) == (most > 0)
    expected = {"Classes by vulnerability", "Noise floor", *(f"Models by {name}" for name in made.audit.named)}
    assert saying == (expected if most else set())
    title = ranking.ranking_data(tables, ModelsAndClasses(scores), made.audit.named, 0.5)["clean"]["title"]
    assert title.endswith("undecided samples counted as failures") == (most > 0)


@pytest.mark.parametrize(
    ("attribute", "title"), [(None, "Worst class"), ("age", "Worst class or group")], ids=["classes", "groups"]
)
def test_the_worst_class_or_group_of_a_verdict_is_called_so_and_may_be_not_settled(attribute, title):
    made = audit_for_page(models=1, classes=3, calibrated=False)
    (rule,) = made.audit.verdict.rules
    models = [rule.models[0].model_copy(update={"worst_class": None})]
    rule = rule.model_copy(update={"attribute": attribute, "models": models})
    contents = contents_of(made, tables=made.tables, verdict=made.audit.verdict.model_copy(update={"rules": [rule]}))
    (table,) = (detail.table for detail in of_certainty(contents) if detail and "decided" in detail.summary)
    cells = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    assert cells[title] == "not settled"


def test_no_rdi_is_said_to_show_that_the_measure_cannot_have():
    made = audit_for_page(models=2, classes=3, calibrated=False)
    summary = made.tables.model_summary
    detectable = np.where(summary["model"] == "model_0", SCALE - 0.01, SCALE + 0.01)
    tables = replace(made.tables, model_summary=summary.assign(rdi_detectable=detectable))
    contents = contents_of(made, tables=tables, verdict=made.audit.verdict)
    (detail,) = (detail for detail in of_certainty(contents) if detail is not None and "chance" in detail.summary)
    assert [row[-1] for row in detail.table.rows] == [numbers.number(SCALE - 0.01), numbers.MISSING]


@pytest.mark.parametrize(("threats", "shown"), [(["none", "none"], None), (["none", "Linf"], ["–", "Linf"])])
def test_no_threat_model_stands_on_the_page_where_none_was_stated(threats, shown):
    made = audit_for_page(models=2, classes=3, calibrated=False)
    summary = made.tables.model_summary
    names = dict(zip(summary["model"].unique(), threats, strict=True))
    tables = replace(made.tables, model_summary=summary.assign(threat=summary["model"].map(names)))
    contents = contents_of(made, tables=tables, verdict=made.audit.verdict)
    details = {detail.summary: detail for detail in of_models(contents) if detail is not None}
    table = details["What each model is"].table
    titles = [column.title for column in table.columns]
    assert ("Threat model" in titles) == (shown is not None)
    if shown:
        assert [row[titles.index("Threat model")] for row in table.rows] == shown


def test_what_is_known_of_no_model_has_no_column():
    """No method, no architecture; NRGC of classes that are all 0 has bounds, but no value."""
    audit = synthetic_audit(models=2, classes=3, all_wrong=True, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    models = [TrainedModel(**model | {"method": None, "architecture": None}) for model in audit.models]
    contents = SimpleNamespace(tables=tables, measures=audit.named, measure="great-softmax", models=models)
    contents.published_samples = None
    contents.rows = lambda name: Contents.rows(contents, name)
    titles = [column.title for column in _numbers(contents, "great-softmax").columns]
    assert "NRGC" not in titles and titles[titles.index("RDI") + 1 :][:2] == ["Interval", "WCR"]
    contents.rows_of_measure = lambda name: Contents.rows_of_measure(contents, name)
    contents.table_details = lambda *given, **settings: Contents.table_details(contents, *given, **settings)
    details = {detail.summary: detail for detail in of_models(contents) if detail is not None}
    assert [column.title for column in details["What each model is"].table.columns] == ["Model", "Clean accuracy"]


@pytest.mark.parametrize(
    ("name", "shown"), [("", "–"), (None, "–"), (float("nan"), "–"), (" ", "(unnamed)"), ("a", "a")]
)
def test_a_cell_without_a_name_is_a_dash(name, shown):
    """As the measure of a step that belongs to none."""
    assert text(name) == shown


def test_agreement_over_classes_is_not_said_to_be_over_models():
    rows = {"over": "classes", "first": "clean", "second": "great-softmax", "n": 4, "rho": 0.8, "p": 0.3}
    rows |= {"dataset": "toy", "threat": "none", "model": "net"}
    made = audit_for_page(models=1, classes=4, calibrated=False)
    tables = replace(made.tables, others=made.tables.others | {"measure_agreement": pd.DataFrame([rows])})
    contents = SimpleNamespace(tables=tables)
    contents.rows = lambda name: Contents.rows(contents, name)
    contents.table_details = lambda *given, **settings: Contents.table_details(contents, *given, **settings)
    (detail,) = (detail for detail in of_trust(contents) if detail is not None and "agree" in detail.summary)
    assert "over the classes of a model" in detail.summary
    assert detail.table.rows[0][:3] == ["net", "clean", "great-softmax"]


def test_rows_of_two_measures_of_one_kind_are_told_apart():
    model = {"dataset": "toy", "threat": "none", "model": "net"}
    cls = {"class_index": 0, "class_name": "cat"}
    made = {
        "refutations": {"n": 9, "attacked": 9, "refuted": 0, "allowed": 1},
        "class_shares": {**cls, "n": 9, "robust": 5, "low": 0.2, "high": 0.9},
        "target_predictors": {"definition": "success", "rho_cfps": 0.5, "rho_miss_rate": 0.4},
        "class_errors": {**cls, "corruption": "fog", "severity": 1, "recall": 0.5},
    }
    frames = {}
    for name, row in made.items():
        frames[name] = typed_frame(TABLES[name], [model | row | {"measure": measure} for measure in "ab"])
    pairs = [{"training": "PGD", "n": 9, "adversarial": "pgd", "probabilistic": test} for test in "ab"]
    frames["training_methods"] = typed_frame(TABLES["training_methods"], [model | pair for pair in pairs])
    empty = pd.DataFrame()
    contents = SimpleNamespace(measure="clean", tables=AuditTables(empty, empty, empty, others=frames))
    contents.rows = lambda name: Contents.rows(contents, name)
    contents.table_details = lambda *given, **settings: Contents.table_details(contents, *given, **settings)
    details = [*of_trust(contents), *of_groups(contents)]
    tables = {detail.table.file: detail.table.rows for detail in details if detail is not None}
    assert set(tables) == set(frames)
    for rows in tables.values():
        assert len({tuple(row) for row in rows}) == 2


def test_a_class_without_samples_is_none_of_as_many_as_the_others():
    audit = synthetic_audit(models=1, classes=4, per_class=30, empty_class=2, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    shown = facts(tables, ModelsAndClasses(audit.class_scores), audit.verdict, "great-softmax")
    assert (shown["samples"], shown["classes"], shown["per_class"]) == ("90", 4, "0 to 30")


def test_a_line_that_crosses_the_threshold_of_a_model_that_passes_is_explained():
    size = {"models": 1, "classes": 10, "per_class": 60, "measures": ("clean",), "calibrated": False}
    first = synthetic_audit(**size)
    lowest = first.class_scores["low"].min()
    # The gate's bound is of each class alone, and nearer than the interval of all classes together.
    for threshold, crossed in ((lowest - 0.01, False), ((lowest + first.verdict.rules[0].models[0].low) / 2, True)):
        audit = synthetic_audit(**size, at_least=float(threshold))
        tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
        evidence = evidence_by_class(tables, audit.verdict, audit.named, ModelsAndClasses(audit.class_scores))
        assert (audit.verdict.verdict, evidence.crossed) == ("PASS", crossed)


def test_what_would_settle_undecided_models_is_said_once_on_the_first_screen():
    audit = synthetic_audit(models=4, classes=6, empty_class=2, calibrated=False)
    tables = AuditTables(audit.class_scores, audit.model_summary, audit.vulnerability)
    verdict = with_findings(audit.verdict, tables, audit.named)
    assert "undecided_models" in {finding.kind for finding in verdict.findings}
    screen = first_screen(tables, verdict, audit.named, ModelsAndClasses(audit.class_scores))
    assert screen.verdict.rules[0].settling
    assert "undecided_models" not in {finding.kind for finding in screen.findings}


@pytest.mark.parametrize("most", [0.0, 0.1])
def test_without_a_rule_the_worst_class_of_a_model_is_a_range_where_samples_are_undecided(most):
    made = audit_for_page(models=2, classes=3, calibrated=False)
    summary = made.tables.model_summary
    tables = replace(made.tables, model_summary=summary.assign(wcr_most=summary["wcr"] + most))
    verdict = made.audit.verdict.model_copy(update={"rules": []})
    strip = strip_of_models(tables, verdict, made.audit.named, ModelsAndClasses(made.tables.class_scores))
    assert {row.is_range for row in strip.rows} == {most > 0} and strip.ranges == ("band" in strip.about) == (most > 0)


def test_the_index_names_both_ends_of_a_worst_class():
    verdict = audit_for_page(models=2, classes=3, calibrated=False).audit.verdict
    (rule,) = verdict.rules
    models = [model.model_copy(update={"value": 0.5, "value_most": 0.75}) for model in rule.models]
    verdict = verdict.model_copy(update={"rules": [rule.model_copy(update={"models": models})]})
    assert "0.500 to 0.750" in render_index({"toy": verdict}, titles={"toy": "Toy"})


@pytest.mark.parametrize(
    ("band", "closed", "point"),
    [(None, False, 0.4), ((0, 0.4), False, 0.4), ((0.4, 0.7), True, None), ((0.4, 0.4), True, 0.4)],
)
def test_a_value_is_a_dot_unless_a_band_with_two_known_ends_shows_it(band, closed, point):
    track = Track("frog", "frog", 0.4, 0.1, 0.9, band=band, closed=closed)
    assert track.point == track.plain()["point"] == point


@pytest.mark.parametrize("undecided", [False, True])
def test_a_difference_says_how_samples_of_unknown_value_count(undecided):
    labels = np.repeat([0, 1], 60)
    known, low = np.ones(120), np.zeros(120)
    values = {"known": known, "open": (low, known if undecided else low)}
    audited = audit_values(values, labels, value_range=(0, 1))._audited
    tables = audited.tables(["comparisons", "model_comparisons"])
    index = ModelsAndClasses(tables.class_scores)
    differences = ranking.paired_differences(tables, audited.measure.name, index)
    note = ranking.pair_view(differences, index, 0, audited.measure.name).note
    assert (ranking.UNDECIDED in note) == undecided


def test_an_upper_bound_of_nrgc_is_that_of_all_classes_where_one_alone_may_be_the_worst():
    audit = synthetic_audit(models=1, classes=3, per_class=60, calibrated=False)
    summary = audit.model_summary.assign(worst_class_set=[["a"]] * len(audit.model_summary))
    tables = AuditTables(audit.class_scores, summary, audit.vulnerability)
    contents = SimpleNamespace(tables=tables, measures=audit.named)
    contents.rows = lambda name: Contents.rows(contents, name)
    table = _numbers(contents, "great-softmax")
    titles = [column.title for column in table.columns]
    row = summary[summary["measure"] == "great-softmax"].iloc[0]
    expected = numbers.interval(row["nrgc_low"], row["nrgc_high"])
    assert table.rows[0][titles.index("NRGC") + 1] == expected


def details_of_groups(frames):
    """Details of the section groups of a page about `score`."""
    empty = pd.DataFrame()
    scores = typed_frame(TABLES["class_scores"], [])
    contents = SimpleNamespace(measure="score", tables=AuditTables(scores, empty, empty, others=frames))
    contents.rows = partial(Contents.rows, contents)
    contents.table_details = partial(Contents.table_details, contents)
    return [detail for detail in of_groups(contents) if detail is not None]


def test_gaps_name_their_measure_and_fairness_metrics_say_where_samples_are_few():
    model = {"dataset": "toy", "threat": "none", "model": "net", "measure": "score", "attribute": "side"}
    cell = {"class_index": -1, "class_name": "all", "n": 50, "low": 0.2, "high": 0.9, "small": False}
    groups = [model | cell | {"group_index": index, "group": name, "value": 0.5} for index, name in enumerate("ab")]
    metrics = [model | {"class_name": "cat", "metric": "eopp", "value": 0.3, "small": few} for few in (True, False)]
    made = {"group_scores": groups, "group_metrics": metrics}
    details = details_of_groups({name: typed_frame(TABLES[name], rows) for name, rows in made.items()})
    tables = {detail.table.file: detail.table for detail in details}
    assert tables["group_scores"].rows[0][1] == "score"
    assert [row[-1] for row in tables["group_metrics"].rows] == ["yes", "no"]


@pytest.mark.parametrize(
    ("baseline", "ratio", "expected"),
    [
        (None, None, "relative to a baseline: the audit names none (corruption_baseline)"),
        ("none/excluded", None, "relative to a baseline, and none/excluded is left out of the audit"),
        ("none/a", None, "relative to a baseline, and none/a makes no error under a corruption"),
        ("none/a", 0.5, "the mean over corruptions of its error over that of none/a, taken as it is"),
    ],
)
def test_a_mean_corruption_error_that_is_missing_has_its_reason(baseline, ratio, expected):
    row = {"dataset": "d", "threat": "none", "model": "a", "measure": "corrupted", "n": 10, "error": 0.2}
    row |= {"low": 0.1, "high": 0.3, "confidence": 0.95, "baseline": baseline, "corruption_error": ratio}
    errors = typed_frame(TABLES["corruption_errors"], [row])
    (detail,) = details_of_groups({"corruption_errors": errors})
    assert detail.text == [f"Intervals by sample: copies of one image count once. mCE is {expected}."]


def test_a_constant_classifier_stands_last_and_is_marked():
    model = {"dataset": "toy", "threat": "none", "mapper": "vae", "n": 9}
    rows = [
        {"model": "blind", "tolerance": 1.0, "censored": 1.0, "constant": True},
        {"model": "weak", "tolerance": 0.2, "censored": 0.1, "constant": False},
        {"model": "good", "tolerance": 0.9, "censored": 0.75, "constant": False},
    ]
    for constant in (True, False):
        made = [model | row | {"constant": row["constant"] and constant} for row in rows]
        (detail,) = details_of_groups({"projection_models": typed_frame(TABLES["projection_models"], made)})
        table = detail.table
        titles = [column.title for column in table.columns]
        if not constant:
            assert "Constant" not in titles
            continue
        assert [row[2] for row in table.rows] == ["good", "weak", "blind"]
        assert [row[titles.index("Constant")] for row in table.rows] == ["–", "–", "yes"]
        assert [row[titles.index("Censored")] for row in table.rows] == ["0.750", "0.100", "1.00"]


def test_changes_by_latent_dimensions_have_a_unit():
    row = {"mapper": "vae", "dimension": "z0", "trait": "slant", "how": "measured", "shift": 0.5, "strength": 0.5}
    frames = {"projection_effects": typed_frame(TABLES["projection_effects"], [row])}
    (detail,) = details_of_groups(frames)
    assert "standard deviations" in detail.text[0] and "probability" in detail.text[0]
