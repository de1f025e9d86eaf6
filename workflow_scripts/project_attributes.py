"""How far each latent dimension of a mapper can move before a classifier's prediction changes, sample by sample."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import read_json
from gfscore.measures.job import measure_in_batches, of_job
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.networks.devices import resolve_device
from gfscore.projection.boundaries import KIND, measure_batch, require_same_shape
from gfscore.projection.mappers.conditions import conditions_by_sample
from gfscore.projection.mappers.fitting import open_mapper
from gfscore.workflow.jobs import logged_job


def project_attributes(
    files: Mapping[str, Any],
    path_to_samples: Path | str,
    path_to_progress: Path | str,
    *,
    mapper_files: Mapping[str, Any],
    settings: Mapping[str, Any],
    **how: Any,
) -> None:
    """Write the samples table of one model on one mapper; files and settings as `measure_in_batches` takes them.

    `mapper_files` maps weights and manifest of train_mapper to paths, and attributes to the table of the dataset, or to
    nothing; `settings` are the mapper's `search` in config.yaml.
    """
    manifest = read_json(mapper_files["manifest"])
    # Heights and widths may differ: images are resized between mapper and classifier.
    require_same_shape(manifest, read_json(files["dataset"]), source=mapper_files["manifest"], axes=slice(1))
    mapper = open_mapper(mapper_files["weights"], sha256=manifest["sha256"])
    mapper.to(resolve_device(how.get("device", "auto"), gpu_percent=how.get("gpu_percent")))
    # Nothing is drawn in a search; measure_in_batches seeds every sample all the same.
    settings = {**settings, "kind": KIND, "mapper_sha256": manifest["sha256"], "seed": 0}
    if mapper_files["attributes"]:
        # The codes to start from, so that no part is kept that was searched from others.
        settings["attributes_sha256"] = sha256_of_file(mapper_files["attributes"])
    measure_in_batches(
        files,
        path_to_samples,
        path_to_progress,
        partial(measure_batch, mapper=mapper),
        table=PROJECTION_TABLE,
        settings=settings,
        of_samples=conditions_by_sample(mapper_files["attributes"], manifest["categories"]),
        **how,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given = snakemake.input
        mapper_files = {"weights": given.weights, "manifest": given.mapper, "attributes": given.get("attributes")}
        project_attributes(**of_job(snakemake, named_by="mapper"), mapper_files=mapper_files)
