"""Snakemake with the display of gfscore.workflow.display; python -m gfscore.workflow.running takes its options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gfscore.workflow.jobs import DISPLAYED

FAILED = 3
"""Exit status where a step failed; 1 and 2 are those of verdicts."""

SCRIPTS = Path(__file__).resolve().parents[2]


def run_workflow(options: Sequence[str], *, cores: int | None = None) -> int:
    """Run Snakemake on a number of cores with some options; returns 0, or FAILED."""
    command = [sys.executable, "-m", "snakemake", "--rerun-incomplete", "--logger", "gfscore"]
    command += [*(["--cores", str(cores)] if cores else []), *options]
    path = os.pathsep.join(filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, DISPLAYED: "yes"}
    return FAILED if subprocess.run(command, env=environment, check=False).returncode else 0


if __name__ == "__main__":
    sys.exit(run_workflow(sys.argv[1:]))
