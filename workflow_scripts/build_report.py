"""The page of an audit: one self-contained file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import write_checksummed
from gfscore.show.page.report import drawn_page
from gfscore.workflow.jobs import logged_job


def build_report(files: Mapping[str, Any], path_to_page: Path | str, *, audit: str, **settings: Any) -> None:
    """Write report.html from the audit's tables and verdict.json.

    Takes files and settings as drawn_page does. Raises InputError for a verdict on other files than there are now.
    """
    read_verdict(files["verdict"]).require_current(files["verdict"])
    write_checksummed(path_to_page, drawn_page(files, audit=audit, **settings), files=files.values())


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        build_report(
            dict(snakemake.input.items()),
            snakemake.output.page,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
