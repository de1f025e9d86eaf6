"""The finished audit in docs/example: whole, small, and of today's code."""

import json
from pathlib import Path

import pandas as pd
import pytest

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import sha256_of_file
from gfscore.workflow.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example"
AUDIT = EXAMPLE / "audits" / "example"

pytestmark = pytest.mark.workflow


def files():
    return [path for path in EXAMPLE.rglob("*") if path.is_file()]


def test_every_file_is_the_one_that_the_statement_names():
    subjects = json.loads((EXAMPLE / "statement.json").read_text())["subject"]
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in subjects}
    others = [path for path in files() if path.name != "statement.json"]
    assert len(others) >= 7
    for path in others:
        assert digests[str(path.relative_to(EXAMPLE))] == sha256_of_file(path)


def test_the_tables_have_the_columns_of_today():
    for name in ("class_scores", "model_summary"):
        written = pd.read_csv(AUDIT / f"{name}.csv")
        assert list(written.columns) == CATALOGUE[name].column_names


def test_the_verdict_is_of_the_class_values_beside_it():
    verdict = read_verdict(AUDIT / "verdict.json")
    scores = pd.read_csv(AUDIT / "class_scores.csv")
    (rule,) = verdict.rules
    for model in rule.models:
        classes = scores[(scores["measure"] == rule.measure) & (scores["model"] == model.model)]
        assert classes["value"].min() == pytest.approx(model.value)


def test_its_configuration_is_planned_today(fresh_copy):
    rules, _ = fresh_copy().planned("--configfile", "configs/example.yaml")
    assert rules["build_report"] == 1


def test_it_is_small():
    assert sum(path.stat().st_size for path in files()) < 1_000_000
