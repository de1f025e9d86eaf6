"""Snakemake with the display of gfscore.workflow.running; python -m gfscore.workflow.running takes its options."""

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
from typing import Any, TextIO

from gfscore.core.errors import InputError
from gfscore.core.names import harmless, shortened
from gfscore.workflow.config_files import read_file
from gfscore.workflow.jobs import DISPLAYED

FAILED = 3
"""Exit status where a step failed; 1 and 2 are those of verdicts."""

SCRIPTS = Path(__file__).resolve().parents[2]


def run_workflow(options: Sequence[str], *, cores: int | None = None) -> int:
    """Run Snakemake on a number of cores with some options; returns 0, or FAILED.

    Raises InputError for a configuration file that is not YAML: Snakemake would name neither file nor line.
    """
    for path in _configuration_files(options):
        read_file(path)
    command = [sys.executable, "-m", "snakemake", "--rerun-incomplete", "--logger", "gfscore"]
    command += [*(["--cores", str(cores)] if cores else []), *options]
    path = os.pathsep.join(filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, DISPLAYED: "yes"}
    return FAILED if subprocess.run(command, env=environment, check=False).returncode else 0


def _configuration_files(options: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    return list(parser.parse_known_args(options)[0].configfile)


def main(options: Sequence[str]) -> int:
    """Run Snakemake with some options, printing what is wrong with its files; returns the exit status."""
    try:
        return run_workflow(options)
    except InputError as error:
        print(f"error: {harmless(str(error))}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


# ---- display ----


TICK = 8.0
"""Seconds between two signs of life where there is no terminal."""

TICKS_PER_LINE = 3
"""A new line says how far the run is; between them stand dots."""

QUICK = 0.5
"""Seconds between two states of the line on a terminal."""

LONGEST = 70
TAIL = 2000
"""Bytes at the end of a step's log that are read."""

AROUND = r"WorkflowError( in file .*)?:?$|WorkflowError in file|  File \".*\", line \d+, in "
KNOWN_LEFT = re.compile(r"about (\d+) s left")


@dataclass
class Step:
    """A running step: what it does, and the file that says how far it is."""

    words: str
    log: Path | None
    started: float = field(default_factory=time.monotonic)

    def progress(self) -> str:
        """Last line of its log, empty where there is none."""
        if self.log is None or not self.log.is_file():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


class Display:
    """What take() was told, shown on a stream until close(). `dry`: a dry run, whose steps are listed instead."""

    def __init__(self, *, dry: bool = False, stream: TextIO | None = None) -> None:
        """Show nothing yet."""
        self.stream = stream or sys.stderr
        self.dry = dry
        self.steps: dict[int, Step] = {}
        self.done, self.total, self.started = 0, 0, time.monotonic()
        self.failed = self.said_plan = False
        self._lock, self._end, self._ticks, self._open = threading.RLock(), threading.Event(), 0, False
        self._line: Any = None
        self._planned: dict[str, int] = {}
        self._thread = threading.Thread(target=self._keep_alive, daemon=True)
        if not dry:
            self._thread.start()

    # ---- what Snakemake says ----

    def take(self, record: logging.LogRecord) -> None:
        """Note what a record of Snakemake's log says."""
        event = str(getattr(record, "event", None) or "")
        with self._lock:
            if event == "job_info":
                self._started(record)
            elif event == "job_finished":
                self.steps.pop(_number(record, "job_id"), None)
            elif event == "progress":
                self.done, self.total = _number(record, "done"), _number(record, "total")
            elif event == "run_info":
                stats: Mapping[str, int] = getattr(record, "stats", {})
                self.total = int(stats.get("total", 0))
                self._planned = {name: count for name, count in stats.items() if name != "total"}
                if not self.said_plan:
                    self._say(self._plan())
                self.said_plan = True
            elif event in ("job_error", "group_error") or getattr(record, "exception", None) == "RuleException":
                # The step has said why, in its own words.
                self.failed = True
            elif not event and "Nothing to be done" in str(record.msg):
                self._say("Nothing to do: all that is asked for is there; .venv/bin/gfscore gate NAME says the verdict")
            elif (event == "error" or record.levelno >= logging.WARNING) and not self.failed:
                self._say(self._message(record))

    def _started(self, record):
        rule, wildcards = str(getattr(record, "rule_name", "")), dict(getattr(record, "wildcards", {}) or {})
        logs = list(getattr(record, "log", []) or [])
        self.steps[_number(record, "jobid")] = Step(words_of(rule, wildcards), Path(logs[0]) if logs else None)

    def _message(self, record):
        text = record.getMessage() if record.msg is not None else str(getattr(record, "exception", ""))
        # Where in a rule file a message was raised, which says nothing of its cause.
        lines = [line for line in text.strip().splitlines() if not re.match(AROUND, line)]
        return harmless("\n".join([f"error: {lines[0]}" if record.levelno >= logging.ERROR else lines[0], *lines[1:]]))

    def _plan(self):
        if self.dry:
            counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self._planned.items())
            return f"{self.total} steps: {counts}"
        return f"{self.total} {'step' if self.total == 1 else 'steps'}" if self.total else ""

    # ---- what is shown ----

    def state(self) -> str:
        """How far the run is, in a line."""
        running = list(self.steps.values())
        words = ", ".join(step.words for step in running[:2]) + (f" and {len(running) - 2} more" if running[2:] else "")
        said = [progress for step in running[-1:] if (progress := step.progress())]
        parts = [f"{self.done} of {self.total} steps", *self._left(running), *filter(None, [words])]
        return harmless("; ".join([*parts, *(shortened(text, LONGEST) for text in said)]))

    def _left(self, running: Iterable[Step]) -> list[str]:
        stated = [int(found[1]) for step in running if (found := KNOWN_LEFT.search(step.progress()))]
        if self.done < 3 and not stated:
            return []
        rest = self.total - self.done
        by_steps = (time.monotonic() - self.started) / max(self.done, 1) * rest
        seconds = max([by_steps, *stated])
        return [f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"]

    def _say(self, text: str) -> None:
        if text:
            self._take_line_down()
            print(text, file=self.stream, flush=True)
            self._ticks = 0

    def _keep_alive(self):
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
                    self._open = True
                else:
                    print(" .", end="", file=self.stream, flush=True)
                self._ticks += 1

    def _draw(self):
        if self._line is None:
            from rich.console import Console
            from rich.status import Status

            self._line = Status("", console=Console(file=self.stream))
            self._line.start()
        from rich.text import Text

        self._line.update(Text(self.state()))

    def _take_line_down(self):
        if self._line is not None:
            self._line.stop()
            self._line = None
        if self._open:
            print(file=self.stream, flush=True)
            self._open = False

    def close(self) -> None:
        """Stop showing anything."""
        self._end.set()
        with self._lock:
            self._take_line_down()


def words_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """What a step does: "measure adversarial-linf-8of255 of net"."""
    of = wildcards.get("model") or wildcards.get("mapper") or wildcards.get("audit") or wildcards.get("dataset") or ""
    verb = rule.replace("_", " ")
    if "measure" in wildcards:
        verb = f"measure {wildcards['measure']}"
    return f"{verb} of {of}" if "measure" in wildcards and of else f"{verb} {of}".strip()


def _number(record, name):
    return int(getattr(record, name, 0) or 0)
