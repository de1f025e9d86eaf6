"""Refuse logits that cannot be audited, and record what was measured on the others."""

import numpy as np

from gfscore.checks import require_published_accuracy
from gfscore.errors import InputError
from gfscore.files import read_json, write_json
from gfscore.jobs import logged_job
from gfscore.logits import require_logits
from gfscore.margins import predictions
from gfscore.tables import read_logits


def check_logits(path_to_logits, path_to_manifest, path_to_check, *, model, published, tolerance):
    """Gate the logits of one model before anything is computed from them.

    `model` is a mapping with dataset, threat, model; `published` the published clean accuracy (fraction, or None)
    and `tolerance` the accepted distance from it. Raises InputError for what require_logits refuses, for another
    number of samples or classes than the dataset's manifest says, and for another accuracy than the published one.
    """
    manifest = read_json(path_to_manifest)
    _, labels, logits = read_logits(path_to_logits, expect={**model, "dataset_digest": manifest["digest"]})
    logits, labels = require_logits(logits, labels, classes=len(manifest["classes"]), source=path_to_logits)
    if len(labels) != manifest["samples"]:
        raise InputError(
            f"{path_to_logits}: {len(labels)} rows, but {manifest['dataset']} has {manifest['samples']} samples; "
            "delete the file, so that it is made again"
        )
    accuracy = float(np.mean(predictions(logits, labels) == labels))
    require_published_accuracy(accuracy, published, tolerance=tolerance, source=path_to_logits)
    write_json(
        path_to_check,
        {
            **model,
            "samples": len(labels),
            "classes": logits.shape[1],
            "clean_accuracy": accuracy,
            "published": published,
        },
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        check_logits(
            snakemake.input.logits,
            snakemake.input.manifest,
            snakemake.output.check,
            model=dict(snakemake.wildcards),
            published=snakemake.params.published,
            tolerance=snakemake.params.tolerance,
        )
