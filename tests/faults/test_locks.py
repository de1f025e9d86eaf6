"""Two runs in one folder, and the lock of a run that was killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from faults.audits import OPTIONS, TARGETS, digests

pytestmark = pytest.mark.seconds(40)

COMMAND = [sys.executable, "-m", "snakemake", "--cores", "1", *OPTIONS, "--", *TARGETS]


def test_a_second_run_in_the_same_folder_is_refused_and_harms_nothing(configured, undisturbed):
    repository = configured()
    first = start(repository)
    try:
        wait_for_lock(repository, first)
        # The first run stands still, so that it cannot end before the second one looks.
        os.killpg(first.pid, signal.SIGSTOP)
        second = repository.snakemake(*OPTIONS, "--", *TARGETS, check=False)
        os.killpg(first.pid, signal.SIGCONT)
        assert second.returncode != 0
        assert "cannot be locked" in second.text and "--unlock" in second.text
        assert first.wait(timeout=300) == 0, repository.read("first.log")[-3000:]
    finally:
        end(first)
    assert digests(repository) == digests(undisturbed)


def test_the_lock_of_a_killed_run_is_named_with_its_remedy(configured):
    repository = configured()
    first = start(repository)
    try:
        wait_for_lock(repository, first)
    finally:
        end(first)
    refused = repository.snakemake(*OPTIONS, "--", "inputs", check=False)
    assert refused.returncode != 0
    assert "cannot be locked" in refused.text and "--unlock" in refused.text
    repository.snakemake("--unlock")
    repository.snakemake(*OPTIONS, "--rerun-incomplete", "--", "inputs")


def start(repository):
    with (repository.path / "first.log").open("w") as output:
        return subprocess.Popen(COMMAND, cwd=repository.path, stdout=output, stderr=output, start_new_session=True)


def wait_for_lock(repository, run):
    locks = repository.path / ".snakemake/locks"
    while not (locks.is_dir() and any(locks.iterdir())):
        assert run.poll() is None, repository.read("first.log")
        time.sleep(0.02)


def end(run):
    """Kill what still runs of a process and of those that it started."""
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
