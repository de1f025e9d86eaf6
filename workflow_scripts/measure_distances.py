"""Distance of every sample to the nearest adversarial example that attacks find."""

from gfscore.measures.job import measure_model, of_job
from gfscore.measures.minimal import measure_batch
from gfscore.workflow.jobs import logged_job


def measure_distances(files, path_to_samples, path_to_progress, **settings):
    """Write the samples table of one model; files and settings as `measure_model` takes them."""
    measure_model(files, path_to_samples, path_to_progress, measure_batch, **settings)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        measure_distances(**of_job(snakemake))
