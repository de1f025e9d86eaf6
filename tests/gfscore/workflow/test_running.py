"""Snakemake as the commands run it, and the display of a run: what it says of Snakemake's records."""

import io
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow import running
from gfscore.workflow.running import Display, words_of


@pytest.mark.parametrize("option", [["--configfile", "good.yaml", "bad.yaml"], ["--configfiles=bad.yaml"]])
def test_a_file_that_is_no_yaml_is_named_with_its_line_before_snakemake_starts(option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **how: pytest.fail("Snakemake was started"))
    (tmp_path / "good.yaml").write_text("run: [digits]\n")
    (tmp_path / "bad.yaml").write_text("run: [digits]\naudits: {\n")
    options = [*option, "--config", "run=[digits]", "--", "gate"]
    with pytest.raises(InputError, match=r"bad.yaml, line 3: not YAML"):
        running.run_workflow(options)
    assert running.main(options) == running.FAILED
    assert capsys.readouterr().err.startswith("error: bad.yaml, line 3: not YAML")


def test_snakemake_gets_the_options_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text("run: [digits]\n")
    commands = []
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: commands.append(command) or done)
    assert running.main(["--configfile", "good.yaml", "--dry-run"]) == 0
    assert commands[0][:3] == [sys.executable, "-c", running.SNAKEMAKE]
    assert commands[0][-3:] == ["--configfile", "good.yaml", "--dry-run"]


def test_a_folder_that_cannot_be_written_to_is_named_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **how: pytest.fail("Snakemake was started"))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).resolve() != tmp_path)
    with pytest.raises(InputError, match=rf"{tmp_path}: cannot be written to; .*git clone {tmp_path} my-clone"):
        running.run_workflow([])
    # Results and the notes of Snakemake may lie on another disk.
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "results").mkdir()
    running.require_writable(Path())


def test_make_passes_targets_after_options_that_would_take_them_for_values():
    command = ["make", "--dry-run", "audit", "CONFIG=a.yaml", "RUN=a", "CORES=2", "ARGS=exports"]
    printed = subprocess.run(command, cwd=running.SCRIPTS.parent, capture_output=True, text=True, check=True).stdout
    assert printed.endswith("--configfile \"a.yaml\" --config 'run=[a]' --cores 2 exports\n")


def test_an_environment_whose_path_a_shell_splits_is_refused_with_another_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **how: subprocess.CompletedProcess([], 0))
    monkeypatch.setattr(sys, "executable", "/home/Zoë/gfscore/.venv/bin/python")
    assert running.run_workflow([]) == 0
    monkeypatch.setattr(sys, "executable", "/home/my files/gfscore/.venv/bin/python")
    with pytest.raises(InputError, match=r"my files.*VENV="):
        running.run_workflow([])


INTERRUPTED = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    pathlib.Path("started").touch()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    pathlib.Path("unlocked").touch()
    sys.exit(1)
"""
"""Stands for Snakemake, which takes a moment after Ctrl-C to end its jobs and to unlock the folder."""

STARTING = """
import pathlib, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
pathlib.Path("started").touch()
time.sleep(60)
"""
"""Stands for Snakemake while it imports."""


def said_after_ctrl_c(stub, folder):
    """What a run says on stderr that is interrupted while a stub of Snakemake runs."""
    (folder / "snakemake").mkdir()
    (folder / "snakemake/__init__.py").touch()
    (folder / "snakemake/cli.py").write_text(stub)
    scripts = Path(running.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "gfscore.workflow.running", "--cores", "1"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{scripts}{os.pathsep}{folder}"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not (folder / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    return said


def test_after_ctrl_c_snakemake_has_the_time_to_unlock_the_folder(tmp_path):
    assert "Traceback" not in said_after_ctrl_c(INTERRUPTED, tmp_path)
    assert (tmp_path / "unlocked").exists()


def test_ctrl_c_while_snakemake_starts_ends_it_without_a_word(tmp_path):
    assert said_after_ctrl_c(STARTING, tmp_path) == ""


def record(event=None, level=logging.INFO, message=None, **fields):
    made = logging.LogRecord("snakemake", level, "x", 1, message, None, None)
    for name, value in {"event": event, **fields}.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def shown():
    """A display and the stream that it shows on; no time passes for it."""
    made = Display(dry=True, stream=io.StringIO())
    yield made
    made.close()


def started(number, rule, log=(), **wildcards):
    return record("job_info", jobid=number, rule_name=rule, wildcards=wildcards, log=[str(file) for file in log])


def test_the_state_tells_steps_what_runs_and_how_far_that_is(shown, tmp_path):
    log = tmp_path / "a.log"
    shown.take(record("run_info", stats={"measure_model": 9, "total": 10}))
    shown.take(started(1, "measure_model", [log], measure="clean", model="net", dataset="d"))
    assert shown.state() == "0 of 10 steps; measure clean of net"
    log.write_text("part 1 of 4: done, about 200 s left\n")
    shown.take(record("progress", done=1, total=10))
    assert shown.state().endswith("measure clean of net; part 1 of 4: done, about 200 s left")
    assert "about 3 min left" in shown.state()
    shown.take(record("job_finished", job_id=1))
    assert "net" not in shown.state()


def test_a_plan_is_told_once(shown):
    for _ in range(2):
        shown.take(record("run_info", stats={"fetch_dataset": 2, "train_model": 1, "total": 3}))
    assert shown.stream.getvalue() == "3 steps: 2 fetch dataset, 1 train model\n"


def test_what_snakemake_says_of_a_failed_step_is_left_out(shown):
    shown.take(record("job_error"))
    shown.take(record("error", logging.ERROR, "RuleException in file x, line 3", exception="RuleException"))
    shown.take(record(None, logging.ERROR, "Exiting because a job execution failed."))
    assert shown.stream.getvalue() == ""


def test_an_error_before_the_first_step_is_told_without_where_a_rule_raised_it(shown):
    text = 'WorkflowError in file "rules/common.smk", line 42:\nfiles are missing\n  File "rules/common.smk", line 42, in <module>'
    shown.take(record("error", logging.ERROR, text, exception="WorkflowError"))
    shown.take(record(None, logging.INFO, "Building DAG of jobs..."))
    assert shown.stream.getvalue() == "error: files are missing\n"


def test_control_characters_of_names_are_not_shown(shown):
    shown.take(started(1, "train_model", model="a\x1b[31mb"))
    shown.take(record("run_info", stats={"total": 1}))
    assert "\x1b" not in shown.state()


def test_signs_of_life_come_every_few_seconds(monkeypatch):
    monkeypatch.setattr(running, "TICK", 0.05)
    stream = io.StringIO()
    made = Display(stream=stream)
    made.take(record("run_info", stats={"total": 5}))
    made.take(started(1, "score_models", audit="demo"))
    made._end.wait(0.6)
    # What the workflow says at its end stands on lines of its own.
    made.take(record("progress", done=5, total=5))
    assert stream.getvalue().endswith("\n")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "5 steps" and lines[1].startswith("0 of 5 steps; score models demo . .")
    assert len(lines) > 2


@pytest.mark.parametrize(
    ("rule", "wildcards", "expected"),
    [
        ("measure_model", {"measure": "clean", "model": "A", "dataset": "d"}, "measure clean of A"),
        ("train_model", {"model": "A", "zoo": "z"}, "train model A"),
        ("build_index", {}, "build index"),
        ("judge_audit", {"audit": "demo"}, "judge audit demo"),
    ],
)
def test_steps_have_words(rule, wildcards, expected):
    assert words_of(rule, wildcards) == expected
