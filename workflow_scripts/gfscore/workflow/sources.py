"""Source files of a script: itself, the modules of this package that it imports, and data files beside them."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gfscore.measures import kind_of
from gfscore.workflow import plan

PACKAGE = "gfscore"
# Regular expressions, since parsing all files of the package would take a fifth of the time of a dry run.
MODULE = rf"{PACKAGE}[\w.]*"
FROM = re.compile(rf"^[ \t]*from[ \t]+({MODULE})[ \t]+import[ \t]+(\([^)]*\)|.*)", flags=re.MULTILINE)
IMPORT = re.compile(r"^[ \t]*import[ \t]+(.*)", flags=re.MULTILINE)
TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)*", flags=re.MULTILINE)
TEXT = re.compile(rf"""["']({MODULE}|[^"'\s]*\.csv)["']""")
DISCOVERY = re.compile(r"\biter_modules\(__path__\)")


def sources_of(path_to_script: Path | str, *modules: str) -> list[Path]:
    """Paths, sorted, of a script and of the modules of the package that it imports, transitively, with data files.

    `modules` names further modules that the script imports by name at run time. No code is run. Counted are import
    statements anywhere in a file, quoted module names ("gfscore.images.attributes.digits") and names of CSV files
    beside a module, and all files of a package that discovers its modules with pkgutil.iter_modules: a new metric
    changes the steps that use all metrics. Imports for types (if TYPE_CHECKING) and gfscore/__init__.py, which affect
    no result, are not counted.
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
    """Paths of the package's files in a folder that one file imports or names."""
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
    """Paths in a folder of the modules of the package among `names`."""
    stems = [folder / name.replace(".", "/") for name in names if name.startswith(f"{PACKAGE}.")]
    candidates = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    return {file for file in candidates if file.is_file()}


def modules_of_kinds(
    config: Mapping[str, Any], audit: str | None = None, measure: str | None = None, **others: Any
) -> tuple[str, ...]:
    """Names, sorted, of the modules of the kinds of measures that a job depends on.

    With those of the attacks that these measures name. Of a job about one measure all that its kind consists of; of one
    about an audit, or the whole run, the declarations of its measures; of one about a model alone, nothing.
    """
    if measure:
        kind = kind_of(config["measures"][measure])
        named = [part.split(":")[0] for part in (kind.function, kind.imported) if part]
        return tuple(sorted({*_declarations_of(config["measures"][measure]), *named}))
    audits = [audit] if audit else [] if others else config["run"]
    entries = [entry for name in audits for entry in plan.measures_of(config, name).values()]
    return tuple(sorted({module for entry in entries for module in _declarations_of(entry)}))


def _declarations_of(entry):
    # Modules that declare a measure's kind, and what its settings name.
    kind = kind_of(entry)
    return kind.module, *kind.named(kind.parse(entry))
