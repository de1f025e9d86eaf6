"""How far each latent dimension of a mapper can move before a classifier's prediction changes, sample by sample."""

from gfscore.workflow.prepared import run_prepared

run_prepared(globals())

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import read_json
from gfscore.measures.job import MeasuringJob, measure_in_batches
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.networks.devices import hold_device
from gfscore.projection.boundaries import MeasuredSearch, measure_batch, require_same_shape
from gfscore.projection.mappers.conditions import conditions_by_sample
from gfscore.projection.mappers.fitting import open_mapper
from gfscore.workflow.jobs import logged_job


@dataclass(frozen=True)
class MapperFiles:
    """Files of a mapper.

    Parameters
    ----------
    weights, manifest : path
        Outputs of train_mapper.
    attributes : path or None
        Table of the attributes of the dataset; None for a mapper without conditions.
    """

    weights: Path | str
    manifest: Path | str
    attributes: Path | str | None


def project_attributes(job: MeasuringJob, mapper_files: MapperFiles) -> None:
    """Write the samples table of one model on one mapper.

    Parameters
    ----------
    job : MeasuringJob
        The model, the dataset, and a MeasuredSearch, the mapper's `search` in config.yaml.
    mapper_files : MapperFiles
    """
    manifest = read_json(mapper_files.manifest)
    # Heights and widths may differ: images are resized between mapper and classifier.
    dataset = read_json(job.dataset)
    require_same_shape(manifest, dataset, source=mapper_files.manifest, axes=slice(1))
    mapper = open_mapper(mapper_files.weights, sha256=manifest["sha256"])
    mapper.to(hold_device(job.device, gpu_percent=job.gpu_percent))

    search = cast(MeasuredSearch, job.settings)
    # The codes to start from, so that no part is kept that was searched from others.
    attributes_sha256 = sha256_of_file(mapper_files.attributes) if mapper_files.attributes else None
    settings = search.model_copy(
        update={
            "subset": search.drawable_subset(samples=dataset["samples"], classes=len(dataset["classes"])),
            "mapper_sha256": manifest["sha256"],
            "attributes_sha256": attributes_sha256,
        }
    )
    measure_in_batches(
        replace(job, settings=settings),
        partial(measure_batch, mapper=mapper, settings=settings),
        table=PROJECTION_TABLE,
        sample_keywords=conditions_by_sample(mapper_files.attributes, manifest["categories"]),
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        files = snakemake.input
        search = MeasuredSearch.model_validate(snakemake.params.settings)
        project_attributes(
            MeasuringJob.from_snakemake(snakemake, measure=snakemake.wildcards.mapper, settings=search),
            MapperFiles(files.weights, files.mapper, files.get("attributes")),
        )
