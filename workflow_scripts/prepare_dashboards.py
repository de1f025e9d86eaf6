"""The parts that all dashboards of a run have in common."""

from gfscore.dashboard.shared import shared_parts
from gfscore.files import write_json
from gfscore.jobs import logged_job

if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        write_json(snakemake.output.parts, shared_parts())
