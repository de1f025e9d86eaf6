"""The parts that all dashboards of a run have in common."""

from gfscore.core.files import write_json
from gfscore.show.dashboard.shared import shared_parts
from gfscore.workflow.jobs import logged_job


def prepare_dashboards(path_to_parts):
    """Write library and chart specifications as JSON, for build_dashboard to put into each page."""
    write_json(path_to_parts, shared_parts())


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        prepare_dashboards(snakemake.output.parts)
