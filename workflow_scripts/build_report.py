"""The report of an audit: one self-contained page."""

from pathlib import Path

from gfscore.audit.audit_tables import read_audit_tables
from gfscore.core.checksummed import write_checksummed
from gfscore.core.files import read_json
from gfscore.show.report.page import render_report
from gfscore.show.report.provenance import provenance
from gfscore.workflow.jobs import logged_job


def build_report(files, path_to_page, *, audit, title, measures, models, published_samples, fp_lambda, contact):
    """Write report.html from the audit's tables, verdict.json and the figures.

    `files` maps what plot_figures takes, and verdict and figures (the folder) to paths; the settings are those of
    render_report.
    """
    drawn = sorted(Path(files["figures"]).glob("*.svg"))
    page = render_report(
        read_audit_tables(files, audit=audit),
        read_json(files["verdict"]),
        {path.stem: path.read_text(encoding="utf-8") for path in drawn},
        title=title,
        measures=measures,
        models=models,
        published_samples=published_samples,
        fp_lambda=fp_lambda,
        provenance=provenance(files),
        contact=contact,
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
