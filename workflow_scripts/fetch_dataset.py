"""Open a dataset once, check it, and record what it is."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.files import write_json
from gfscore.images.image_set import ImageSet
from gfscore.images.manifests import image_digests, open_and_describe, store_digest
from gfscore.tables.parquet_tables import write_table
from gfscore.tables.table import DATASET
from gfscore.workflow.jobs import logged_job


def fetch_dataset(
    settings: Mapping[str, Any],
    classes: Sequence[str] | None,
    path_to_manifest: Path | str,
    path_to_samples: Path | str,
    *,
    dataset: str,
    path_to_images: Path | str | None = None,
    pinned: str | None = None,
) -> ImageSet:
    """Write manifest and samples (names, labels, digests) of the images that the entry `dataset` describes.

    Parameters
    ----------
    settings : mapping
        Source of the entry, and the settings of that source.
    classes : sequence of str or None
        The K class names; None for those in the data.
    path_to_manifest, path_to_samples : path
        Manifest (JSON) and table dataset, which are written.
    dataset : str
        Name of the entry.
    path_to_images : path or None
        File or folder of the images; None for images that are part of a package.
    pinned : str or None
        Digest that the data must have.

    Returns
    -------
    ImageSet
        The images.

    Raises
    ------
    InputError
        For data that cannot be audited, damaged images and equal pixels under different labels among them, and for
        another digest.
    """
    images, described = open_and_describe(settings, path_to_images, dataset=dataset, classes=classes, pinned=pinned)
    digests = image_digests(images, where=path_to_images or dataset)
    frame = pd.DataFrame({"sample_id": images.sample_id, "label": images.labels, **digests})
    if digests["pixel_digest"] is not None:
        repeated = len(images) - frame["pixel_digest"].nunique()
        if repeated:
            print(f"{repeated:,} of {len(images):,} rows repeat an image; each image counts once")
    identity = {"dataset": dataset, "dataset_digest": described["digest"]}
    write_table(path_to_samples, DATASET, frame, identity=identity)
    write_json(path_to_manifest, described)
    return images


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        started = time.time()
        images = fetch_dataset(
            snakemake.params.settings,
            snakemake.params.classes,
            snakemake.output.manifest,
            snakemake.output.samples,
            dataset=snakemake.wildcards.dataset,
            path_to_images=snakemake.params.path,
            pinned=snakemake.params.pinned,
        )
        # For the planning of later runs.
        store_digest(images, snakemake.output.manifest, started=started)
