"""Bring per-sample values that somebody computed elsewhere into the form of every other samples table."""

import math

import pandas as pd

from gfscore.core.files import sha256_of_file
from gfscore.images.datasets import open_described
from gfscore.measures import KINDS
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import write_table
from gfscore.tables.sample_files import read_certified_radii
from gfscore.workflow.jobs import logged_job


def import_samples(path_to_file, path_to_dataset, path_to_samples, *, model, measure, kind, largest_radius):
    """Write the samples table of one model and measure from a file of certified radii.

    `model` is a mapping with dataset, threat, model; `kind` one that says how it is imported (gfscore.measures). A
    radius above `largest_radius` is refused; None, of a measure that looks at no radius, sets no limit.
    """
    images, dataset = open_described(path_to_dataset)
    limit = math.inf if largest_radius is None else largest_radius
    rows, prediction, radius = read_certified_radii(
        path_to_file, labels=images.labels, classes=len(dataset["classes"]), largest_radius=limit
    )
    label = images.labels[rows]
    columns = {
        "sample_id": images.sample_id[rows],
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
        given, settings = snakemake.input, snakemake.params
        import_samples(
            settings.path,
            given.dataset,
            snakemake.output.samples,
            model=settings.model,
            measure=settings.measure,
            kind=settings.kind,
            largest_radius=settings.largest_radius,
        )
