"""Bring logits that somebody already has into the form of every other logits file."""

import numpy as np

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file
from gfscore.images.datasets import open_described
from gfscore.statistics.logits import require_logits, require_rows, stored_logits
from gfscore.tables.logit_files import read_logits_file
from gfscore.tables.parquet_tables import write_logits
from gfscore.workflow.jobs import logged_job


def import_logits(path_to_file, path_to_dataset, path_to_logits, *, model, allow_probabilities):
    """Write the logits file of one model from a file of the user.

    `model` is a mapping with dataset, threat, model. The dataset gives labels, their order and the sample ids; labels
    and ids in the file must be the same, else InputError names the first row that differs.
    """
    images, dataset = open_described(path_to_dataset)
    logits, labels, sample_id = read_logits_file(path_to_file, classes=dataset["classes"])
    for found in (logits, labels, sample_id):
        if found is not None:
            require_rows(found, dataset, source=path_to_file)
    given = images.labels if labels is None else labels
    logits, given = require_logits(
        logits, given, classes=len(dataset["classes"]), source=path_to_file, allow_probabilities=allow_probabilities
    )
    for what, found, expected in (("label", given, images.labels), ("sample_id", sample_id, images.sample_id)):
        if found is None:
            continue
        if (found != expected).any():
            row = int(np.flatnonzero(found != expected)[0])
            raise InputError(
                f"{path_to_file}: row {row} has {what} {found[row]}, but {dataset['dataset']} has {expected[row]}; "
                "give the rows in the order of the dataset"
            )
    stored = stored_logits(logits, images.labels, source=path_to_file)
    identity = {**model, "dataset_digest": dataset["digest"], "checkpoint_sha256": sha256_of_file(path_to_file)}
    identity |= {"architecture": "logits only", "preprocessing": "unknown", "dtype": str(logits.dtype)}
    identity |= {"device": "unknown", "torch": "unknown"}
    write_logits(path_to_logits, sample_id=images.sample_id, label=images.labels, logits=stored, identity=identity)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, settings = snakemake.input, snakemake.params
        import_logits(
            settings.path,
            given.dataset,
            snakemake.output.logits,
            model=settings.model,
            allow_probabilities=settings.allow_probabilities,
        )
