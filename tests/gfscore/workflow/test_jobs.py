"""Context of jobs: log, errors, environment."""

import errno
import os
import platform
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import gfscore
from gfscore import InputError
from gfscore.workflow.jobs import VARIABLES, logged_job

PACKAGE_FOLDER = str(Path(gfscore.__file__).parents[1])


def test_what_a_step_prints_goes_to_its_log_only(tmp_path, capsys):
    path = tmp_path / "logs" / "score_models" / "digits.log"
    with logged_job(path):
        print("scored 300 samples")
        print("a remark", file=sys.stderr)
    print("after")
    assert path.read_text() == "scored 300 samples\na remark\n"
    captured = capsys.readouterr()
    assert captured.out == "after\n"
    assert captured.err == ""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("logits.parquet: row 3 is NaN; extract again"), "logits.parquet: row 3 is NaN; extract again\n"),
        *(
            (OSError(number, "whatever", "results/x.parquet"), f"results/x.parquet: {os.strerror(number)}; ")
            for number in (errno.ENOSPC, errno.EROFS, errno.EFBIG)
        ),
        *(
            (error, "LOG: out of memory .* batch_size")
            for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory"))
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free."),
            r"LOG: the memory of the GPU ran out \(CUDA out of memory\. Tried to allocate 2\.00 GiB\); .* device: cpu",
        ),
    ],
    ids=str,
)
def test_what_a_user_can_correct_ends_the_job_with_one_line(tmp_path, capsys, error, message):
    path = tmp_path / "job.log"
    with pytest.raises(SystemExit) as caught, logged_job(path):
        print("reading")
        raise error
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert re.match(f"error: {message.replace('LOG', str(path))}", said) and said.count("\n") == 1
    assert path.read_text() == f"reading\n{said}"


def test_names_from_outside_steer_no_terminal(tmp_path, capsys):
    path = tmp_path / "job.log"
    with pytest.raises(SystemExit), logged_job(path):
        print("class \x1b[31mred\x07\tand \u202eback \udcff")
        raise InputError("\x1b]0;owned\x07.npy: damaged\nsecond line")
    assert path.read_text() == (
        "class \ufffd[31mred\ufffd\tand \ufffdback \\udcff\nerror: \ufffd]0;owned\ufffd.npy: damaged\nsecond line\n"
    )
    assert capsys.readouterr().err == "error: \ufffd]0;owned\ufffd.npy: damaged\nsecond line\n"


def test_any_other_exception_leaves_a_traceback_in_log_and_stderr(tmp_path, capsys):
    path = tmp_path / "job.log"

    def step():
        return {}["missing"]

    with pytest.raises(SystemExit) as caught, logged_job(path):
        step()
    assert caught.value.code == 1
    for text in (path.read_text(), capsys.readouterr().err):
        assert text.startswith("Traceback (most recent call last):")
        assert "in step" in text
        assert "KeyError: 'missing'" in text


def test_a_log_of_an_earlier_run_is_replaced(tmp_path):
    path = tmp_path / "job.log"
    path.write_text("error: of yesterday\n")
    with logged_job(path):
        print("fine today")
    assert path.read_text() == "fine today\n"


def test_warnings_go_to_the_log(tmp_path, capsys):
    path = tmp_path / "job.log"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest collects warnings itself; here they are shown as in a job.
        warnings.showwarning = lambda message, *rest: print(f"warning: {message}", file=sys.stderr)
        with logged_job(path):
            warnings.warn("few samples", stacklevel=1)
    assert path.read_text() == "warning: few samples\n"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("code", [0, 3])
def test_a_step_that_exits_by_itself_keeps_its_status(tmp_path, code):
    with pytest.raises(SystemExit) as caught, logged_job(tmp_path / "job.log"):
        raise SystemExit(code)
    assert caught.value.code == code


def run_job(tmp_path, body):
    imports = "from gfscore import InputError\nfrom gfscore.workflow.jobs import logged_job\n"
    script = f"{imports}with logged_job('job.log'):\n    {body}\n"
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PACKAGE_FOLDER},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("error", ["", "\n        raise RuntimeError('half written')"])
def test_as_a_process_an_interruption_is_one_line_and_ends_by_its_signal(tmp_path, error):
    begun = "    try:\n        os.kill(os.getpid(), signal.SIGINT)\n        time.sleep(60)\n    finally:"
    unwound = f"{begun}\n        print('unwound'){error}"
    result = run_job(tmp_path, f"import os, signal, time\n{unwound}")
    assert result.returncode == -signal.SIGINT
    assert result.stderr == "interrupted, see job.log; run the same command again to go on\n"
    assert (tmp_path / "job.log").read_text() == f"unwound\n{result.stderr}"


FAULTS = """
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np

def ten_passes():
    for _ in range(10):
        # As the layers of a network do: freed together; as batches do: made by another thread than frees them.
        arrays = [*map(np.ones, sizes), *elsewhere.map(np.ones, sizes)]
        del arrays

sizes = [int(sys.argv[1]) << 17] * 2
with ThreadPoolExecutor(1) as elsewhere:
    ten_passes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    ten_passes()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be told to keep memory")
@pytest.mark.parametrize("mebibytes", [8, 48])
def test_memory_of_a_pass_is_kept_for_the_next_one(mebibytes):
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}

    def faults(**variables):
        command = [sys.executable, "-c", FAULTS, str(mebibytes)]
        return int(subprocess.run(command, env=others | variables, capture_output=True, text=True, check=True).stdout)

    # Pages of 4 KiB or 2 MiB, in 40 arrays.
    assert faults(**VARIABLES) < 20
    assert faults() > 100


def test_steps_keep_compiled_modules_where_python_is_asked_to_keep_none(tmp_path):
    """Each of them would compile torch again otherwise, which takes longer than importing it."""
    (tmp_path / "imported.py").touch()
    start = "import subprocess, sys; from gfscore.workflow.jobs import set_job_variables; set_job_variables(); "
    start += "subprocess.run([sys.executable, '-c', 'import imported'], check=True)"
    folders = os.pathsep.join([str(tmp_path), PACKAGE_FOLDER])
    environment = os.environ | {"PYTHONPATH": folders, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", start], env=environment, check=True)
    assert list(tmp_path.glob("__pycache__/imported.*.pyc"))
