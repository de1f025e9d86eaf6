"""Snakemake with a display of its own; python -m gfscore.workflow.running takes the options of Snakemake.

The display shows steps done, time left, what is running and how far that is: on a terminal one line that moves,
elsewhere a line now and then, and a dot every few seconds between. What goes wrong is shown once, by the step itself.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gfscore.core.errors import InputError
from gfscore.core.mappings import without
from gfscore.core.names import harmless, shell_word, shortened
from gfscore.workflow.config_files import read_file
from gfscore.workflow.jobs import DISPLAYED

if TYPE_CHECKING:
    from rich.status import Status

FAILED = 3
"""Exit status where a step failed; 1 and 2 stand for verdicts."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as of shells."""

SNAKEMAKE = """\
import sys
try:
    from snakemake.cli import main
    main()
except KeyboardInterrupt:
    sys.exit(1)
"""
"""Snakemake without a traceback where Ctrl-C comes while it starts."""

SCRIPTS = Path(__file__).resolve().parents[2]

TICK = 8.0
"""Seconds between two signs of life where there is no terminal."""

TICKS_PER_LINE = 3
"""A new line says how far the run is; between them stand dots."""

QUICK = 0.5
"""Seconds between two states of the line on a terminal."""

LONGEST = 70
"""Characters of the last line of a step's log that are shown."""

TAIL = 2000
"""Bytes at the end of a step's log that are read."""

LEAST_DONE = 3
"""Finished steps from which the time of the others is extrapolated."""

SHOWN_STEPS = 2
"""Running steps that are named."""

LOCATION = re.compile(r"WorkflowError( in file .*)?:?$|WorkflowError in file|  File \".*\", line \d+, in ")
"""Line of a message that says where in a rule file it was raised, which says nothing of its cause."""

SPLIT_BY_A_SHELL = re.compile(r"[\s\"'$&|;<>()*?`\\]")
"""Characters that make other words of a path, where nothing quotes it."""

SECONDS_LEFT = re.compile(r"about (\d+) s left")


def run_workflow(options: Sequence[str], *, cores: int | None = None) -> int:
    """Run Snakemake.

    Parameters
    ----------
    options : sequence of str
        Options of Snakemake.
    cores : int or None
        Number of cores; None where the options name it.

    Returns
    -------
    int
        Exit status: 0, FAILED or INTERRUPTED.

    Raises
    ------
    InputError
        For a configuration file that is not YAML: Snakemake would name neither file nor line. For an environment in a
        folder with a blank, say, in its path. For a folder that cannot be written to.
    """
    if SPLIT_BY_A_SHELL.search(sys.executable):
        raise InputError(
            f"{sys.executable}: Snakemake starts Python by this path without quotes, so that a blank or a quote in "
            "it fails; move the folder, or put the environment elsewhere: make audit VENV=/path/of/environment"
        )
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    parser.add_argument("--directory", "-d", type=Path, default=Path())
    known_options = parser.parse_known_args(options)[0]
    for configuration in known_options.configfile:
        read_file(configuration)
    require_writable(known_options.directory)

    command = [sys.executable, "-c", SNAKEMAKE, "--rerun-incomplete", "--logger", "gfscore"]
    if cores:
        command += ["--cores", str(cores)]
    command += options

    folders = [str(SCRIPTS), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, folders))
    environment = {**os.environ, "PYTHONPATH": path, DISPLAYED: "yes"}
    process = subprocess.Popen(command, env=environment)
    interrupted = False
    while process.returncode is None:
        try:
            process.wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches Snakemake as well, which ends its jobs and unlocks the folder.
            interrupted = True
    if interrupted:
        return INTERRUPTED
    return FAILED if process.returncode else 0


def require_writable(folder: Path) -> None:
    """Raise InputError for a folder in which a run could not write its results."""
    # Where a part is not there yet, the folder that it will be made in.
    for part in (folder / ".snakemake", folder / "results"):
        place = part if part.exists() else folder
        if place.exists() and not os.access(place, os.W_OK):
            clone = f"git clone {shell_word(str(folder.resolve()))} my-clone"
            raise InputError(f"{place.resolve()}: cannot be written to; work in a clone of your own: {clone}")


def main(options: Sequence[str]) -> int:
    """Run Snakemake with some options, printing what is wrong with its files; returns the exit status."""
    try:
        return run_workflow(options)
    except InputError as error:
        print(f"error: {harmless(str(error))}", file=sys.stderr)
        return FAILED


# ---- display ----


@dataclass
class Step:
    """A running step: what it does, and the file that says how far it is."""

    words: str
    log: Path | None
    started: float = field(default_factory=time.monotonic)

    def progress(self) -> str:
        """Last line of the log, empty where there is none."""
        if self.log is None or not self.log.is_file():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


class Display:
    """What the records of Snakemake's log say, shown on a stream until close().

    Parameters
    ----------
    dry : bool
        Whether it is a dry run, whose steps are listed instead.
    stream : text stream or None
        Where to show it; None for stderr.
    """

    def __init__(self, *, dry: bool = False, stream: TextIO | None = None) -> None:
        """Show nothing yet."""
        self.stream = stream or sys.stderr
        self.dry = dry
        self.steps: dict[int, Step] = {}
        self.done = 0
        self.total = 0
        self.started = time.monotonic()
        self.failed = False
        self._plan_shown = False
        self._status: Status | None = None
        self._line_open = False
        self._ticks = 0
        self._lock = threading.RLock()
        self._end = threading.Event()
        if not dry:
            threading.Thread(target=self._keep_alive, daemon=True).start()

    # ---- what Snakemake says ----

    def take(self, record: logging.LogRecord) -> None:
        """Note what a record of Snakemake's log says."""
        event = str(getattr(record, "event", None) or "")
        with self._lock:
            if event == "job_info":
                self._start_step(record)
            elif event == "job_finished":
                self.steps.pop(_number(record, "job_id"), None)
            elif event == "progress":
                self.done = _number(record, "done")
                self.total = _number(record, "total")
                if self.done == self.total:
                    # What the workflow says at its end stands on lines of its own.
                    self.close()
            elif event == "run_info":
                self._take_plan(getattr(record, "stats", {}))
            elif event in ("job_error", "group_error") or getattr(record, "exception", None) == "RuleException":
                # The step has said why, in its own words.
                self.failed = True
            elif not event and "Nothing to be done" in str(record.msg):
                self._say("Nothing to do: all that is asked for is there; .venv/bin/gfscore gate NAME says the verdict")
            elif (event == "error" or record.levelno >= logging.WARNING) and not self.failed:
                self._say(_message(record))

    def _start_step(self, record: logging.LogRecord) -> None:
        rule = str(getattr(record, "rule_name", ""))
        wildcards = dict(getattr(record, "wildcards", {}) or {})
        logs = list(getattr(record, "log", []) or [])
        log = Path(logs[0]) if logs else None
        self.steps[_number(record, "jobid")] = Step(words_of(rule, wildcards), log)

    def _take_plan(self, stats: Mapping[str, int]) -> None:
        self.total = int(stats.get("total", 0))
        if self._plan_shown:
            return
        self._plan_shown = True
        if self.dry:
            counts = [f"{count} {name.replace('_', ' ')}" for name, count in without(stats, ["total"]).items()]
            self._say(f"{self.total} steps: {', '.join(counts)}")
        elif self.total:
            self._say(f"{self.total} {'step' if self.total == 1 else 'steps'}")

    # ---- what is shown ----

    def state(self) -> str:
        """Progress of the run, in a line."""
        running = list(self.steps.values())
        parts = [f"{self.done} of {self.total} steps", *self._time_left(running)]
        words = ", ".join(step.words for step in running[:SHOWN_STEPS])
        if len(running) > SHOWN_STEPS:
            words += f" and {len(running) - SHOWN_STEPS} more"
        if words:
            parts.append(words)
        progress = running[-1].progress() if running else ""
        if progress:
            parts.append(shortened(progress, LONGEST))
        return harmless("; ".join(parts))

    def _time_left(self, running: Iterable[Step]) -> list[str]:
        seconds_left = []
        for step in running:
            match = SECONDS_LEFT.search(step.progress())
            if match:
                seconds_left.append(int(match[1]))
        if self.done < LEAST_DONE and not seconds_left:
            return []
        seconds_per_step = (time.monotonic() - self.started) / max(self.done, 1)
        seconds = max([seconds_per_step * (self.total - self.done), *seconds_left])
        if seconds >= 90:
            return [f"about {seconds / 60:.0f} min left"]
        return [f"about {seconds:.0f} s left"]

    def _say(self, text: str) -> None:
        if text:
            self._take_line_down()
            print(text, file=self.stream, flush=True)
            self._ticks = 0

    def _keep_alive(self) -> None:
        terminal = self.stream.isatty()
        while not self._end.wait(QUICK if terminal else TICK):
            with self._lock:
                if self.failed or not self.total:
                    continue
                if terminal:
                    self._draw()
                elif self._ticks % TICKS_PER_LINE == 0:
                    self._take_line_down()
                    print(self.state(), end="", file=self.stream, flush=True)
                    self._line_open = True
                else:
                    print(" .", end="", file=self.stream, flush=True)
                self._ticks += 1

    def _draw(self) -> None:
        # Imported late: most runs draw on no terminal.
        from rich.console import Console
        from rich.status import Status
        from rich.text import Text

        if self._status is None:
            self._status = Status("", console=Console(file=self.stream))
            self._status.start()
        self._status.update(Text(self.state()))

    def _take_line_down(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._line_open:
            print(file=self.stream, flush=True)
            self._line_open = False

    def close(self) -> None:
        """Stop showing anything."""
        self._end.set()
        with self._lock:
            self._take_line_down()


def words_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """What a step does: "measure adversarial-linf-8of255 of net"."""
    subject = ""
    for name in ("model", "mapper", "audit", "dataset"):
        subject = subject or wildcards.get(name, "")
    if "measure" not in wildcards:
        return f"{rule.replace('_', ' ')} {subject}".strip()
    verb = f"measure {wildcards['measure']}"
    return f"{verb} of {subject}" if subject else verb


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage() if record.msg is not None else str(getattr(record, "exception", ""))
    lines = [line for line in text.strip().splitlines() if not LOCATION.match(line)]
    if record.levelno >= logging.ERROR:
        lines[0] = f"error: {lines[0]}"
    return harmless("\n".join(lines))


def _number(record: logging.LogRecord, name: str) -> int:
    return int(getattr(record, name, 0) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
