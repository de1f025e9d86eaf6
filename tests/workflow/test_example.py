"""The finished audit in docs/example agrees with today's code."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example"

pytestmark = pytest.mark.workflow


def test_the_example_is_what_its_values_give_today():
    """Every table and the verdict are computed again from values per sample, scores from the logits."""
    command = [sys.executable, "-P", "-m", "gfscore.workflow.command", "verify", str(EXAMPLE), "--require", "logits"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_is_small():
    size = sum(path.stat().st_size for path in EXAMPLE.rglob("*") if path.is_file())
    assert size < 1_000_000
