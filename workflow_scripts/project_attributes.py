"""How far each latent dimension of a mapper can move before a classifier's prediction changes, sample by sample."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import read_json
from gfscore.measures.job import MeasuringJob, measure_in_batches
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.networks.devices import resolve_device
from gfscore.projection.boundaries import KIND, measure_batch, require_same_shape
from gfscore.projection.mappers.conditions import conditions_by_sample
from gfscore.projection.mappers.declared import Search
from gfscore.projection.mappers.fitting import open_mapper
from gfscore.workflow.jobs import logged_job


def project_attributes(job: MeasuringJob, *, mapper_files: Mapping[str, Any]) -> None:
    """Write the samples table of one model on one mapper.

    Parameters
    ----------
    job : MeasuringJob
        The model, the dataset, and the mapper's `search` in config.yaml as settings.
    mapper_files : mapping
        Paths of the `weights` and `manifest` of train_mapper, and of the table of `attributes` of the dataset; None for
        a mapper without conditions.
    """
    manifest = read_json(mapper_files["manifest"])
    # Heights and widths may differ: images are resized between mapper and classifier.
    require_same_shape(manifest, read_json(job.dataset), source=mapper_files["manifest"], axes=slice(1))
    mapper = open_mapper(mapper_files["weights"], sha256=manifest["sha256"])
    mapper.to(resolve_device(job.device, gpu_percent=job.gpu_percent))

    # Nothing is drawn in a search; measure_in_batches seeds every sample all the same.
    settings = {**job.settings, "kind": KIND, "mapper_sha256": manifest["sha256"], "seed": 0}
    if mapper_files["attributes"]:
        # The codes to start from, so that no part is kept that was searched from others.
        settings["attributes_sha256"] = sha256_of_file(mapper_files["attributes"])
    measure_in_batches(
        replace(job, settings=settings),
        partial(measure_batch, mapper=mapper, settings=Search.model_validate(job.settings)),
        table=PROJECTION_TABLE,
        of_samples=conditions_by_sample(mapper_files["attributes"], manifest["categories"]),
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = snakemake.input
        project_attributes(
            MeasuringJob.from_snakemake(
                snakemake, measure=snakemake.wildcards.mapper, settings=snakemake.params.settings
            ),
            mapper_files={"weights": files.weights, "manifest": files.mapper, "attributes": files.get("attributes")},
        )
