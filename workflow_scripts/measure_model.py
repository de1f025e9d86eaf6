"""One measure of one model: every kind that shows images to a network."""

from functools import partial

from gfscore.measures import kind_of
from gfscore.measures.job import MeasuringJob, measure_in_batches
from gfscore.measures.samples import table_of
from gfscore.networks.precision import FULL
from gfscore.workflow.jobs import logged_job


def measure_model(job: MeasuringJob, *, search: str = FULL) -> None:
    """Write the samples table of one measure of one model.

    Parameters
    ----------
    job : MeasuringJob
        What is measured, and where it is written.
    search : str
        Setting `inference: search`, for kinds whose attacks follow it.
    """
    kind = kind_of(job.settings)
    measure_in_batches(
        job,
        partial(kind.load(), settings=kind.parse(job.settings)),
        table=table_of(kind.name),
        with_copies=kind.copies,
        search=search if kind.fast_search else FULL,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        job = MeasuringJob.from_snakemake(
            snakemake, measure=snakemake.wildcards.measure, settings=snakemake.params.settings
        )
        measure_model(job, search=snakemake.resources.search)
