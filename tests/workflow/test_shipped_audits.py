"""Every audit of config.yaml is planned whole without data, checkpoints or network."""

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.workflow

AUDITS = yaml.safe_load((Path(__file__).resolve().parents[2] / "config.yaml").read_text())["audits"]


@pytest.fixture(scope="module")
def repository(fresh_copy):
    return fresh_copy()


@pytest.mark.parametrize("name", AUDITS)
def test_a_shipped_audit_is_planned_down_to_its_report(repository, name):
    rules, files = repository.planned("--config", f"run=[{name}]")
    assert f"results/audits/{name}/report.html" in files
    assert f"results/audits/{name}/verdict.json" in files
    assert rules["extract_logits"] == rules["check_logits"] >= 5


def test_a_verdict_waits_for_no_measure_that_the_gate_does_not_judge(repository):
    per_model = {"train_model", "extract_logits", "check_logits", "score_logits"}
    rules, _ = repository.planned("--", "results/audits/digits/verdict.json")
    assert set(rules) == {"fetch_dataset", "select_models", "judge_audit"} | per_model
    gate, _ = repository.planned("--", "gate")
    assert gate == {**rules, "gate": 1}
    audit, _ = repository.planned("--", "audit")
    assert {"measure_model", "judge_audit"} < set(audit)


def test_the_two_audits_of_the_paper_name_its_models(repository):
    assert len(AUDITS["cifar10-l2"]["models"]) == 17
    assert len(AUDITS["imagenet-linf"]["models"]) == 5
    rules, _ = repository.planned("--config", "run=[cifar10-l2,imagenet-linf]", "--", "inputs")
    assert rules == {"fetch_dataset": 2, "fetch_checkpoint": 22}
