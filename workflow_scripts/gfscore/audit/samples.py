"""The samples of a dataset that an audit counts: each image once, and only those of a measure's subset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.identity import label_of
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.images.subsets import subset_rows
from gfscore.measures.samples import SCORES
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
from gfscore.tables.parquet_tables import TableFile, read_identity, read_logits, read_table, write_parts
from gfscore.tables.table import DATASET


@dataclass(frozen=True)
class ExpectedSamples:
    """Samples for which a measure must have values.

    `sample_id` (n,) str, `labels` (n,) int32, and `rows` (n,) int64: how many rows of the dataset show this image.
    """

    sample_id: NDArray[Any]
    labels: NDArray[np.int32]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class SampleList:
    """Samples of a dataset in its order: `sample_id` (N,) str, `labels` (N,) int32; the file that errors name.

    `first` (N,) int64: the first row with the same image, by the digests of the pixels; its own row for an image that
    is there once, and for labels without images. Repeated images are no independent draws, so they count as one sample.
    """

    source: Path | str
    sample_id: NDArray[Any]
    labels: NDArray[np.int32]
    first: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path | str) -> SampleList:
        """From the table `dataset`."""
        return cls.of(read_table(path, DATASET), source=path)

    @classmethod
    def of(cls, frame: pd.DataFrame, *, source: Path | str) -> SampleList:
        """From rows of the table `dataset`, read from `source`."""
        first = np.arange(len(frame))
        if frame["pixel_digest"].notna().any():
            _, inverse = np.unique(frame["pixel_digest"].to_numpy(dtype=str), return_inverse=True)
            places = np.full(inverse.max() + 1, len(frame))
            np.minimum.at(places, inverse, first)
            first = places[inverse]
        return cls(source, frame["sample_id"].to_numpy(), frame["label"].to_numpy(np.int32), first)

    @cached_property
    def counted(self) -> NDArray[np.int64]:
        """Rows that stand for a sample, (n,) int64, ascending: of equal images the first."""
        return np.flatnonzero(self.first == np.arange(len(self.first)))

    def expected(self, subset: Mapping[str, Any] | None, *, where: Path | str) -> ExpectedSamples:
        """Samples that a measure with this setting `subset` has values of; InputError, naming `where`, as subset_rows.

        An image that is repeated has the name of its first row, whichever of its rows are in the subset.
        """
        # Once for each subset: every model and measure of an audit asks, and a draw looks at the whole dataset.
        key = json.dumps(subset, sort_keys=True)
        if key not in self._expected:
            chosen = np.arange(len(self.first)) if subset is None else subset_rows(self.labels, subset, where=where)
            rows, counts = np.unique(self.first[chosen], return_counts=True)
            self._expected[key] = ExpectedSamples(self.sample_id[rows], self.labels[rows], counts)
        return self._expected[key]

    def once(self, samples: pd.DataFrame, *, source: Path | str) -> pd.DataFrame:
        """Rows of a samples table, read from `source`, of each repeated image the first row only.

        Each row gets the name of the dataset's first row with that image. Raises InputError for a sample that the
        dataset does not have, or has under another label.
        """
        place = self._place.get_indexer(samples["sample_id"])
        wrong = place < 0
        wrong[~wrong] = self.labels[place[~wrong]] != samples["label"].to_numpy()[~wrong]
        if wrong.any():
            name = samples["sample_id"].iloc[int(wrong.argmax())]
            raise InputError(
                f"{source}: sample {name!r} is not in {self.source}, or has another label there; {int(wrong.sum())} "
                "such rows; measure the model on this dataset again"
            )
        if len(self.counted) == len(self.first):
            return samples
        first = self.first[place]
        # The row of the dataset whose values count for each image: the one that the table names first.
        shown = pd.Series(place).groupby(first).transform("first").to_numpy()
        kept = place == shown
        return samples[kept].assign(sample_id=self.sample_id[first[kept]])

    @cached_property
    def _expected(self) -> dict[str, ExpectedSamples]:
        return {}

    @cached_property
    def _place(self):
        return pd.Index(self.sample_id)


# ---- The table scores of an audit: values of all measures from logits, one row group per model and measure.


def write_scores(
    path: Path | str,
    parts: Sequence[tuple[Mapping[str, str], str, pd.DataFrame]],
    *,
    identity: Mapping[str, Any],
) -> None:
    """Write samples tables, given as triples (model, measure, data frame), into one file."""
    frames = [
        frame.assign(**model, measure=measure).reindex(columns=SCORES.column_names) for model, measure, frame in parts
    ]
    index = [[label_of(model), measure] for model, measure, _ in parts]
    write_parts(path, SCORES, frames, identity={**identity, "parts": index})


class ScoresFile:
    """The table scores, read one part at a time."""

    def __init__(self, path: Path | str) -> None:
        """Opens the file; raises InputError if it is missing, damaged or another table."""
        self._path, self._table = path, TableFile(path, SCORES)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Identity of the file: audit, classes, dataset_digest, and the identity of each model's `logits`."""
        return self._table.identity

    @cached_property
    def _place(self):
        return {tuple(part): index for index, part in enumerate(self.identity["parts"])}

    def read(self, model: Mapping[str, str], measure: str) -> pd.DataFrame:
        """Samples table of a model and measure; raises InputError if it is not in the file."""
        place = self._place.get((label_of(model), measure))
        if place is None:
            raise InputError(
                f"{self._path}: holds no {measure} of {label_of(model)}; delete it and run the same command again"
            )
        return self._table.read_part(place)


# ---- The logits of one model on a dataset: those that the workflow computed, or a file of somebody else.


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
