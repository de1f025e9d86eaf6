"""Modules that are imported when one of their names is first used.

Every run of Snakemake imports all declarations, so these must not import heavy libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when it is first asked for a name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Object of that name in the module, stored as an attribute, since tables use some names a million times."""
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
else:
    np = LazyModule("numpy")
    pd = LazyModule("pandas")

__all__ = ["LazyModule", "np", "pd"]
