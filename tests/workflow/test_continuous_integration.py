"""The jobs of docs/continuous-integration.md, step by step: a good model passes, a bad one stops the pipeline."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from junitparser import JUnitXml

from gfscore.audit.verdicts.verdict import read_verdict
from helpers.configurations import laid_over

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(70)]

ROOT = Path(__file__).resolve().parents[2]


def github_steps():
    """(always, folder, command) of each step of the job that runs a command."""
    job = yaml.safe_load((ROOT / "docs/examples/github-audit.yml").read_text())["jobs"]["audit"]
    steps = [step for step in job["steps"] if "run" in step]
    return [(step.get("if") == "always()", step.get("working-directory", "."), step["run"]) for step in steps]


def gitlab_steps():
    """The script of the job in one shell, as a runner runs it, and what runs after it in any case."""
    job = yaml.safe_load((ROOT / "docs/examples/gitlab-audit.yml").read_text())["audit"]
    return [(False, ".", "\n".join(job["script"])), (True, ".", "\n".join(job["after_script"]))]


def run_job(workspace, steps, **variables):
    """Exit status of the first step that fails, 0 where none does; later ones run where they are to run always."""
    status = 0
    for always, folder, command in steps:
        if status and not always:
            continue
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=workspace / folder,
            env=os.environ | variables,
            check=False,
        )
        status = status or done.returncode
    return status


def compared_with_the_last_release(audit):
    """The audit's file with what the page adds to it for a gate against the last release."""
    page = (ROOT / "docs/continuous-integration.md").read_text()
    (block,) = re.findall(r"^```text\n(audits:\n.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    written = audit.read_text()
    # By its first line the command knows its own file again.
    return f"{written.splitlines()[0]}\n{yaml.safe_dump(laid_over(yaml.safe_load(written), yaml.safe_load(block)))}"


def checked_out(repository, workspace):
    """A copy of the repository where the job has it, which makes no figures as files."""
    (workspace / "gfscore").symlink_to(repository.path)
    (repository.path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    repository.leave_out_figures()
    return repository


def test_releases_are_gated_against_the_bundle_of_the_last_one_and_a_worse_one_stops_both_pipelines(
    fresh_copy, tmp_path
):
    repository = checked_out(fresh_copy(), tmp_path)
    labels = np.repeat(np.arange(3), 300)
    logits = np.random.default_rng(0).normal(size=(900, 3))
    audit, last_release = repository.path / "audits/release.yaml", repository.path / "last-release"
    variables = {"MODEL": str(tmp_path / "logits.npz"), "DATA": "", "GITHUB_STEP_SUMMARY": str(tmp_path / "said")}

    def released(leads, *jobs):
        """What the jobs say of a release, by how much its logit of the true class leads, by class."""
        np.savez(tmp_path / "logits.npz", logits=logits + np.diag(leads)[labels], labels=labels)
        outcomes = []
        for steps in jobs:
            shutil.rmtree(repository.path / "bundle", ignore_errors=True)
            status = run_job(tmp_path, steps, **variables)
            report = JUnitXml.fromfile(str(repository.path / "gate.xml"))
            verdict = read_verdict(repository.path / "results/audits/release/verdict.json")
            outcomes.append((status, [rule.verdict for rule in verdict.rules], report.tests, report.failures))
            assert (repository.path / "bundle/audits/release/report.html").is_file()
            (repository.path / "gate.xml").unlink()
        shutil.rmtree(last_release, ignore_errors=True)
        (repository.path / "bundle").rename(last_release)
        return outcomes

    github, gitlab = github_steps(), gitlab_steps()
    assert released([4, 4, 3], github) == [(0, ["PASS"], 1, 0)]
    audit.write_text(compared_with_the_last_release(audit))
    assert released([4, 4, 4], gitlab) == [(0, ["PASS", "PASS"], 2, 0)]
    # The last one loses a class.
    assert released([4, 4, 2], github, gitlab) == 2 * [(1, ["PASS", "FAIL"], 2, 1)]
    said = re.findall(r"^release: (\w+)", (tmp_path / "said").read_text(), flags=re.MULTILINE)
    assert said == ["PASS", "FAIL"]
