"""Which GPU a job takes where it sees several."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gfscore
from gfscore.core.errors import InputError
from gfscore.networks.gpus import hold_one_of

HOLD = """
import sys
from pathlib import Path
from gfscore.networks.gpus import hold_one_of
sys.stdout.reconfigure(line_buffering=True)
print(hold_one_of(sys.argv[2:], folder=Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def start_holder(folder, names):
    command = [sys.executable, "-c", HOLD, folder, *names]
    environment = os.environ | {"PYTHONPATH": str(Path(gfscore.__file__).parents[1])}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def test_every_job_holds_another_gpu_until_it_ends_however_it_ends(tmp_path):
    folder, names = tmp_path / "locks", ["one", "two"]
    first, second = start_holder(folder, names), None
    try:
        assert first.stdout.readline() == "0\n"
        second = start_holder(folder, names)
        assert second.stdout.readline() == "1\n"
        first.kill()
        first.wait()
        assert hold_one_of(names, folder=folder) == 0
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.communicate()


def test_locks_that_another_could_steer_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="belongs to another user"):
        hold_one_of(["one"], folder=tmp_path / "locks")
    (tmp_path / "elsewhere" / "one").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="one"):
        hold_one_of(["one"], folder=tmp_path / "elsewhere")
    assert not (tmp_path / "victim").exists()


def test_a_job_waits_where_all_gpus_are_held(tmp_path):
    first, second = start_holder(tmp_path, ["only"]), None
    try:
        assert first.stdout.readline() == "0\n"
        second = start_holder(tmp_path, ["only"])
        assert "waiting for only" in (waiting := second.stdout.readline()), waiting
        first.kill()
        assert second.stdout.readline() == "0\n"
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.communicate()
