"""Bring per-sample values that somebody computed elsewhere into the form of every other samples table."""

import math

import pandas as pd

from gfscore.core.files import sha256_of_file
from gfscore.images.datasets import open_described
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import write_table
from gfscore.tables.sample_files import ABSTAINED, read_certified_radii
from gfscore.workflow.jobs import logged_job


def import_samples(path_to_file, path_to_dataset, path_to_samples, *, model, measure, kind, largest_radius):
    """Write the samples table of one model and measure from a file of certified radii.

    `model` is a mapping with dataset, threat, model; of kind `certified` the value is the radius where the prediction
    is right, else 0; of kind `clean` whether the smoothed classifier's prediction is right. A radius above
    `largest_radius` is refused; None, of a measure that looks at no radius, sets no limit.
    """
    images, dataset = open_described(path_to_dataset)
    limit = math.inf if largest_radius is None else largest_radius
    rows, prediction, radius = read_certified_radii(
        path_to_file, labels=images.labels, classes=len(dataset["classes"]), largest_radius=limit
    )
    label = images.labels[rows]
    right = prediction == label
    columns = {
        "sample_id": images.sample_id[rows],
        "label": label,
        "prediction": prediction,
        "value": right * radius if kind == "certified" else right.astype(float),
        "censored": False,
    }
    if kind == "certified":
        # What the file does not tell about the certification, and about the classifier before smoothing, stays unknown.
        columns |= {"clean_prediction": None, "radius": radius, "abstained": prediction == ABSTAINED}
        columns |= {"draws": None, "lower_bound": None, "attacked": None, "refuted": None}
    frame = pd.DataFrame(columns)
    identity = {**model, "dataset_digest": dataset["digest"], "checkpoint_sha256": sha256_of_file(path_to_file)}
    write_table(path_to_samples, table_of(kind), frame, identity=identity | {"measure": measure})


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
