"""Attributes of samples, such as age or slant: the groups that fairness between groups is about.

A source is one module in this folder: a declaration, `SOURCE`, that says which settings an entry `attributes` has (see
`_declared`), and a function `open_source(settings, dataset)` that returns a data frame of raw columns by sample
identifier (its index) and imports what it needs when it is called. The names exported here are loaded on first use,
because declarations are read whenever a run is planned.
"""

from importlib import import_module
from typing import Any

_EXPORTS = {name: "gfscore.images.attributes._reading" for name in ("Dataset", "attributes_of", "identity_of")}

__all__ = ["Dataset", "attributes_of", "identity_of"]


def __getattr__(name: str) -> Any:
    """Load an exported name on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
