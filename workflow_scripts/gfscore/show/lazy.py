"""Heavy modules for declarations of charts: `from gfscore.show.lazy import drawing, np, pd`.

They are imported when one of their names is first used; type checkers see the modules themselves.
"""

from typing import TYPE_CHECKING

from gfscore.core.lazy import LazyModule, np, pd

if TYPE_CHECKING:
    from gfscore.show import drawing
else:
    drawing = LazyModule("gfscore.show.drawing")

__all__ = ["drawing", "np", "pd"]
