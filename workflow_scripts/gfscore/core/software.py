"""Which software made a result: the version of this package, and the commit of the checkout that it ran from.

Read inside the steps that write it down: as a setting of a rule, every commit would make finished results out of date.
"""

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gfscore import VERSION

ROOT = Path(__file__).resolve().parents[3]
CODE = ("Snakefile", "rules", "workflow_scripts")
"""What computes, in the checkout; its configuration, which is there to be changed, does not count."""


@cache
def software() -> dict[str, Any]:
    """Mapping with name, version, commit and changed, whether the code differs from that commit.

    The last two are None where there is no checkout, or no git that reads it. The same all through a process.
    """
    commit = _git("rev-parse", "--verify", "HEAD")
    # Without the locks, so that a job never gets in the way of its user's own git.
    differing = _git("--no-optional-locks", "status", "--porcelain", "--", *CODE) if commit else None
    changed = None if differing is None else bool(differing)
    return {"name": "gfscore", "version": VERSION, "commit": commit, "changed": changed}


def version_in_words(made_by: Mapping[str, Any]) -> str:
    """Version and commit of a mapping that software() gave, as text: "0.1.0, commit 58e2f89..., code changed since"."""
    commit = made_by["commit"] and f"commit {made_by['commit']}"
    return ", ".join(filter(None, [made_by["version"], commit, made_by["changed"] and "code changed since"]))


def _git(*arguments):
    """What git prints about the checkout; None where it fails."""
    # Named, so that neither a repository around this folder nor one that a hook was called for is asked instead.
    command = ["git", f"--git-dir={ROOT / '.git'}", f"--work-tree={ROOT}", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.check_output(
            command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, text=True, timeout=30
        ).strip()
    except (OSError, UnicodeError, subprocess.SubprocessError):
        return None
