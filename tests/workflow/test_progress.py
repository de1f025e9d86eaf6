"""What a run says while it goes: which step starts, once, and one line where it is interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(40)]

DATASET = "results/datasets/digits.json"
TRAINED = "results/trained/digits/none/PGD"


def test_make_shows_how_far_a_run_is_and_a_failed_step_by_its_own_words(fresh_copy):
    repository = fresh_copy()
    code, text = repository.make("audit", f"ARGS=-- {DATASET}")
    assert code == 0 and "1 steps" not in text and "\n1 step" in text and "rule fetch_dataset" not in text
    (repository.path / "workflow_scripts/fetch_dataset.py").write_text(
        "from gfscore.core.errors import InputError\nfrom gfscore.workflow.jobs import logged_job\n\n"
        "with logged_job(snakemake.log[0]):\n    raise InputError('a.npz: is wrong; mend it')\n"
    )
    (repository.path / DATASET).unlink()
    code, text = repository.make("audit", f"ARGS=-- {DATASET}")
    assert code != 0 and text.count("a.npz: is wrong") == 1 and "\nerror: a.npz: is wrong; mend it\n" in text
    assert "Traceback" not in text and "RuleException" not in text and "CalledProcessError" not in text


def test_a_killed_step_is_said_to_have_run_out_of_memory(fresh_copy):
    repository = fresh_copy()
    script = repository.path / "workflow_scripts/fetch_dataset.py"
    script.write_text("import os\n\nos.kill(os.getpid(), 9)\n")
    killed = repository.snakemake("--", DATASET, check=False).text
    assert "A step was killed (SIGKILL): usually by the system, because memory ran out." in killed
    script.write_text("raise SystemExit(1)\n")
    failed = repository.snakemake("--", DATASET, check=False).text
    assert "A step failed: " in failed and "SIGKILL" not in failed


def test_an_interrupted_step_is_one_line_and_leaves_nothing_half_written(fresh_copy):
    repository = fresh_copy()
    log = repository.path / "results/logs/train_model/digits/none/PGD.log"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "rules", "host", "--", f"{TRAINED}.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # A session of its own, as a terminal gives it, which sends Ctrl-C to every process of it.
    with subprocess.Popen(command, cwd=repository.path, start_new_session=True, **pipes) as run:
        deadline = time.monotonic() + 120
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        # Into the step itself.
        time.sleep(1)
        os.killpg(run.pid, signal.SIGINT)
        text, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    # What was said is what tells why, where this fails.
    assert text.count("interrupted, see results/logs/train_model/digits/none/PGD.log") == 1, text + log.read_text()
    assert "Traceback" not in text and "KeyboardInterrupt" not in text
    assert "Interrupted; run the same command again to go on." in text and "A step failed" not in text
    assert not list((repository.path / "results/trained").rglob("*PGD*"))
