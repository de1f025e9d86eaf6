"""Bring per-sample values that somebody computed elsewhere into the form of every other samples table."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from gfscore.core.digests import sha256_of_file
from gfscore.core.files import read_json
from gfscore.measures import KINDS
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.tables.radius_files import read_certified_radii
from gfscore.tables.table import DATASET
from gfscore.workflow.jobs import logged_job


def import_samples(
    path_to_file: Path | str,
    path_to_manifest: Path | str,
    path_to_dataset: Path | str,
    path_to_samples: Path | str,
    *,
    model: Mapping[str, str],
    measure: str,
    kind: str,
    largest_radius: float | None,
) -> None:
    """Write the samples table of one model and measure from a file of certified radii.

    Takes the manifest and the samples (table dataset) of the data. `model` is a mapping with dataset, threat, model;
    `kind` one that can be imported (gfscore.measures). A radius above `largest_radius` is refused; None sets no limit.
    """
    dataset = read_json(path_to_manifest)
    samples = read_table(path_to_dataset, DATASET, expect={"dataset_digest": dataset["digest"]})
    labels = samples["label"].to_numpy()
    limit = math.inf if largest_radius is None else largest_radius
    rows, prediction, radius = read_certified_radii(
        path_to_file, labels=labels, classes=len(dataset["classes"]), largest_radius=limit
    )
    label = labels[rows]
    columns = {
        "sample_id": samples["sample_id"].to_numpy()[rows],
        "label": label,
        "prediction": prediction,
        "censored": False,
        **KINDS[kind].load_imported()(label, prediction, radius),
    }
    table = table_of(kind)
    frame = pd.DataFrame(columns)[table.column_names]
    identity = {**model, "dataset_digest": dataset["digest"], "checkpoint_sha256": sha256_of_file(path_to_file)}
    write_table(path_to_samples, table, frame, identity=identity | {"measure": measure})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, path = snakemake.input, snakemake.params.path
        how = {name: snakemake.params[name] for name in ("model", "measure", "kind", "largest_radius")}
        import_samples(path, given.manifest, given.samples, snakemake.output.samples, **how)
