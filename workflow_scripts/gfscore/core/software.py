"""Version of this package and commit of its checkout, which results record.

Read inside the steps: as a parameter of a rule, every commit would make finished results out of date.
"""

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gfscore import VERSION

ROOT = Path(__file__).resolve().parents[3]
CODE = ("Snakefile", "rules", "workflow_scripts")
"""Paths of the checkout that hold code; an edited configuration is no changed code."""


@cache
def software() -> dict[str, str | bool | None]:
    """Version of this package, constant within a process.

    Returns
    -------
    dict
        name, version, commit, and changed (whether the code differs from that commit); the last two are None without a
        checkout or without git.
    """
    commit = _git("rev-parse", "--verify", "HEAD")
    changed = None
    if commit:
        # Without locks, so that a job does not interfere with the user's own git commands.
        differences = _git("--no-optional-locks", "status", "--porcelain", "--", *CODE)
        changed = None if differences is None else bool(differences)
    return {"name": "gfscore", "version": VERSION, "commit": commit, "changed": changed}


def version_in_words(made_by: Mapping[str, str | bool | None]) -> str:
    """Text of a mapping that software() returned: "0.1.0, commit 58e2f89..., code changed since"."""
    words = [str(made_by["version"])] if made_by["version"] else []
    if made_by["commit"]:
        words.append(f"commit {made_by['commit']}")
    if made_by["changed"]:
        words.append("code changed since")
    return ", ".join(words)


def _git(*arguments: str) -> str | None:
    """Output of a git command on the checkout; None where it fails."""
    # Named explicitly, so that git reads neither a repository around this folder nor the one of a calling hook.
    command = ["git", f"--git-dir={ROOT / '.git'}", f"--work-tree={ROOT}", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.check_output(
            command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, text=True, timeout=30
        ).strip()
    except (OSError, UnicodeError, subprocess.SubprocessError):
        return None
