"""Attributes of a dataset's samples, from wherever they are written down."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.images.attribute_values import Dataset, attributes_of, identity_of
from gfscore.images.manifests import open_described
from gfscore.tables.parquet_tables import write_attributes
from gfscore.workflow.jobs import logged_job


def read_attributes(
    settings: Mapping[str, Any],
    path_to_manifest: Path | str,
    path_to_table: Path | str,
    *,
    path_to_reference: Path | str | None = None,
) -> None:
    """Write the attributes that the entry `attributes` of a dataset (`settings`) describes.

    `path_to_manifest` is the dataset's, `path_to_reference` that of the dataset whose samples fix quantiles, or None.
    """
    dataset = _opened(path_to_manifest)
    fixed_on = _opened(path_to_reference) if path_to_reference else None
    frame, categories, missing = attributes_of(settings, dataset, fixed_on)
    for name, order in categories.items():
        counts = frame[name].value_counts()
        print(f"{name}: {', '.join(f'{word} {counts.get(word, 0):,}' for word in order)}; {missing[name]:,} missing")
    write_attributes(path_to_table, frame, identity=identity_of(settings, dataset, categories, missing))


def _opened(path):
    images, manifest = open_described(path)
    return Dataset(manifest, images)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        read_attributes(
            snakemake.params.settings,
            snakemake.input.manifest,
            snakemake.output.table,
            path_to_reference=snakemake.input.get("reference") or None,
        )
