"""Refuse logits that cannot be audited, and record what was measured on the others."""

import numpy as np

from gfscore.audit.checks import REMEDY, exchanged, guesses, published_accuracy_verdict
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.statistics.logits import require_logits
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_logits
from gfscore.workflow.jobs import logged_job


def check_logits(path_to_logits, path_to_manifest, path_to_check, *, model, gate, allow_probabilities):
    """Gate the logits of one model before anything is computed from them.

    `model` is a mapping with dataset, threat, model; `gate` holds the published clean accuracy (fraction, or None), its
    tolerance, the samples it was published on ("full", "subset", or None) and what to do on_failure ("stop" or
    "exclude"). Raises InputError for what require_logits refuses, for another number of samples or classes than the
    dataset's manifest says, and for another accuracy unless such models are excluded, which the check then records.
    A model that may be guessing, or whose classes look exchanged, is accepted with a warning.
    """
    manifest = read_json(path_to_manifest)
    _, labels, logits = read_logits(path_to_logits, expect={**model, "dataset_digest": manifest["digest"]})
    classes = len(manifest["classes"])
    logits, labels = require_logits(
        logits, labels, classes=classes, source=path_to_logits, allow_probabilities=allow_probabilities
    )
    if len(labels) != manifest["samples"]:
        raise InputError(
            f"{path_to_logits}: {len(labels)} rows, but {manifest['dataset']} has {manifest['samples']} samples; "
            "delete the file, so that it is made again"
        )
    predicted = predictions(logits, labels)
    correct = int(np.sum(predicted == labels))
    accepted, words = True, None
    if gate["published"] is not None and gate["samples"] is None:
        words = f"published accuracy {gate['published']} not compared: the dataset says published_accuracy: null"
        print(words)
    elif gate["published"] is not None:
        subset = gate["samples"] == "subset"
        accepted, words = published_accuracy_verdict(
            correct, len(labels), published=gate["published"], tolerance=gate["tolerance"], subset=subset
        )
        if not accepted and gate["on_failure"] == "stop":
            raise InputError(f"{path_to_logits}: {words}. {REMEDY}")
    guessing = guesses(predicted, labels)
    warnings = [words for words in (guessing, exchanged(predicted, labels, manifest["classes"])) if words]
    for warning in warnings:
        print(f"warning: {warning}")
    measured = {"samples": len(labels), "classes": classes, "clean_accuracy": correct / len(labels)}
    doubts = {"better_than_guessing": guessing is None, "warnings": warnings}
    write_json(path_to_check, {**model, **measured, "accepted": accepted, "words": words, **doubts})


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        given, model = snakemake.input, dict(snakemake.wildcards)
        check_logits(given.logits, given.manifest, snakemake.output.check, model=model, **snakemake.params)
