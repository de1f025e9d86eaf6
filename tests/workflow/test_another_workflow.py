"""Another workflow imports this one as its documentation shows, makes what is audited, and takes the page."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gfscore.audit.verdicts.verdict import read_verdict

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(50)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/another-workflow"


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Folder of the other workflow, with this repository in it as a clone would be."""
    folder = tmp_path_factory.mktemp("other") / "workflow"
    shutil.copytree(EXAMPLE, folder)
    (folder / "gfscore").symlink_to(ROOT)
    return folder


def snakemake(folder, *arguments, **variables):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    environment = os.environ | variables
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_page_shows_the_module_of_the_example():
    page = (ROOT / "docs/in-another-workflow.md").read_text(encoding="utf-8")
    block = re.search(r"^```text\n(module.*?)^```", page, flags=re.MULTILINE | re.DOTALL)[1]
    assert "".join(block.split()) in "".join((EXAMPLE / "Snakefile").read_text(encoding="utf-8").split())


def test_a_dry_run_plans_the_steps_of_both_workflows_in_order(other):
    done = snakemake(other, "--dry-run", "--quiet", "rules")
    assert done.returncode == 0, done.stdout[-4000:]
    planned = re.findall(r"^(\w+) +\d+$", done.stdout, flags=re.MULTILINE)
    assert {"predict", "gfscore_score_models", "gfscore_judge_audit", "gfscore_build_report", "publish"} <= set(planned)
    assert not (other / "results/audits").exists()


def test_the_audit_is_made_of_what_the_other_workflow_makes_and_is_taken_by_it(other):
    done = snakemake(other)
    assert done.returncode == 0, done.stdout[-4000:]
    page = other / "published/audit.html"
    assert page.read_bytes() == (other / "results/audits/release/report.html").read_bytes()
    verdict = read_verdict(other / "results/audits/release/verdict.json")
    assert verdict.dataset.name == "signs" and list(verdict.models) == ["none/net"]
    again = snakemake(other, "--dry-run")
    assert "Nothing to be done" in again.stdout, again.stdout[-4000:]


def test_exports_of_an_imported_audit_hold_the_workflow_and_the_steps(other):
    snakemake(other)
    done = snakemake(other, "results/audits/release/exports/ro-crate")
    assert done.returncode == 0, done.stdout[-4000:]
    crate = other / "results/audits/release/exports/ro-crate"
    entities = {item["@id"]: item for item in json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]}
    assert (crate / "Snakefile").read_bytes() == (ROOT / "Snakefile").read_bytes()
    execution = entities["#execution-of-judge_audit/release"]
    assert execution["instrument"]["@id"] == "workflow_scripts/judge_audit.py"
    assert not [item for item in execution["object"] if item["@id"].endswith(".py")]


def test_a_module_on_github_is_cloned_at_its_commit(fresh_copy, tmp_path):
    repository = fresh_copy().path
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "all")
    commit = git(repository, "rev-parse", "HEAD")
    folder = tmp_path / "workflow"
    shutil.copytree(EXAMPLE, folder)
    address = f'github("someone/gfscore", path="Snakefile", commit="{commit}")'
    text = (folder / "Snakefile").read_text(encoding="utf-8")
    (folder / "Snakefile").write_text(text.replace('"gfscore/Snakefile"', address))

    # In place of the network, git takes the repository for the one at the address.
    variables = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/someone/gfscore",
    }
    done = snakemake(folder, "results/audits/release/verdict.json", **variables)
    assert done.returncode == 0, done.stdout[-4000:]
    assert [path.name for path in (folder / ".snakemake/gfscore").iterdir()] == [commit]
    software = read_verdict(folder / "results/audits/release/verdict.json").software
    assert software["commit"] == commit and software["changed"] is False
    again = snakemake(folder, "--dry-run", "results/audits/release/verdict.json", **variables)
    assert "Nothing to be done" in again.stdout, again.stdout[-4000:]
    refused = snakemake(folder, "--dry-run", "--use-conda", **variables)
    assert refused.returncode != 0 and "from a path" in refused.stdout


def test_a_module_without_a_file_of_its_audits_is_refused(other, tmp_path):
    (tmp_path / "gfscore").symlink_to(ROOT)
    text = (EXAMPLE / "Snakefile").read_text(encoding="utf-8").replace('"configfile": "audits.yaml"', "")
    (tmp_path / "Snakefile").write_text(text)
    done = snakemake(tmp_path, "--dry-run")
    assert done.returncode != 0
    assert "name the file of its audits" in done.stdout


def test_the_catalogue_finds_what_its_file_claims():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    deployment = usage["software-stack-deployment"]
    assert deployment == {"conda": True, "apptainer": False, "apptainer+conda": False, "report": True}
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert "conda:" in rules and "container" not in rules and "report(" in rules
