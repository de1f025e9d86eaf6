"""The page of an audit, drawn from the files that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gfscore.audit.calibration.evidence import read_sweeps
from gfscore.audit.tables import TABLES, read_audit_tables
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.page.provenance import provenance
from gfscore.show.page.rendering import render_page
from gfscore.tables.parquet_tables import read_table


def drawn_page(files: Mapping[str, Any], *, audit: str, **settings: Any) -> str:
    """Text of report.html; equal files, settings and versions of the software give an equal text.

    `files` maps the tables of an audit, verdict and, where there are any, sweeps, costs and the mappers' pictures to
    paths; the settings are those of render_page.
    """
    return render_page(
        read_audit_tables({name: path for name, path in files.items() if name != "costs"}, audit=audit),
        read_verdict(files["verdict"]),
        provenance=provenance(files),
        sweeps=read_sweeps(files["sweeps"], audit=audit) if files.get("sweeps") else None,
        costs=read_table(files["costs"], TABLES["costs"], expect={"audit": audit}) if files.get("costs") else None,
        pictures=read_all_pictures(files.get("pictures") or ()),
        **settings,
    )
