"""The steps that made an audit's files, as Snakemake recorded them."""

import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDS = Path(".snakemake/metadata")
LOGS = Path("results/logs")

SCRIPT = re.compile(r"workflow_scripts/\w+\.py")
"""Script of a step in Snakemake's record of it."""

CLOCK = 0.01
"""Seconds by which two readings of one file's time may differ."""


@dataclass(frozen=True, kw_only=True)
class StepRun:
    """One execution of a step.

    Parameters
    ----------
    script : str
        Script of the step, relative to the folder of the workflow.
    name : str
        Name of the execution, distinct in a run: "judge_audit/digits".
    inputs, outputs : list of str
        Paths relative to the folder of the run; outputs are those that were asked for or that another step read.
    started, ended : float
        Seconds since 1970.
    """

    script: str
    name: str
    inputs: list[str]
    started: float
    ended: float
    outputs: list[str] = field(default_factory=list)


def recorded_steps(files: Iterable[str], *, root: Path, workflow: Collection[str]) -> list[StepRun]:
    """Executions that made these files, and the files that they were made of, in the order in which they started.

    What made a file is unknown where Snakemake has no record of it, or where it was replaced since.

    Parameters
    ----------
    files : iterable of str
        Results, relative to `root`.
    root : Path
        Folder of the run.
    workflow : collection of str
        Files of the workflow, its scripts among them; executions of others are left out.
    """
    steps: dict[str, StepRun] = {}
    waiting = list(files)
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        record = _record(path, root)
        if record is None:
            continue
        script = _script(record)
        if script is None or script not in workflow:
            continue
        name = Path(record["log"][0]).relative_to(LOGS).with_suffix("").as_posix()
        if name not in steps:
            steps[name] = StepRun(
                script=script,
                name=name,
                inputs=record["input"],
                started=record["starttime"],
                ended=record["endtime"],
            )
            new = [file for file in record["input"] if file not in seen]
            waiting += new
            seen.update(new)
        steps[name].outputs.append(path)
    for step in steps.values():
        step.outputs.sort()
    return sorted(steps.values(), key=lambda step: (step.started, step.name))


def _script(record: dict[str, Any]) -> str | None:
    # Script of a recorded step. The name of its rule is another one in a workflow that imports this.
    if not record["log"]:
        return None
    script = SCRIPT.search(record["code"] or "")
    if script:
        return script[0]
    log = Path(record["log"][0])
    if record["code"] or record["shellcmd"] or not log.is_relative_to(LOGS):
        return None
    # Of a workflow on GitHub Snakemake records no script; logs lie in folders that are called like it.
    return f"workflow_scripts/{log.relative_to(LOGS).parts[0]}.py"


def _record(path: str, root: Path) -> dict[str, Any] | None:
    # Snakemake names the record of a file by its path, in parts where that is longer than a file name may be.
    length = os.pathconf(root, "PC_NAME_MAX") - 1
    coded = urlsafe_b64encode(path.encode()).decode()
    parts = [coded[start : start + length] for start in range(0, len(coded), length)]
    folders = [f"@{part}" for part in parts[:-1]]
    file = root.joinpath(RECORDS, *folders, parts[-1])
    output = root / path
    if output.is_dir():
        output /= ".snakemake_timestamp"
    if not file.is_file() or not output.is_file():
        return None
    record = json.loads(file.read_text(encoding="utf-8"))
    if record["incomplete"] or abs(record["endtime"] - output.stat().st_mtime) > CLOCK:
        return None
    return record
