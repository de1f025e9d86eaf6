"""Which files a script consists of: itself, the modules of this package that it imports, and their reference data.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import ast
from functools import cache
from pathlib import Path

PACKAGE = "gfscore"
REFERENCE = f"{PACKAGE}/reference"
"""Folder of the data that modules read, as CSV files."""


def sources_of(path_to_script):
    """Script and the modules of the package that it imports, transitively, with their data; a sorted list of paths.

    Found without running anything: import statements anywhere in the file, module names that stand as text in a
    registry ("gfscore.datasets.digits"), and names of files of REFERENCE ("imagenet_classes.csv"). gfscore/__init__.py
    is left out: it holds no computation, and would tie every script to every other.
    """
    found, waiting = set(), {Path(path_to_script)}
    while waiting:
        path = waiting.pop()
        found.add(path)
        if path.suffix == ".py":
            waiting |= _named_in(path, Path(path_to_script).parent) - found
    return sorted(found)


@cache
def _named_in(path, folder):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    stems = [folder / name.replace(".", "/") for name in names if name.startswith(f"{PACKAGE}.") and " " not in name]
    candidates = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    candidates += [folder / REFERENCE / name for name in names if name.endswith(".csv")]
    return {file for file in candidates if file.is_file()}
