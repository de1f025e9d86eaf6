"""Heavy modules for declarations of charts, imported when one of their names is first used.

Every run of Snakemake imports all declarations, which therefore import neither numpy nor pandas nor matplotlib:
`from gfscore.show.lazy import drawing, np, pd`. Type checkers see the modules themselves.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from gfscore.show import drawing
else:

    class LazyModule:
        """A module that is imported when it is first asked for a name."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            """The module's object of that name."""
            return getattr(import_module(self._name), name)

    np = LazyModule("numpy")
    pd = LazyModule("pandas")
    drawing = LazyModule("gfscore.show.drawing")

__all__ = ["drawing", "np", "pd"]
