"""A disk that is full or read-only: a clear error, the file that was there still whole, and success once there is room."""

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gfscore
from faults import model_files, user_files
from faults.audits import OPTIONS, TARGETS, digests
from faults.pool import watched
from gfscore.core import files
from gfscore.tables import csv_files
from gfscore.tables import parquet_tables as tables
from gfscore.workflow.catalogue import CATALOGUE

pytestmark = pytest.mark.seconds(40)

MOUNTING = ("unshare", "--mount")
LARGE = np.random.default_rng(0).normal(size=(5000, 4))


@pytest.fixture(scope="session")
def mounting():
    """Command that runs another with mounts of its own."""
    for command in (MOUNTING, ("unshare", "--user", "--map-root-user", "--mount")):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("file systems cannot be mounted here: neither root nor user namespaces")


def write_logits(path):
    labels = np.zeros(len(LARGE), dtype=int)
    tables.write_logits(path, sample_id=labels.astype(str), label=labels, logits=LARGE, identity=user_files.IDENTITY)


def write_samples(path):
    values = {"value": LARGE[:, 0], "censored": False}
    frame = pd.DataFrame({"sample_id": [str(i) for i in range(len(LARGE))], "label": 0, "prediction": 0, **values})
    tables.write_table(path, CATALOGUE["samples"], frame, identity=user_files.IDENTITY)


WRITERS = {
    "text": lambda path: files.write_text(path, "a" * 10_000),
    "json": lambda path: files.write_json(path, {"a": LARGE}),
    "logits": write_logits,
    "samples": write_samples,
    "csv": lambda path: csv_files.write_csv_beside(path, pd.DataFrame({"a": LARGE[:, 0]})),
    "checkpoint": lambda path: model_files.trained(path.parent),
}
NAMES = {"csv": "old.csv", "checkpoint": "trained.safetensors"}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_that_runs_out_of_room_leaves_the_old_file_and_no_other(writer, tmp_path):
    path = tmp_path / NAMES.get(writer, "old.bin")
    # Once with room, so that every library is loaded.
    WRITERS[writer](path)
    path.write_text("old")

    def attempt(_):
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        try:
            WRITERS[writer](path)
        except OSError as error:
            return type(error).__name__, path.read_text(), [other.name for other in tmp_path.iterdir()]
        raise AssertionError("nothing was said")

    ((_, fault, found),) = watched(attempt, [0])
    assert fault is None, fault
    assert found == ("OSError", "old", [path.name])


STEP = """
import sys
sys.path.insert(0, {scripts!r})
from gfscore.core.files import write_text
from gfscore.workflow.jobs import logged_job
with logged_job("log/step.log"):
    print("a line of the step")
    write_text("results/made.txt", "a" * {size})
"""


def write_step(folder, size):
    """A step as a script of its own, as Snakemake runs it; returns its command."""
    scripts = str(Path(gfscore.__file__).parents[1])
    (folder / "step.py").write_text(STEP.format(scripts=scripts, size=size))
    return f"{sys.executable} step.py"


SCRIPT = """
set -e
mkdir -p results log
mount -t tmpfs -o size={size}k tmpfs results
{inside}
"""


def test_a_step_on_a_full_disk_says_so_in_one_line(tmp_path, mounting):
    inside = f"{write_step(tmp_path, 10**6)} || echo status $?; ls -A results"
    done = shell(tmp_path, SCRIPT.format(size=64, inside=inside), mounting)
    assert done.stdout.strip() == "status 1", "something else happened, or was left behind"
    assert "error: " in done.stderr and "results/" in done.stderr and "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "No space left" in (tmp_path / "log/step.log").read_text()


def test_an_error_is_shown_even_where_the_log_has_no_room(tmp_path, mounting):
    run = write_step(tmp_path, 10**6)
    inside = f"mount --bind results log; head -c 64k /dev/zero > results/full || true; {run}"
    done = shell(tmp_path, SCRIPT.format(size=64, inside=inside), mounting)
    assert done.returncode != 0
    assert "No space left on device" in done.stderr


def test_a_read_only_folder_of_results_is_named(tmp_path, mounting):
    inside = f"mount -o remount,ro results; {write_step(tmp_path, 10)}"
    done = shell(tmp_path, SCRIPT.format(size=64, inside=inside), mounting)
    assert done.returncode == 1
    assert "error: " in done.stderr and "Read-only file system" in done.stderr and "results" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_fills_the_disk_is_completed_once_there_is_room(configured, undisturbed, mounting):
    repository = configured()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *OPTIONS, "--rerun-incomplete", "--", *TARGETS]
    (repository.path / "run.sh").write_text("exec " + " ".join(command) + "\n")
    inside = """
sh run.sh > first.log 2>&1 && echo first succeeded
mount -o remount,size=64m results
sh run.sh > second.log 2>&1
cp -r results made
"""
    shutil.rmtree(repository.path / "results", ignore_errors=True)
    done = shell(repository.path, SCRIPT.format(size=100, inside=inside), mounting)
    first = repository.read("first.log")
    assert done.returncode == 0, (repository.path / "second.log").read_text()[-3000:]
    assert "first succeeded" not in done.stdout
    assert "No space left on device" in first
    (repository.path / "results").rmdir()
    (repository.path / "made").rename(repository.path / "results")
    assert digests(repository) == digests(undisturbed)


def shell(folder, script, mounting):
    command = [*mounting, "sh", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
