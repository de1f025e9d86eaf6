"""An audit of proofs and attacks in one ball, from its configuration over tables and verdict to the page."""

import re

import pytest

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.errors import InputError
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


def bands_in(part):
    """Ends in percent of the closed bands that a part of a page draws."""
    ends = []
    for start, width in re.findall(r'class="band" x="([\d.]+)%" width="([\d.]+)%"', part):
        ends.append((round(float(start)), round(float(start) + float(width))))
    return ends


def test_proofs_and_attacks_become_a_band_a_verdict_and_a_picture(folder):
    finished_audit(per_class=PER_CLASS, bands=(GOOD, OPEN))
    results = folder / "results/audits/toy"

    scores = read_table(results / "class_scores.parquet", CATALOGUE["class_scores"])
    rows = scores[(scores["measure"] == BAND) & (scores["model"] == "good")]
    assert rows["value"].tolist() == [0.8, 0.7, 0.66] and rows["value_most"].tolist() == [0.9, 0.85, 0.8]

    verdict = read_verdict(results / "verdict.json")
    (rule,) = verdict.rules
    assert rule.measure == BAND and not (folder / "results/samples" / BAND).exists()
    good, undecided = rule.models
    assert good.verdict == "PASS" and (good.value, good.value_most) == (0.66, 0.8)
    assert undecided.verdict == "INCONCLUSIVE"
    assert undecided.open_samples.cause and undecided.open_samples.count == 60

    page = (results / "report.html").read_text(encoding="utf-8")
    top = page[: page.index('id="which"')]
    classes, models = top.split('id="strip"')
    # Of the model that passes, the class of which least is proven on top; then the worst class of both models.
    assert bands_in(classes) == [(66, 80), (70, 85), (80, 90)] and bands_in(models) == [(66, 80), (20, 80)]
    assert "60 open samples" in top and "Nothing is proven" not in top


def test_attacks_fail_a_model_whatever_is_proven(folder):
    finished_audit(per_class=PER_CLASS, bands=(GOOD, ATTACKED), page=False)
    verdict = read_verdict("results/audits/toy/verdict.json")
    assert verdict.verdict == "FAIL"
    assert [model.verdict for model in verdict.rules[0].models] == ["PASS", "FAIL"]


def test_an_attack_that_refutes_a_proof_stops_the_audit(folder):
    with pytest.raises(InputError, match=rf"none/bad: \S+/bad\.parquet and \S*{ATTACK}\S+/bad\.parquet: the sample '"):
        finished_audit(per_class=PER_CLASS, bands=(GOOD, ([80, 70, 20], [90, 69, 80])))
    assert not list(folder.glob("results/audits/toy/verdict.json"))
