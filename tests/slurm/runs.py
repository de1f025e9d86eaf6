"""Snakemake at work on a cluster, by the commands of docs/cluster.md."""

import shlex
import signal
import subprocess
import time
from pathlib import Path

from workflow.conftest import ROOT

DOCUMENT = ROOT / "docs/cluster.md"
TWO_MODELS = "tests/slurm/two_models.yaml"
PROFILE = "profiles/slurm-gpu/config.yaml"


def documented(words, *, run_id=""):
    """The one command of docs/cluster.md that contains some words, as a list."""
    beginnings = (".venv", "make", "sc")
    commands = {line for line in DOCUMENT.read_text().splitlines() if words in line and line.startswith(beginnings)}
    (command,) = commands
    return shlex.split(command.replace("<run ID>", run_id))


class Run:
    """The documented command at work in a copy of the repository, with options added."""

    def __init__(self, repository, *options):
        self.repository, self.path = repository, repository.path
        self.log = self.path / "run.log"
        command = [*documented("profiles/slurm-gpu"), "--configfile", "config.yaml", TWO_MODELS, *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=self.path, stdout=log, stderr=subprocess.STDOUT)

    def said(self):
        return self.log.read_text()

    def finish(self, *, within=900):
        """Wait for its end and require success."""
        assert self.process.wait(timeout=within) == 0, self.said()[-6000:]

    def jobs(self, step="", *, state=None):
        """Its SLURM jobs, in order of submission, as SLURM describes them: a mapping of texts for each."""
        text = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True, check=True)
        jobs = [dict(word.partition("=")[::2] for word in line.split()) for line in text.stdout.splitlines()]
        mine = [job for job in jobs if job.get("WorkDir") == str(self.path) and step in job["Comment"]]
        return sorted((job for job in mine if state in (None, job["JobState"])), key=lambda job: int(job["JobId"]))

    def wait_for_script(self, step, *, within=240):
        """Process of a step's script, as soon as it runs in this copy."""
        return self.wait(lambda: next(scripts_of(self.path, step), None), f"script of {step}", within=within)

    def wait(self, look, what, *, within):
        deadline = time.monotonic() + within
        while not (found := look()):
            assert self.process.poll() is None, f"ended without {what}:\n{self.said()[-6000:]}"
            assert time.monotonic() < deadline, f"no {what} within {within} s:\n{self.said()[-6000:]}"
            time.sleep(0.1)
        return found

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def scripts_of(folder, step):
    """Process numbers of the scripts of a step that run in a folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            if (process / "cwd").readlink() == folder and any(word.endswith(f".{step}.py") for word in words):
                yield int(process.name)
        except OSError:  # it has ended meanwhile
            continue


def job_of(process):
    """Number of the SLURM job that a process belongs to."""
    variables = (Path("/proc") / str(process) / "environ").read_text().split("\0")
    return dict(variable.partition("=")[::2] for variable in variables)["SLURM_JOB_ID"]
