"""Discovery of sources, measures and metrics by their modules, so that none of them has to be listed anywhere.

Imports nothing heavy, because the Snakefile imports it.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any


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
