"""kill -9 at random moments: the next run completes, and its files are those of an undisturbed one, bit for bit."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from faults.audits import OPTIONS, TARGETS, digests

pytestmark = pytest.mark.seconds(70)

AIMS = ("job", "snakemake", "group")
AGAIN = (*OPTIONS, "--rerun-incomplete", "--", *TARGETS)


def test_a_run_killed_at_any_moment_is_completed_bit_for_bit(configured, undisturbed, trials):
    expected, killed, seconds = digests(undisturbed), [], undisturbed.seconds
    print(f"undisturbed: {seconds:.0f} s, {len(expected)} files")
    for trial in range(trials(len(AIMS))):
        rng = np.random.default_rng(trial)
        repository, aim = configured(), AIMS[trial % len(AIMS)]
        after = rng.uniform(0.2, 0.95) * seconds
        killed.append(run_and_kill(repository, aim, after=after, rng=rng))
        print(f"trial {trial}: {aim} after {after:.1f} s: {'killed' if killed[-1] else 'had ended'}", flush=True)
        # A machine that has less to do by now needs less time.
        seconds = seconds if killed[-1] else min(seconds, after)
        if aim != "job":
            repository.snakemake("--unlock")
        before = digests(repository)
        # Whatever is there is whole: nothing of what was being written has its name yet.
        assert {name: expected[name] for name in before} == before, f"trial {trial}, {aim}"
        repository.snakemake(*AGAIN)
        assert digests(repository) == expected, f"trial {trial}, {aim}"
        shutil.rmtree(repository.path)
    assert sum(killed) > len(killed) / 2, "most runs had ended before their kill"


def run_and_kill(repository, aim, *, after, rng):
    """Start the cheap audit and kill part of it; returns whether there was something to kill."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *OPTIONS, "--", *TARGETS]
    output = (repository.path / "killed.log").open("w")
    with output:
        run = subprocess.Popen(command, cwd=repository.path, stdout=output, stderr=output, start_new_session=True)
        time.sleep(after)
        there = run.poll() is None
        try:
            if aim == "group" and there:
                os.killpg(run.pid, signal.SIGKILL)
            elif aim == "snakemake" and there:
                run.kill()
            else:
                kill_a_job(run, rng)
            run.wait(timeout=120)
        finally:
            wait_for_orphans(run.pid)
    return there


def kill_a_job(run, rng):
    """Kill one of the processes below Snakemake, as soon as there is one."""
    while run.poll() is None:
        try:
            if jobs := psutil.Process(run.pid).children(recursive=True):
                jobs[rng.integers(len(jobs))].kill()
                return
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.01)


def wait_for_orphans(group):
    """Jobs outlive a Snakemake that is killed alone; none may outlive the test."""
    deadline = time.monotonic() + 60
    while members := [process for process in psutil.process_iter() if _group_of(process) == group]:
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
        psutil.wait_procs(members, timeout=1)


def _group_of(process):
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getpgid(process.pid)
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None
