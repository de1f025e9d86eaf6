"""Code of the steps: source files of a script, and all files of the workflow."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from gfscore.measures import NamedMeasure

PACKAGE = "gfscore"

DATA_FILES = (".csv", ".mplstyle")
"""Ends of the names of data files that modules read: tables, and the look of figures."""

# Regular expressions, since parsing all files of the package would take a fifth of the time of a dry run.
MODULE = rf"{PACKAGE}[\w.]*"
FROM_IMPORT = re.compile(rf"^[ \t]*from[ \t]+({MODULE})[ \t]+import[ \t]+(\((?:[^)#]|#.*)*\)|.*)", flags=re.MULTILINE)
PLAIN_IMPORT = re.compile(r"^[ \t]*import[ \t]+(.*)", flags=re.MULTILINE)
TYPE_CHECKING_BLOCK = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)*", flags=re.MULTILINE)
QUOTED_NAME = re.compile(rf"""["']({MODULE}|[^"'\s]*(?:{"|".join(map(re.escape, DATA_FILES))}))["']""")
DISCOVERS_MODULES = re.compile(r"\biter_modules\(__path__\)")

WORKFLOW = (
    "rules/**/*",
    "workflow_scripts/**/*",
    "envs/*",
    "profiles/**/*",
    "config.yaml",
    "configs/*.yaml",
    "requirements.lock",
    "tools/install.py",
    "LICENSE",
    "CITATION.cff",
    "README.md",
)
"""Glob patterns of the workflow's files, besides its Snakefile."""

GENERATED_FOLDERS = re.compile(r"__pycache__|\..*|.*\.egg-info")
"""Names of folders that Python and tools make, left out of exports."""


def sources_of(path_to_script: Path | str, *modules: str) -> list[Path]:
    """Source files of a script: itself, the modules of the package that it imports, transitively, and their data files.

    No code is run. The script and each of its modules need

    - modules of import statements, anywhere in it,
    - modules whose names stand in quotes ("gfscore.images.attributes.digits"),
    - data files in its folder whose names stand in quotes,
    - an __init__.py whose package itself is imported from,
    - all files of its folder, if it discovers them with pkgutil.iter_modules: a new metric changes the steps that use
      all metrics.

    Imports for types (if TYPE_CHECKING) and gfscore/__init__.py affect no result and are left out.

    Parameters
    ----------
    path_to_script : path
        Script, in the folder that holds the package.
    *modules : str
        Further modules that the script imports by name at run time.

    Returns
    -------
    list of Path
        Sorted.
    """
    folder = Path(path_to_script).parent
    sources: set[Path] = set()
    unread = {Path(path_to_script), *module_files(modules, folder)}
    while unread:
        path = unread.pop()
        sources.add(path)
        if path.suffix == ".py":
            unread |= needed_files(path, folder) - sources
    return sorted(sources)


@cache
def needed_files(path: Path, folder: Path) -> set[Path]:
    """Files of the package in a folder that one file needs, not the files that these need."""
    text = TYPE_CHECKING_BLOCK.sub("", path.read_text(encoding="utf-8"))
    names = set(QUOTED_NAME.findall(text))
    for module, imported in FROM_IMPORT.findall(text):
        names.add(module)
        names.update(f"{module}.{name}" for name in re.findall(r"\w+", imported))
    for imported in PLAIN_IMPORT.findall(text):
        names.update(re.findall(MODULE, imported))

    files = module_files(names, folder)
    for name in names:
        if name.endswith(DATA_FILES) and (path.parent / name).is_file():
            files.add(path.parent / name)
    if DISCOVERS_MODULES.search(text):
        files.update(path.parent.glob("*.py"))
    return files


def module_files(names: Iterable[str], folder: Path) -> set[Path]:
    """Files in a folder of the modules of the package among `names`."""
    files = set()
    for name in names:
        if not name.startswith(f"{PACKAGE}."):
            continue
        stem = folder / name.replace(".", "/")
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if file.is_file():
                files.add(file)
    return files


def declaring_modules(measures: Iterable[NamedMeasure]) -> tuple[str, ...]:
    """Modules that declare these kinds of measures and the attacks in their settings, sorted.

    With the functions of those that steps of an audit compute: from logits, or from other measures.
    """
    modules: set[str] = set()
    for measure in measures:
        modules.add(measure.kind.module)
        modules.update(measure.kind.attack_modules(measure.settings))
        if measure.kind.needs != "network":
            modules.add(measure.kind.function.partition(":")[0])
    return tuple(sorted(modules))


def modules_of_measure(measure: NamedMeasure) -> tuple[str, ...]:
    """Modules of a measure, sorted: its declarations, and the functions that compute or import its values."""
    modules = set(declaring_modules([measure]))
    for function in (measure.kind.function, measure.kind.imported):
        if function:
            modules.add(function.partition(":")[0])
    return tuple(sorted(modules))


def workflow_files(root: Path) -> list[str]:
    """Paths of the Snakefile and all other files of the workflow, relative to the folder `root`."""
    paths = set()
    for pattern in WORKFLOW:
        for path in root.glob(pattern):
            relative = path.relative_to(root)
            if path.is_file() and not any(map(GENERATED_FOLDERS.fullmatch, relative.parent.parts)):
                paths.add(relative.as_posix())
    return ["Snakefile", *sorted(paths)]
