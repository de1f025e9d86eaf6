"""Foreign readers of what is exported, which live in an environment of their own (make validators)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "validators"
PYTHON = Path(f"{sys.prefix}-validators/bin/python")


def of_validator(script, *arguments):
    """What a script of tests/validators/ prints, read as JSON."""
    if not PYTHON.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no {PYTHON}: make validators")
    command = [PYTHON, SCRIPTS / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOCAL_CODE = "process-run-crate-0.5_5.1"
"""Check that wants what was executed to have an address on the web; the profile allows a file in the crate as well."""


def faults_of_crate(folder, *published_code):
    """What roc-validator finds, required or recommended, in a Provenance Run Crate.

    Parameters
    ----------
    folder : path
        Folder of the crate.
    published_code : str
        Address of the code, and the folder whose files are there; without them it is not expected to have one.
    """
    arguments = [str(argument) for argument in published_code]
    result = of_validator("crate_findings.py", str(folder), "provenance-run-crate", *arguments)
    assert result["checks"] > 150
    assert {
        "process-run-crate-0.5",
        "workflow-run-crate-0.5",
        "provenance-run-crate-0.5",
        "workflow-ro-crate-1.0",
    } < set(result["profiles"])
    if published_code:
        return result["findings"]
    return [finding for finding in result["findings"] if not _of_local_code(folder, finding)]


def _of_local_code(folder, finding):
    file = finding["about"].removeprefix(f"file://{folder}/")
    return finding["check"] == LOCAL_CODE and (Path(folder) / file).is_file()
