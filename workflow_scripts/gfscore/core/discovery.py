"""Discovery of sources, attacks, measures, metrics and charts by their modules, so that none is listed anywhere."""

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
    """The object that each module of a package must define.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    modules : iterable of ModuleInfo
        Its modules; DECLARATION, which says what the others declare, is passed over.
    kind : type
        Class of the objects. For the class Metric, the object is called METRIC, and its `name` is the name of its
        module.

    Returns
    -------
    list
        One object per module, in their order.

    Raises
    ------
    InputError
        Naming the file, for a module without one.
    """
    constant = kind.__name__.upper()
    objects = []
    for info in modules:
        if info.name == DECLARATION:
            continue
        module = import_module(f"{package}.{info.name}")
        declared = getattr(module, constant, None)
        if not isinstance(declared, kind) or getattr(declared, "name", None) != info.name:
            raise InputError(
                f"{module.__file__}: holds no {kind.__name__.lower()} of this name; add {constant} = "
                f"{kind.__name__}(name={info.name!r}, ...)"
            )
        objects.append(declared)
    return objects


def declarations(package: str, name: str) -> dict[str, Any]:
    """Objects of one name that the modules of a package define at top level.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    name : str
        Name of the objects, such as "SOURCE".

    Returns
    -------
    dict
        Objects by module name, in alphabetical order; a module that defines none is not imported.
    """
    defines = re.compile(rf"^{name}(:.*)? = ", flags=re.MULTILINE)
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    result = {}
    for info in sorted(iter_modules(folders), key=lambda info: info.name):
        path = Path(info.module_finder.path, info.name)  # type: ignore[union-attr]
        path = path / "__init__.py" if info.ispkg else path.with_suffix(".py")
        if path.is_file() and defines.search(path.read_text(encoding="utf-8")):
            result[info.name] = getattr(import_module(f"{package}.{info.name}"), name)
    return result
