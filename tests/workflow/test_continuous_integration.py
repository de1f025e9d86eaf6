"""The jobs of docs/continuous-integration.md, step by step: a good model passes, a bad one stops the pipeline."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from junitparser import JUnitXml

pytestmark = pytest.mark.workflow

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


@pytest.mark.parametrize("steps", [github_steps, gitlab_steps])
def test_a_bad_model_stops_the_pipeline_and_a_good_one_does_not(fresh_copy, tmp_path, steps):
    repository = fresh_copy()
    (tmp_path / "gfscore").symlink_to(repository.path)
    (repository.path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    model = tmp_path / "model"
    model.mkdir()
    labels = np.repeat(np.arange(3), 60)
    logits = np.random.default_rng(0).normal(size=(180, 3))
    variables = {"MODEL": str(model / "logits.npz"), "DATA": ""}

    outcomes = {}
    # by how much the logit of the true class leads, by class: one class of the bad model is guessed
    for name, leads in (("bad", [4, 4, 0]), ("good", [4, 4, 4])):
        np.savez(model / "logits.npz", logits=logits + np.diag(leads)[labels], labels=labels)
        status = run_job(tmp_path, steps(), **variables)
        report = JUnitXml.fromfile(str(repository.path / "gate.xml"))
        outcomes[name] = (status, report.tests, report.failures)
        bundle = repository.path / "bundle"
        assert (bundle / "audits/release/report.html").is_file()
        bundle.rename(tmp_path / name)
    assert outcomes == {"bad": (1, 1, 1), "good": (0, 1, 0)}
