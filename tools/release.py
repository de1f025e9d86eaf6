"""Build a release, and try it as a user gets it: `make release`.

Version, changelog, citation and tag must agree. Wheel and source distribution are built into dist/. Each is installed
in an empty environment with nothing but what it requires. There the Python blocks of docs/notebook.md that need no
torch must print what the page shows, and the logits of docs/example must have the class values of the example's table.
Without a tag at the commit it is a rehearsal, and says what a release still needs.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALLED_TRIAL = ROOT / "tools" / "installed_trial.py"


class Disagreement(Exception):
    """Two places that name the version say different things."""


def version_of(root: Path) -> str:
    """Version that the package, the citation and the newest heading of the changelog name.

    Raises
    ------
    Disagreement
        Where they differ.
    """
    places = {
        "workflow_scripts/gfscore/__init__.py": r'^VERSION = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\S+)",
    }
    versions = {}
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        if match is None:
            raise Disagreement(f"{name}: names no version")
        versions[name] = match[1]
    if len(set(versions.values())) > 1:
        pairs = ", ".join(f"{version} in {name}" for name, version in versions.items())
        raise Disagreement(f"one version is needed, but there are {pairs}; correct those that are wrong")
    return versions["CHANGELOG.md"]


def missing_for_a_release(root: Path, version: str) -> list[str]:
    """What the commit still needs to be the release of a version; nothing for one that is.

    Raises
    ------
    Disagreement
        Where the commit has a tag of another version.
    """
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", changelog, flags=re.MULTILINE)
    tags = _git(root, "tag", "--points-at", "HEAD", "--list", "v*").split()
    if tags and tags != [f"v{version}"]:
        raise Disagreement(f"the commit is tagged {', '.join(tags)}, but its version is {version}")

    missing = []
    if not dated:
        missing.append(f"the date of the release in CHANGELOG.md: ## {version} (YYYY-MM-DD)")
    if _git(root, "status", "--porcelain"):
        missing.append("a commit of what has changed")
    if not tags:
        missing.append(f"a tag: git tag v{version}")
    return missing


def build(root: Path, folder: Path) -> list[Path]:
    """Wheel and source distribution, written anew into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    _uv("build", "--quiet", "--out-dir", str(folder), str(root))
    return [*folder.resolve().glob("*.whl"), *folder.resolve().glob("*.tar.gz")]


def try_installed(distribution: Path) -> None:
    """Install a distribution in an empty environment, and run the trial with it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        python = environment / "bin" / "python"
        _uv("venv", "--quiet", "--python", sys.executable, str(environment))
        _uv("pip", "install", "--quiet", "--python", str(python), str(distribution))
        # Isolated, and elsewhere: nothing of this checkout can be imported.
        command = [python, "-I", INSTALLED_TRIAL, ROOT / "docs"]
        subprocess.run(command, cwd=folder, env=os.environ | {"MPLBACKEND": "agg"}, check=True)


def _uv(*arguments: str) -> None:
    subprocess.run([Path(sys.executable).with_name("uv"), *arguments], check=True)


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Check, build and try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        version = version_of(ROOT)
        missing = missing_for_a_release(ROOT, version)
        distributions = build(ROOT, ROOT / "dist")
        for distribution in distributions:
            print(f"{distribution.name}: installed in an empty environment", flush=True)
            try_installed(distribution)
    except Disagreement as error:
        sys.exit(f"error: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(map(str, error.cmd))} failed with status {error.returncode}")

    if missing:
        print(f"A rehearsal of {version}. A release still needs:")
        for need in missing:
            print(f"- {need}")
    else:
        print(f"Release {version}: dist/ holds what is uploaded; git push --tags")


if __name__ == "__main__":
    main()
