"""Which samples an attack can turn into which class."""

from gfscore.measures.job import measure_model, of_job
from gfscore.measures.targeted import measure_batch
from gfscore.workflow.jobs import logged_job


def target_model(files, path_to_samples, path_to_progress, **settings):
    """Write the samples table of one model; files and settings as `measure_model` takes them."""
    measure_model(files, path_to_samples, path_to_progress, measure_batch, **settings)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        target_model(**of_job(snakemake))
