"""Discovery of sources, measures and metrics by their modules, so that none of them has to be listed anywhere."""

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import ModuleInfo, iter_modules
from typing import Any, TypeVar

from gfscore.core.errors import InputError

DECLARATION = "declaration"
"""The module of a package that says what its other modules declare."""

T = TypeVar("T")


def required_declarations(package: str, modules: Iterable[ModuleInfo], kind: type[T]) -> list[T]:
    """The object that each of the modules of a package must define, but DECLARATION, which says what they are.

    Of the class Metric, say, it is called METRIC, and its `name` is that of its module. Raises InputError, naming the
    file, for a module without one.
    """
    found = []
    for module in modules:
        if module.name == DECLARATION:
            continue
        loaded, constant = import_module(f"{package}.{module.name}"), kind.__name__.upper()
        declared = getattr(loaded, constant, None)
        if not isinstance(declared, kind) or getattr(declared, "name", None) != module.name:
            raise InputError(
                f"{loaded.__file__}: holds no {kind.__name__.lower()} of this name; add {constant} = "
                f"{kind.__name__}(name={module.name!r}, ...)"
            )
        found.append(declared)
    return found


def declarations(package: str, name: str) -> dict[str, Any]:
    """Objects called `name` that the modules of a package define at top level, by module name in alphabetical order.

    A module that defines none is not imported.
    """
    declares = re.compile(rf"^{name}(:.*)? = ", flags=re.MULTILINE)
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    result = {}
    for module in sorted(iter_modules(folders), key=lambda module: module.name):
        place = Path(module.module_finder.path, module.name)  # type: ignore[union-attr]
        path = place / "__init__.py" if module.ispkg else place.with_suffix(".py")
        if path.is_file() and declares.search(path.read_text(encoding="utf-8")):
            result[module.name] = getattr(import_module(f"{package}.{module.name}"), name)
    return result
