"""The logits of one model on a dataset: those that the workflow computed, or a file of somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.statistics.logits import (
    LOGARITHMS_TAKEN,
    both_classes,
    is_one_column,
    log_probabilities,
    require_logits,
    require_rows,
    stored_logits,
)
from gfscore.tables.logit_files import read_logits_file
from gfscore.tables.parquet_tables import read_identity, read_logits


@dataclass(frozen=True)
class ModelLogits:
    """Logits (N, K) float32 of one model, sample_id (N,) str, labels (N,) int32; `identity` says what they are of."""

    sample_id: NDArray[Any]
    labels: NDArray[np.int32]
    logits: NDArray[np.float32]
    identity: Mapping[str, Any]

    def only(self, rows: NDArray[np.int64]) -> ModelLogits:
        """Those of some rows (n,)."""
        if len(rows) == len(self.labels):
            return self
        return replace(self, sample_id=self.sample_id[rows], labels=self.labels[rows], logits=self.logits[rows])


def computed_logits(
    path: Path | str,
    manifest: Mapping[str, Any],
    *,
    model: Mapping[str, str],
    allow_probabilities: Probabilities,
) -> ModelLogits:
    """Logits of a file of the workflow, of a model (dataset, threat, model) on the dataset of a manifest.

    Raises InputError for a file of another model or other data, another number of samples or classes than the
    manifest says, and for what require_logits refuses.
    """
    sample_id, labels, logits = read_logits(path, expect={**model, "dataset_digest": manifest["digest"]})
    classes = len(manifest["classes"])
    # Of a network that gives probabilities, the file holds their logarithms.
    logits, labels = require_logits(
        logits, labels, classes=classes, source=path, allow_probabilities=bool(allow_probabilities)
    )
    if len(labels) != manifest["samples"]:
        raise InputError(
            f"{path}: {len(labels)} rows, but {manifest['dataset']} has {manifest['samples']} samples; delete the "
            "file, so that it is made again"
        )
    return ModelLogits(sample_id, labels, logits, read_identity(path))


def given_logits(
    path: Path | str,
    manifest: Mapping[str, Any],
    samples: pd.DataFrame,
    *,
    model: Mapping[str, str],
    allow_probabilities: Probabilities,
    member: str | None = None,
) -> ModelLogits:
    """Logits of a file of somebody else, in the formats of read_logits_file, of which `member` is the array to read.

    The manifest and the samples (sample_id, label) of the dataset give labels, their order and the sample ids; labels
    and ids in the file must be the same, else InputError names the first row that differs. `allow_probabilities` and
    one column for two classes as in require_logits.
    """
    classes = manifest["classes"]
    logits, labels, sample_id = read_logits_file(path, classes=classes, member=member)
    for found in (logits, labels, sample_id):
        if found is not None:
            require_rows(found, manifest, source=path)
    true, names = samples["label"].to_numpy(), samples["sample_id"].to_numpy()
    logits, labels = require_logits(
        logits,
        true if labels is None else labels,
        classes=len(classes),
        source=path,
        allow_probabilities=allow_probabilities,
    )
    for what, found, expected in (("label", labels, true), ("sample_id", sample_id, names)):
        if found is not None and (found != expected).any():
            row = int(np.flatnonzero(found != expected)[0])
            raise InputError(
                f"{path}: row {row} has {what} {found[row]}, but {manifest['dataset']} has {expected[row]}; "
                "give the rows in the order of the dataset"
            )
    identity = {**model, "dataset_digest": manifest["digest"], "checkpoint_sha256": sha256_of_file(path)}
    identity |= {"architecture": "logits only", "preprocessing": "unknown", "dtype": str(logits.dtype)}
    identity |= {"device": "unknown", "torch": "unknown", **({"member": member} if member else {})}
    if allow_probabilities == LOGARITHMS:
        identity |= {"allow_probabilities": LOGARITHMS, "outputs": LOGARITHMS_TAKEN}
    return ModelLogits(names, true, stored_logits(logits, true, source=path), identity)


def stored_values(
    path: Path | str, classes: Sequence[str], *, member: str | None = None, logarithms: bool = False
) -> NDArray[np.float32]:
    """Logits (N, K) of such a file alone, once given_logits has accepted it.

    `classes` are the K class names; `logarithms`: whether the file holds probabilities, whose logarithms are the
    logits.
    """
    values = read_logits_file(path, classes=classes, member=member)[0]
    if is_one_column(values):
        values = both_classes(values, probabilities=logarithms)
    if logarithms:
        values = log_probabilities(values, source=path)
    return values.astype(np.float32)
