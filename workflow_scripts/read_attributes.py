"""Attributes of a dataset's samples, from wherever they are written down."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.images.attribute_values import Dataset, attributes_of, identity_of
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

    `path_to_manifest` is the dataset's, `path_to_reference` the manifest of the dataset whose samples fix quantiles, or
    None.
    """
    dataset = Dataset.open(path_to_manifest)
    fixed_on = Dataset.open(path_to_reference) if path_to_reference else None
    attributes = attributes_of(settings, dataset, fixed_on)
    for name, order in attributes.categories.items():
        counts = attributes.frame[name].value_counts()
        words = ", ".join(f"{word} {counts.get(word, 0):,}" for word in order)
        print(f"{name}: {words}; {attributes.missing[name]:,} missing")
    write_attributes(path_to_table, attributes.frame, identity=identity_of(settings, dataset, attributes))


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        read_attributes(
            snakemake.params.settings,
            snakemake.input.manifest,
            snakemake.output.table,
            path_to_reference=snakemake.input.get("reference") or None,
        )
