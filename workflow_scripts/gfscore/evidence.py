"""Reading what calibration needs to know about a model from its files."""

import numpy as np

from gfscore.calibration import split_halves
from gfscore.curves import ScoreCurves
from gfscore.errors import InputError
from gfscore.files import read_json
from gfscore.margins import predictions
from gfscore.measured import label_of, row_generator
from gfscore.tables import read_identity, read_logits, read_table
from gfscore.temperatures import ModelEvidence


def read_evidence(path_to_sweep, path_to_logits, *, model, robust_accuracy, seed):
    """ModelEvidence from a model's sweep and logits.

    `model` is a mapping with dataset, threat, model; `robust_accuracy` a fraction or NaN; `seed` decides which half of
    the samples is held out for the likelihood objective. Raises InputError when sweep and logits are not of the same
    data and checkpoint.
    """
    identity = read_identity(path_to_logits)
    same = {key: identity[key] for key in ("dataset_digest", "checkpoint_sha256")}
    sweep = read_table(path_to_sweep, "sweep", expect={**model, **same})
    _, labels, logits = read_logits(path_to_logits, expect=model)
    classes = logits.shape[1]
    if len(sweep) % classes:
        raise InputError(
            f"{path_to_sweep}: {len(sweep)} rows for {classes} classes; delete it, so that it is made anew"
        )
    points = sweep[["temperature", "value"]].to_numpy().reshape(-1, classes, 2)
    curves = ScoreCurves(points[:, 0, 0].copy(), points[:, :, 1].copy(), sweep["n"].to_numpy()[:classes])
    held_out = split_halves(labels, row_generator(seed, model))
    return ModelEvidence(
        name=label_of(model),
        curves=curves,
        class_accuracy=sweep["accuracy"].to_numpy()[:classes],
        clean_accuracy=float(np.mean(predictions(logits, labels) == labels)),
        robust_accuracy=robust_accuracy,
        checkpoint=identity["checkpoint_sha256"],
        dataset_digest=identity["dataset_digest"],
        held_out=(logits[held_out], labels[held_out]),
        report=(logits[~held_out], labels[~held_out]),
    )


def accuracies_of(models, published, paths_to_manifests):
    """Published and robust accuracies of each model, as the columns of model_summary.

    `models` are mappings with dataset, threat, model, `published` their published accuracies (fractions or None). The
    robust accuracy is the one that a checkpoint's manifest records, else the published one, else NaN; its source says
    which.
    """
    manifests = {label_of(manifest): manifest for manifest in map(read_json, paths_to_manifests)}
    rows = []
    for model, known in zip(models, published, strict=True):
        manifest = manifests.get(label_of(model), {})
        value, source = manifest.get("robust_accuracy"), manifest.get("robust_accuracy_attack")
        if value is None and known["published_robust_accuracy"] is not None:
            value, source = known["published_robust_accuracy"], "published"
        robust = {"robust_accuracy": float("nan") if value is None else value, "robust_accuracy_source": source}
        rows.append({**known, **robust})
    return rows
