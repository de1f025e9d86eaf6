"""Snakemake with the display of gfscore.workflow.display; python -m gfscore.workflow.running takes its options."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.names import harmless
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
