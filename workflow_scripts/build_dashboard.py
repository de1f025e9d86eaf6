"""The dashboard of an audit: one self-contained page that recomputes while its reader looks."""

from datetime import UTC, datetime
from pathlib import Path

from gfscore.audit.audit_tables import read_audit_tables
from gfscore.audit.calibration.sweeps import read_sweeps
from gfscore.audit.tables import TABLES
from gfscore.core.checksummed import write_checksummed
from gfscore.core.files import read_json
from gfscore.show.dashboard.rendering import render_dashboard
from gfscore.show.report.provenance import provenance
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.jobs import logged_job


def build_dashboard(files, path_to_page, *, audit, **settings):
    """Write dashboard.html from the audit's tables, verdict.json and its sweeps.

    `files` maps what build_report takes but the figures, and sweeps, costs and parts to paths; the settings are those
    of render_dashboard.
    """
    # Not the day of measuring, which may be earlier: class scores are summarised anew after many an edit.
    summarised = datetime.fromtimestamp(Path(files["class_scores"]).stat().st_mtime, UTC)
    page = render_dashboard(
        read_audit_tables(files, audit=audit),
        read_json(files["verdict"]),
        audit=audit,
        provenance=provenance(files),
        summarised=f"{summarised:%-d %B %Y}",
        sweeps=read_sweeps(files["sweeps"], audit=audit) if files.get("sweeps") else {},
        costs=read_table(files["costs"], TABLES["costs"], expect={"audit": audit}) if files.get("costs") else None,
        shared=read_json(files["parts"]) if files.get("parts") else None,
        **settings,
    )
    write_checksummed(path_to_page, page, files=files.values())


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        build_dashboard(
            dict(snakemake.input.items()),
            snakemake.output.page,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
