"""Write or check requirements.licences: the licence of every package of requirements.lock but those of NVIDIA's CUDA.

    python tools/licences.py            read from the installed packages
    python tools/licences.py --check    what a test runs: every pin has its line, and says what the package says

A licence is the package's own SPDX expression; where it has none, its classifiers, its short text, or the first line of
the licence file that it ships, in this order.
"""

import argparse
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from install import ACCELERATOR, entries

ROOT = Path(__file__).resolve().parent.parent
LOCK, LICENCES = ROOT / "requirements.lock", ROOT / "requirements.licences"

KNOWN = {}
"""Licences, read at their source, of packages that state none in a form understood here."""

LONGEST = 60
"""Characters of a licence's name; what is longer is its text."""


def pins():
    """Pairs (name, version) of requirements.lock that this system installs beside CUDA, in its order."""
    locked = entries(LOCK.read_text(encoding="utf-8"))[1]
    wanted = [Requirement(entry.split(" \\\n")[0]) for name, entry in locked.items() if not ACCELERATOR.match(name)]
    return [
        (pin.name, str(pin.specifier).removeprefix("==")) for pin in wanted if not pin.marker or pin.marker.evaluate()
    ]


def licence_of(name):
    """Licence that a package states about itself; None when it states none."""
    if name in KNOWN:
        return KNOWN[name]
    package = distribution(name)
    about = package.metadata
    classifiers = [text.split(" :: ")[-1] for text in about.get_all("Classifier") or [] if text.startswith("License")]
    short = (about.get("License") or "").strip()
    stated = [about.get("License-Expression"), " or ".join(classifiers), short if "\n" not in short else ""]
    return next((text for text in stated if text and len(text) < LONGEST * 4), None) or _from_file(package)


def _from_file(package):
    files = [file for file in package.files or [] if re.search(r"(LICEN[CS]E|COPYING)[^/]*$", str(file))]
    for file in files:
        lines = file.locate().read_text(encoding="utf-8", errors="replace").splitlines()
        title = next((line.strip() for line in lines if line.strip()), "")
        if "licen" in title.lower() and len(title) < LONGEST:
            return title
        # The text of the MIT licence, whose title is often left out.
        if any("Permission is hereby granted, free of charge" in line for line in lines):
            return "MIT License"
    return None


def text():
    """Text of requirements.licences, and the names of the packages that state no licence."""
    found = [(name, version, licence_of(name)) for name, version in pins()]
    lines = [f"{name}=={version} {' '.join(licence.split())}\n" for name, version, licence in found if licence]
    return "".join(lines), [name for name, _, licence in found if not licence]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something disagrees")
    lines, unknown = text()
    if unknown:
        sys.exit(f"no licence stated by {', '.join(unknown)}; read it at its source and add it to KNOWN")
    if not parser.parse_args().check:
        LICENCES.write_text(lines, encoding="utf-8")
    elif not LICENCES.is_file() or LICENCES.read_text(encoding="utf-8") != lines:
        sys.exit("requirements.licences does not follow from the installed packages; run python tools/licences.py")
