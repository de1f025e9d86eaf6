"""The page of an audit: one self-contained file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.audit_tables import read_audit_tables
from gfscore.audit.calibration.sweeps import read_sweeps
from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.evidence import require_current
from gfscore.core.checksummed import write_checksummed
from gfscore.core.files import read_json
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.page.provenance import provenance
from gfscore.show.page.rendering import render_page
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def build_report(files: Mapping[str, Any], path_to_page: Path | str, *, audit: str, **settings: Any) -> None:
    """Write report.html from the audit's tables and verdict.json.

    `files` maps the tables of an audit, verdict and, where there are any, sweeps, costs and the mappers' pictures to
    paths; the settings are those of render_page. Raises InputError for a verdict on other files than there are now.
    """
    verdict = read_json(files["verdict"])
    require_current(verdict, source=files["verdict"])
    page = render_page(
        read_audit_tables({name: path for name, path in files.items() if name != "costs"}, audit=audit),
        verdict,
        provenance=provenance(files),
        sweeps=read_sweeps(files["sweeps"], audit=audit) if files.get("sweeps") else None,
        costs=read_table(files["costs"], TABLES["costs"], expect={"audit": audit}) if files.get("costs") else None,
        pictures=read_all_pictures(files.get("pictures") or ()),
        **settings,
    )
    write_checksummed(path_to_page, page, files=files.values())


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        build_report(
            dict(snakemake.input.items()),
            snakemake.output.page,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
