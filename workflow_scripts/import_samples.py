"""Samples table of a measure from a file of certified radii that were computed outside the workflow."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

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
    path_to_radii: Path | str,
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

    Parameters
    ----------
    path_to_radii : path
        The user's file, in the format of `read_certified_radii`.
    path_to_manifest, path_to_dataset : path
        Manifest of the dataset, and its samples (table dataset).
    path_to_samples : path
        Samples table to write.
    model : mapping
        Dataset, threat and model.
    measure, kind : str
        Name of the measure, and its kind, which must declare `imported` (gfscore.measures).
    largest_radius : float or None
        Radius above which a row is refused; None sets no limit.
    """
    dataset = read_json(path_to_manifest)
    samples = read_table(path_to_dataset, DATASET, expect={"dataset_digest": dataset["digest"]})
    labels = samples["label"].to_numpy()
    rows, prediction, radius = read_certified_radii(
        path_to_radii,
        labels=labels,
        classes=len(dataset["classes"]),
        largest_radius=math.inf if largest_radius is None else largest_radius,
    )
    label = labels[rows]
    measured_columns = KINDS[kind].load_imported()
    columns = {
        "sample_id": samples["sample_id"].to_numpy()[rows],
        "label": label,
        "prediction": prediction,
        "censored": False,
        **measured_columns(label, prediction, radius),
    }
    table = table_of(kind)
    identity = {
        **model,
        "dataset_digest": dataset["digest"],
        # The file stands for the model, which the workflow does not see.
        "checkpoint_sha256": sha256_of_file(path_to_radii),
        "measure": measure,
    }
    write_table(path_to_samples, table, pd.DataFrame(columns)[table.column_names], identity=identity)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        import_samples(
            snakemake.params.path,
            snakemake.input.manifest,
            snakemake.input.samples,
            snakemake.output.samples,
            model=snakemake.params.model,
            measure=snakemake.params.measure,
            kind=snakemake.params.kind,
            largest_radius=snakemake.params.largest_radius,
        )
