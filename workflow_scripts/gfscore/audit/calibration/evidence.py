"""Reading what calibration needs to know about a model from its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gfscore.audit.calibration.model_evidence import ModelEvidence
from gfscore.audit.measured import included, label_of, row_generator
from gfscore.audit.tables import TABLES
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.measures.samples import table_of
from gfscore.statistics.classes import class_means
from gfscore.statistics.curves import ScoreCurves, sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.statistics.splits import choosing_samples, split_samples
from gfscore.statistics.survival import mean_distance
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table


def read_all_evidence(
    files: Mapping[str, Any],
    *,
    models: Sequence[Mapping[str, str]],
    published: Sequence[Mapping[str, Any]],
    seed: int,
    split: Mapping[str, Any] | None,
) -> list[ModelEvidence]:
    """ModelEvidence of the models that take part in an audit.

    `files` holds selection (models.json), sweeps and logits (one path per entry of `models`), manifests (of checkpoints
    that record a robust accuracy) and distances (tables of a minimal measure in l2, one per model, or none); the others
    are as for read_evidence, `published` the published accuracies of each model.
    """
    selected = included(files["selection"])
    accuracies = accuracies_of(models, published, files["manifests"])
    distances = files["distances"] or [None] * len(models)
    return [
        read_evidence(
            sweep, logits, distance, model=model, robust_accuracy=known["robust_accuracy"], seed=seed, split=split
        )
        for model, known, sweep, logits, distance in zip(
            models, accuracies, files["sweeps"], files["logits"], distances, strict=True
        )
        if label_of(model) in selected
    ]


def read_evidence(
    path_to_sweep: Path | str,
    path_to_logits: Path | str,
    path_to_distances: Path | str | None,
    *,
    model: Mapping[str, str],
    robust_accuracy: float,
    seed: int,
    split: Mapping[str, Any] | None,
) -> ModelEvidence:
    """ModelEvidence from a model's sweep and logits, and the distances of its minimal measure, None without one.

    `model` is a mapping with dataset, threat, model; `robust_accuracy` a fraction or NaN. Without a `split` all samples
    choose the temperature that the models share and report it, and `seed` decides which half is held out for the
    likelihood objective. A split (share and seed) parts the samples, the same ones in every model, into those that
    choose every temperature and those that report it, and their distances with them. Raises InputError when sweep and
    logits are not of the same data and checkpoint, and when no sample that chooses has a distance.
    """
    identity = read_identity(path_to_logits)
    same = {key: identity[key] for key in ("dataset_digest", "checkpoint_sha256")}
    sweep = read_table(path_to_sweep, TABLES["sweep"], expect={**model, **same})
    sample_id, labels, logits = read_logits(path_to_logits, expect=model)
    classes = logits.shape[1]
    if len(sweep) % classes:
        raise InputError(
            f"{path_to_sweep}: {len(sweep)} rows for {classes} classes; delete it, so that it is made anew"
        )
    curves = report_curves = ScoreCurves.of_rows(sweep, classes)
    correct = predictions(logits, labels) == labels
    chooses = reports = np.ones(len(labels), dtype=bool)
    held_out = split_samples(sample_id, labels, share=0.5, rng=row_generator(seed, model))
    if split is not None:
        low, high = curves.temperatures[[0, -1]]
        swept = {"activation": read_identity(path_to_sweep)["activation"], "low": low, "high": high}
        held_out = chooses = choosing_samples(sample_id, labels, split)
        reports = ~chooses
        curves, report_curves = (
            sweep_class_scores(logits[part], labels[part], classes, **swept) for part in (chooses, reports)
        )
    attack_distance, report_distance = _mean_distances(
        path_to_distances, model, parts=(sample_id[chooses], sample_id[reports])
    )
    return ModelEvidence(
        name=label_of(model),
        curves=curves,
        class_accuracy=class_means(correct[chooses], labels[chooses], classes),
        report_curves=report_curves,
        clean_accuracy=float(np.mean(correct[reports])),
        report_distance=report_distance,
        robust_accuracy=robust_accuracy,
        attack_distance=attack_distance,
        checkpoint=identity["checkpoint_sha256"],
        dataset_digest=identity["dataset_digest"],
        read_parts=partial(_parts, path_to_logits, model, held_out),
    )


def _parts(path_to_logits, model, held_out):
    _, labels, logits = read_logits(path_to_logits, expect=model)
    return tuple((logits[part], labels[part]) for part in (held_out, ~held_out))


def _mean_distances(path, model, *, parts):
    # Over the samples that choose the temperature and over those that report it, of which `parts` are the names.
    if path is None:
        return float("nan"), float("nan")
    rows = read_table(path, table_of("minimal"), expect=model)
    of_parts = [rows.loc[rows["sample_id"].isin(part), "value"].to_numpy() for part in parts]
    if not len(of_parts[0]):
        raise InputError(
            f"{path}: none of its {len(rows)} samples is among those that choose the temperature; give the measure a "
            "larger `subset`, or set `split: null` in the audit's calibration"
        )
    return [mean_distance(values) for values in of_parts]


def accuracies_of(
    models: Iterable[Mapping[str, str]],
    published: Iterable[Mapping[str, Any]],
    paths_to_manifests: Iterable[Path | str],
) -> list[dict[str, Any]]:
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
