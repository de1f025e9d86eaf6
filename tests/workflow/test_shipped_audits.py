"""Every shipped configuration is planned whole, by its file alone, without data, checkpoints or network."""

import re

import pytest

from helpers.configurations import FILES, ROOT
from workflow.conftest import rules_in

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(30)]


@pytest.fixture(scope="module")
def repository(fresh_copy):
    return fresh_copy()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_configuration_is_planned_alone_down_to_its_reports(repository, path):
    name = path.relative_to(ROOT).as_posix()
    rules, files = repository.planned("--configfile", name)
    reports = [file for file in files if file.endswith("report.html")]
    audits = re.findall(r"^  ([\w-]+):\n    title", path.read_text(), flags=re.MULTILINE)
    assert {f"results/audits/{audit}/{file}" for audit in audits for file in ("verdict.json", "config.yaml")} <= files
    # Nothing of the demo is merged into another audit.
    assert sorted(reports) == sorted(f"results/audits/{audit}/report.html" for audit in audits)
    assert rules["extract_logits"] >= 2 and rules["score_models"] == rules["tabulate_audit"] == len(audits)
    assert path.read_text().count("\n# ") >= 3, "it says what it needs, and how long it takes"


def test_a_verdict_waits_for_every_measure_and_for_nothing_that_is_only_shown(repository):
    """Its sentence says what the attacks say where the gate judges something else."""
    rules, _ = repository.planned("--", "results/audits/digits/verdict.json")
    # Eight measures of seven models, and one of the model with a remedy at the strengths 0, 0.5 and 1.
    assert rules["measure_model"] == 7 * 8 + 3
    assert rules["tabulate_audit"] == rules["judge_audit"] == 1
    assert not {"plot_figures", "build_report", "build_index"} & set(rules)
    gate, _ = repository.planned("--", "gate")
    assert gate == {**rules, "gate": 1}


def test_the_two_audits_of_the_paper_name_its_models(repository):
    files = ("configs/gf-score-cifar10.yaml", "configs/gf-score-imagenet.yaml")
    rules, _ = repository.planned("--configfile", *files, "--", "inputs")
    assert rules == {"fetch_dataset": 2, "fetch_checkpoint": 22}


def test_config_yaml_need_not_be_there_where_another_file_is_named(repository, tmp_path):
    copy = repository.copy_to(tmp_path / "copy")
    (copy.path / "config.yaml").unlink()
    (copy.path / "mine.yaml").write_text(
        "datasets: {mine: {path: labels.csv}}\naudits: {mine: {dataset: mine, models: [a.npy, b.npy]}}\n"
    )
    rules, files = copy.planned("--configfile", "mine.yaml")
    assert rules["score_models"] == 1 and "extract_logits" not in rules and "results/audits/mine/report.html" in files
    refused = copy.snakemake("--dry-run", check=False)
    assert refused.returncode and "config.yaml: no such file" in refused.text


def test_the_configuration_of_an_audit_is_written_and_runs_as_it_is(repository, tmp_path):
    copy = repository.copy_to(tmp_path / "copy")
    copy.snakemake("--config", "intervals={confidence: 0.9}", "--", "results/audits/digits/config.yaml")
    text = copy.read("results/audits/digits/config.yaml")
    assert "  confidence: 0.9 # --config" in text and "    dataset: digits # config.yaml" in text
    (copy.path / "again.yaml").write_text(text)
    asked = ("--config", "intervals={confidence: 0.9}")
    done = [copy.snakemake("--dry-run", *options).text for options in (asked, ("--configfile", "again.yaml"))]
    # Only where its values come from is another.
    assert rules_in(done[1]) - rules_in(done[0]) == {"write_configuration": 1} and rules_in(done[0]) <= rules_in(
        done[1]
    )
