"""What every dashboard of a run has in common, made once for all: library of the charts, and charts."""

from __future__ import annotations

from functools import cache
from typing import Any

PARTS = ("library", "charts")


@cache
def shared_parts() -> dict[str, Any]:
    """The PARTS by name: JavaScript of Vega, Vega-Lite and vega-embed, and specifications of all charts.

    They depend on this package and its libraries alone, and take longer to make than the rest of a page.
    """
    import vl_convert

    from gfscore.show.dashboard.charts import charts

    return {
        "library": vl_convert.javascript_bundle().replace("</script", "<\\/script"),  # type: ignore[call-arg]
        "charts": charts(),
    }
