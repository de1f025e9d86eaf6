"""Certified l2 radius of the randomly smoothed classifier at every sample."""

from gfscore.measures.job import measure_model, of_job
from gfscore.measures.smoothing import measure_batch
from gfscore.workflow.jobs import logged_job


def certify_model(files, path_to_samples, path_to_progress, **settings):
    """Write the samples table of one model; files and settings as `measure_model` takes them."""
    measure_model(files, path_to_samples, path_to_progress, measure_batch, **settings)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        certify_model(**of_job(snakemake))
