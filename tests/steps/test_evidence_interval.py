"""An audit of proofs and attacks in one ball, from its configuration over tables and verdict to the page."""

import contextlib
import re

import pytest
import yaml

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.errors import InputError
from gfscore.measures import named_measures
from gfscore.show.exports.cards import evaluation_results, model_cards
from gfscore.show.exports.latex_tables import class_table, model_table
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.finished_audits import ATTACK, BAND, finished_audit

PER_CLASS = 100
GOOD = ([80, 70, 66], [90, 85, 80])
"""Samples of each class of the model `good` that are proven, and that survive attacks."""

OPEN = ([80, 70, 20], [90, 85, 80])
ATTACKED = ([80, 70, 10], [90, 85, 30])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Folder of an audit of a model that passes by proofs, and of one that open samples leave undecided."""
    folder = tmp_path_factory.mktemp("audited")
    with contextlib.chdir(folder):
        finished_audit(per_class=PER_CLASS, bands=(GOOD, OPEN))
    return folder


@pytest.fixture(scope="module")
def results(audited):
    return audited / "results/audits/toy"


def read(results, name):
    """Rows of one table of the audit that are about the band."""
    table = read_table(results / f"{name}.parquet", CATALOGUE[name])
    return table[table["measure"] == BAND].reset_index(drop=True)


def bands_in(part):
    """Ends in percent of the closed bands that a part of a page draws."""
    ends = []
    for start, width in re.findall(r'class="band" x="([\d.]+)%" width="([\d.]+)%"', part):
        ends.append((round(float(start)), round(float(start) + float(width))))
    return ends


def test_the_tables_hold_both_ends(results):
    rows = read(results, "class_scores").query("model == 'good'")
    assert rows["value"].tolist() == [0.8, 0.7, 0.66] and rows["value_most"].tolist() == [0.9, 0.85, 0.8]
    assert (rows["low"] < rows["value"]).all() and (rows["high"] > rows["value_most"]).all()
    summary = read(results, "model_summary").set_index("model")
    assert summary.loc["bad", ["wcr", "wcr_most"]].tolist() == pytest.approx([0.2, 0.8])


def test_the_gate_passes_by_proofs_and_says_what_is_open(audited, results):
    (rule,) = read_verdict(results / "verdict.json").rules
    good, undecided = rule.models
    assert rule.measure == BAND and not (audited / "results/samples" / BAND).exists()
    assert good.verdict == "PASS" and (good.value, good.value_most) == (0.66, 0.8)
    assert undecided.verdict == "INCONCLUSIVE"
    assert undecided.open_samples.cause and undecided.open_samples.count == 60


def test_the_page_draws_each_class_from_proof_to_attack(results):
    page = (results / "report.html").read_text(encoding="utf-8")
    top = page[: page.index('id="which"')]
    classes, models = top.split('id="strip"')
    # Of the model that passes, the class of which least is proven on top; then the worst class of both models.
    assert bands_in(classes) == [(66, 80), (70, 85), (80, 90)] and bands_in(models) == [(66, 80), (20, 80)]
    assert "60 open samples" in top and "Nothing is proven" not in top
    assert "0.566 to 0.720" in classes, "what is proven of all samples, of both models"


def test_the_ranking_draws_each_model_from_proof_to_attack(results):
    page = (results / "report.html").read_text(encoding="utf-8")
    ranking = page[page.index('id="ranking"') :].partition("</figure>")[0]
    assert bands_in(ranking) == [(66, 80), (20, 80)]
    assert "0.660 to 0.800" in ranking and "0.200 to 0.800" in ranking


def test_papers_and_cards_print_both_ends(results):
    summary = read(results, "model_summary")
    measures = named_measures({BAND: {"kind": "robust"}})
    about = measures[BAND].description
    by_class = class_table(read(results, "class_scores"), about, name=BAND)
    assert re.search(r"good & 0\.800--0\.900 & 0\.700--0\.850 & 0\.660--0\.800 & 0\.720--0\.850", by_class)
    by_model = model_table(summary, about, name=BAND, fp_lambda=0.5, calibrations={})
    assert all(title in by_model for title in ("Score at most", "WCR at most"))
    assert "largest value, elsewhere at their smallest." in by_model
    cards = model_cards(summary, measures, audit="toy", title="Toy", digest="d", classes=3, fp_lambda=0.5)
    assert "0.660 to 0.800" in cards["none__good"] and "most: 0.8" in cards["none__good"]
    # RDI and the others have one end, and say which.
    assert "a single number counts them at their smallest value" in cards["none__good"]
    entries = evaluation_results(summary, measures, hub_dataset="a/b", date="2026-01-01", fp_lambda=0.5)
    rdi = next(entry for entry in yaml.safe_load(entries["none__good"]) if entry["dataset"]["task_id"].endswith("rdi"))
    assert "open samples at their smallest value" in rdi["notes"]


def test_attacks_fail_a_model_whatever_is_proven(folder):
    finished_audit(per_class=PER_CLASS, bands=(GOOD, ATTACKED), page=False)
    verdict = read_verdict("results/audits/toy/verdict.json")
    assert verdict.verdict == "FAIL"
    assert [model.verdict for model in verdict.rules[0].models] == ["PASS", "FAIL"]


def test_an_attack_that_refutes_a_proof_stops_the_audit(folder):
    with pytest.raises(InputError, match=rf"none/bad: \S+/bad\.parquet and \S*{ATTACK}\S+/bad\.parquet: the sample '"):
        finished_audit(per_class=PER_CLASS, bands=(GOOD, ([80, 70, 20], [90, 69, 80])))
    assert not list(folder.glob("results/audits/toy/verdict.json"))
