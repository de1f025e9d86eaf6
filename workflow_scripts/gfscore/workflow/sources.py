"""Which files a script consists of: itself, the modules of this package that it imports, and the data beside them.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = "gfscore"
# Expressions, because parsing all files of the package would be a fifth of the time that a dry run takes.
MODULE = rf"{PACKAGE}[\w.]*"
FROM = re.compile(rf"^[ \t]*from[ \t]+({MODULE})[ \t]+import[ \t]+(\([^)]*\)|.*)", flags=re.MULTILINE)
IMPORT = re.compile(r"^[ \t]*import[ \t]+(.*)", flags=re.MULTILINE)
TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)*", flags=re.MULTILINE)
TEXT = re.compile(rf"""["']({MODULE}|[^"'\s]*\.csv)["']""")
DISCOVERY = re.compile(r"\biter_modules\(__path__\)")


def sources_of(path_to_script: Path | str, *modules: str) -> list[Path]:
    """Script and the modules of the package that it imports, transitively, with their data; a sorted list of paths.

    So too of more `modules`, by name, that it finds by itself.

    Found without running anything: import statements anywhere in the file, module names that stand as text in a
    registry (gfscore.images.attributes.digits, in quotes), names of CSV files beside a module
    (imagenet_classes.csv, in quotes), and all files of a package that discovers its modules by iter_modules of
    pkgutil. So a step that looks through the metrics has a new file among its code, and one that uses a single metric
    has that file alone. The sources of images, found by their files, belong to fetch_dataset: it has a version
    (versions.yaml). What is imported for types alone (if TYPE_CHECKING) changes no result and is left out.
    gfscore/__init__.py is left out: it holds no computation, and would tie every script to every other.
    """
    folder = Path(path_to_script).parent
    found, waiting = set(), {Path(path_to_script), *files_of(modules, folder)}
    while waiting:
        path = waiting.pop()
        found.add(path)
        if path.suffix == ".py":
            waiting |= named_in(path, folder) - found
    return sorted(found)


@cache
def named_in(path: Path, folder: Path) -> set[Path]:
    """Files of the package in a folder that one file imports or names, a set of paths."""
    text = TYPES.sub("", path.read_text(encoding="utf-8"))
    names = set(TEXT.findall(text))
    for module, imported in FROM.findall(text):
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", imported))}
    for imported in IMPORT.findall(text):
        names |= set(re.findall(MODULE, imported))
    data = {path.parent / name for name in names if name.endswith(".csv")}
    discovered = set(path.parent.glob("*.py")) if DISCOVERY.search(text) else set()
    return files_of(names, folder) | {file for file in data if file.is_file()} | discovered


def files_of(names: Iterable[str], folder: Path) -> set[Path]:
    """Files in a folder of those names that are modules of the package, a set of paths."""
    stems = [folder / name.replace(".", "/") for name in names if name.startswith(f"{PACKAGE}.")]
    candidates = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    return {file for file in candidates if file.is_file()}
