"""What every dashboard of a run has in common, made once for all: library of the charts, charts and claims."""

from dataclasses import asdict
from functools import cache

PARTS = ("library", "charts", "claims")


@cache
def shared_parts():
    """The PARTS by name: JavaScript of Vega, Vega-Lite and vega-embed, specifications of all charts, and the ledger.

    They depend on this package and its libraries alone, and take longer to make than the rest of a page.
    """
    import vl_convert

    from gfscore.dashboard.charts import charts
    from gfscore.reproduction import ledger

    return {
        "library": vl_convert.javascript_bundle().replace("</script", "<\\/script"),
        "charts": charts(),
        "claims": [asdict(claim) for claim in ledger()],
    }
