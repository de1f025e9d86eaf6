"""One measure of one model: every kind that shows images to a network."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from dataclasses import replace
from functools import partial
from typing import cast

from gfscore.measures import KINDS, named_measures
from gfscore.measures.declaration import NetworkSettings
from gfscore.measures.job import MeasuringJob, measure_in_batches
from gfscore.measures.samples import table_of
from gfscore.networks.precision import FULL
from gfscore.workflow.jobs import logged_job


def measure_model(job: MeasuringJob, *, search: str = FULL, cores: int = 1) -> None:
    """Write the samples table of one measure of one model.

    Parameters
    ----------
    job : MeasuringJob
        What is measured, and where it is written.
    search : str
        Setting `inference: search`, for kinds whose attacks follow it.
    cores : int
        Cores of the job, for kinds that search for several samples at once.
    """
    kind = KINDS[job.settings.kind]
    measure_batch = partial(kind.load(), settings=job.settings)
    if kind.most_cores > 1:
        measure_batch = partial(measure_batch, cores=min(cores, kind.most_cores))
    measure_in_batches(
        replace(job, batch_size=min(job.batch_size, kind.most_at_once)),
        measure_batch,
        table=table_of(kind.name),
        require=kind.require_suitable,
        gradients_alone=kind.gradients_alone(job.settings),
        with_copies=kind.copies,
        search=search if kind.fast_search else FULL,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        measure = named_measures({snakemake.wildcards.measure: snakemake.params.settings})[snakemake.wildcards.measure]
        settings = cast(NetworkSettings, measure.settings)
        job = MeasuringJob.from_snakemake(snakemake, measure=measure.name, settings=settings)
        measure_model(job, search=snakemake.resources.search, cores=snakemake.threads)
