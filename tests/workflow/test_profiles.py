"""What the profiles make of an audit: which steps run at once, and what each asks of the machine."""

import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest
import yaml

from workflow.conftest import ROOT, TWO_MODELS

pytestmark = pytest.mark.workflow

PROFILES = sorted(path.parent.name for path in (ROOT / "profiles").glob("*/config.yaml"))
ON_A_GPU = "models: {digits: {none: {ERM: {training: &cuda {device: cuda}}, PGD_mixer: {training: *cuda}}}}"


@pytest.fixture(scope="module")
def asked_for(fresh_copy, tmp_path_factory):
    """Function: the (threads, resources) that a dry run with some options gives each job, by step.

    `gpu`: as on a machine that has one.
    """
    repository, driver = fresh_copy(), tmp_path_factory.mktemp("driver") / "nvidia-smi"
    driver.write_text("#!/bin/sh\n")
    driver.chmod(0o755)
    (repository.path / "on_a_gpu.yaml").write_text(ON_A_GPU)

    def planned(*options, gpu=False):
        command = [sys.executable, "-m", "snakemake", "--dry-run", *options]
        path = [str(driver.parent)] * gpu + [os.environ["PATH"]]
        done = subprocess.run(
            command,
            cwd=repository.path,
            env=os.environ | {"PATH": os.pathsep.join(path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        jobs = defaultdict(list)
        for step, job in re.findall(r"^ *rule (\w+):\n((?: +\w+: .*\n)+)", done.stdout, flags=re.MULTILINE):
            threads = re.search(r"^ +threads: (\d+)", job, flags=re.MULTILINE)
            resources = dict(re.findall(r"(\w+)=([^ ,\n]+)", re.search("resources: (.*)", job)[1]))
            jobs[step].append((int(threads[1]) if threads else 1, resources))
        return jobs

    return planned


def rules():
    """Text of every rule, by name."""
    found = {}
    for path in (ROOT / "rules").glob("*.smk"):
        parts = re.split(r"^rule (\w+):\n", path.read_text(), flags=re.MULTILINE)
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_plans_the_audits_of_config(asked_for, profile):
    assert asked_for("--profile", f"profiles/{profile}")["extract_logits"]


def test_without_a_profile_steps_on_a_gpu_run_one_at_a_time(asked_for):
    """Each takes all cores; without a GPU those that show images take the threads of their arithmetic."""
    for gpu, expected in ((True, {8}), (False, {4, 8})):
        jobs = asked_for("--cores", "8", "--configfile", "config.yaml", TWO_MODELS, "on_a_gpu.yaml", gpu=gpu)
        on_gpu = [threads for of_step in jobs.values() for threads, resources in of_step if resources.get("gpu") == "1"]
        assert len(on_gpu) >= 4 and set(on_gpu) == expected


def test_training_on_the_cpu_takes_one_thread_because_the_weights_depend_on_it(asked_for):
    jobs = asked_for("--cores", "8", "--configfile", "config.yaml", TWO_MODELS)["train_model"]
    assert [(threads, resources["gpu"]) for threads, resources in jobs] == [(1, "0")] * 2


def test_a_workstation_runs_as_many_steps_on_gpus_as_it_has_gpus(asked_for):
    options = (
        "--profile",
        "profiles/workstation-gpu",
        "--cores",
        "32",
        "--configfile",
        "config.yaml",
        TWO_MODELS,
        "on_a_gpu.yaml",
    )
    jobs = asked_for(*options, gpu=True)
    gpus = yaml.safe_load((ROOT / "profiles/workstation-gpu/config.yaml").read_text())["resources"]["gpu"]
    on_gpu = [job for jobs_of_step in jobs.values() for job in jobs_of_step if job[1].get("gpu", "0") != "0"]
    assert len(on_gpu) >= 3 and {(threads, resources["gpu"]) for threads, resources in on_gpu} == {(8, "1")}
    assert 8 * gpus <= 32


def test_on_a_cluster_every_job_has_memory_and_time_and_more_at_each_attempt(asked_for):
    options = "--profile", "profiles/slurm-gpu", "--configfile", "config.yaml", TWO_MODELS
    first, second = asked_for(*options), asked_for(*options, "--attempt", "2")
    assert first.keys() == second.keys() >= {"train_model", "extract_logits", "score_models", "build_report"}
    for step in first:
        # Jobs of one step may ask for different times, and are listed in no particular order.
        jobs = (sorted(part[step], key=lambda job: int(job[1]["runtime"])) for part in (first, second))
        for (threads, before), (_, after) in zip(*jobs, strict=True):
            # Figures leave half of the cores to the page.
            assert threads == (4 if before.get("gpu") == "1" else 2 if step == "plot_figures" else 1), step
            assert [int(after[name]) for name in ("mem_mb", "runtime")] == [
                2 * int(before[name]) for name in ("mem_mb", "runtime")
            ], step


def test_steps_of_an_audit_share_one_job_on_a_cluster():
    """All of them: a step outside the group, between two that are in it, would make the group wait for itself.

    But for the first one, which may stop the run before an attack, and one that is not submitted.
    """
    of_audits = {name: text for name, text in rules().items() if '"results/audits/{audit}/' in text}
    for name in ("score_models", "write_configuration"):
        assert "submitted_with" not in of_audits.pop(name)
    assert len(of_audits) >= 6
    assert [name for name, text in of_audits.items() if 'submitted_with("audit")' not in text] == []


def test_a_step_is_small_and_shares_a_job_or_says_what_it_needs():
    local = set()
    for path in (ROOT / "rules").glob("*.smk"):
        for names in re.findall(r"^localrules:\n((?: +\w+,\n)+)", path.read_text(), flags=re.MULTILINE):
            local |= set(re.findall(r"\w+", names))
    assert {"fetch_dataset", "fetch_checkpoint"} <= local
    small = {name for name, text in rules().items() if "group:" in text}
    demanding = {
        name for name, text in rules().items() if "runtime=by_attempt(" in text and "mem_mb=by_attempt(" in text
    }
    assert rules().keys() == local | small | demanding


def test_steps_on_a_gpu_take_all_cores_and_are_those_of_the_list_in_the_profile():
    on_gpu = {name for name, text in rules().items() if re.search(r"^ +gpu=(1|of_kind)", text, flags=re.MULTILINE)}
    assert [
        name for name in on_gpu if not re.search(r"threads: (all_local_cores|cores_of_model)\n", rules()[name])
    ] == []
    text = (ROOT / "profiles/slurm-gpu/config.yaml").read_text()
    (commented,) = re.findall(r"^# set-resources:\n(?:# .*\n)+", text, flags=re.MULTILINE)
    listed = yaml.safe_load(re.sub("^# ", "", commented, flags=re.MULTILINE))
    assert listed["set-resources"].keys() == on_gpu
