"""The samples of an audit as its files hold them: the dataset's list, logits of models, and the table scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.core.mappings import positions
from gfscore.core.settings import LOGARITHMS, Probabilities, Subset
from gfscore.images.subsets import first_rows, subset_rows
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
from gfscore.tables.parquet_tables import Identity, TableFile, read_identity, read_logits, read_table, write_parts
from gfscore.tables.table import DATASET


@dataclass(frozen=True)
class ExpectedSamples:
    """Samples for which a measure must have values.

    Parameters
    ----------
    sample_id : ndarray (N,) of str
        Names of the samples, in the order of the dataset.
    labels : ndarray (N,) of int32
        True classes.
    rows : ndarray (N,) of int64
        How many rows of the dataset show the image of each sample.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.int32]
    rows: NDArray[np.int64]

    @classmethod
    def each_once(cls, sample_id: NDArray[np.str_], labels: NDArray[np.integer]) -> ExpectedSamples:
        """Samples (N,) each of which one row of the dataset shows."""
        return cls(sample_id, labels.astype(np.int32), np.ones(len(labels), dtype=np.int64))

    def only(self, chosen: NDArray[np.bool_]) -> ExpectedSamples:
        """The samples of a mask (N,)."""
        return ExpectedSamples(self.sample_id[chosen], self.labels[chosen], self.rows[chosen])


class SampleList:
    """Samples of a dataset in its order; repeated images are no independent draws, so they count as one sample.

    Parameters
    ----------
    frame : DataFrame
        Rows of the table `dataset`: sample_id, label, pixel_digest.
    source : path
        File of the table, which errors name.

    Attributes
    ----------
    sample_id : ndarray (N,) of str
    labels : ndarray (N,) of int32
    first : ndarray (N,) of int64
        First row with the same image, by the digests of the pixels; its own row for an image that is there once, and
        for labels without images.
    """

    def __init__(self, frame: pd.DataFrame, *, source: Path | str) -> None:
        """Looks for equal images among the rows."""
        self.source = source
        self.sample_id = frame["sample_id"].to_numpy()
        self.labels = frame["label"].to_numpy(np.int32)
        digests = frame["pixel_digest"].to_numpy(dtype=str) if frame["pixel_digest"].notna().any() else None
        self.first = first_rows(digests, len(frame))
        self._rows = pd.Index(self.sample_id)
        self._expected: dict[str, ExpectedSamples] = {}

    @classmethod
    def read(cls, path: Path | str) -> SampleList:
        """Samples of the table `dataset` in a file."""
        return cls(read_table(path, DATASET), source=path)

    @cached_property
    def counted(self) -> NDArray[np.int64]:
        """Rows that stand for a sample, (n,) int64, ascending: the first one of equal images."""
        return np.flatnonzero(self.first == np.arange(len(self.first)))

    def expected(self, subset: Subset | None, *, where: Path | str) -> ExpectedSamples:
        """Samples for which a measure with a setting `subset` has values, None for all of them.

        An image that is repeated has the name of its first row, whichever of its rows are in the subset. Raises
        InputError, naming `where`, for a subset that the dataset does not have.
        """
        # Once for each subset: every model and measure of an audit asks, and a draw looks at the whole dataset.
        key = "" if subset is None else subset.model_dump_json()
        if key not in self._expected:
            chosen = np.arange(len(self.first))
            if subset is not None:
                chosen = subset_rows(self.labels, subset, where=where)
            rows, counts = np.unique(self.first[chosen], return_counts=True)
            self._expected[key] = ExpectedSamples(self.sample_id[rows], self.labels[rows], counts)
        return self._expected[key]

    def once(self, samples: pd.DataFrame, *, source: Path | str) -> pd.DataFrame:
        """Rows of a samples table with the first row alone of each repeated image.

        Parameters
        ----------
        samples : DataFrame
            Rows of the table: sample_id, label, and others.
        source : path
            File of the table, which errors name.

        Returns
        -------
        DataFrame
            Each row under the name of the dataset's first row with its image.

        Raises
        ------
        InputError
            For a sample that the dataset does not have, or has with another label.
        """
        rows = self._rows.get_indexer(samples["sample_id"])
        wrong = rows < 0
        wrong[~wrong] = self.labels[rows[~wrong]] != samples["label"].to_numpy()[~wrong]
        if wrong.any():
            name = samples["sample_id"].iloc[int(wrong.argmax())]
            raise InputError(
                f"{source}: sample {name!r} is not in {self.source}, or has another label there; {int(wrong.sum())} "
                "such rows; measure the model on this dataset again"
            )
        if len(self.counted) == len(self.first):
            return samples

        # The row of the dataset whose values count for each image is the one that the table names first.
        first = self.first[rows]
        counting = pd.Series(rows).groupby(first).transform("first").to_numpy()
        chosen = rows == counting
        return samples[chosen].assign(sample_id=self.sample_id[first[chosen]])


@dataclass(frozen=True)
class ModelLogits:
    """Logits of one model on the samples of a dataset.

    Parameters
    ----------
    sample_id : ndarray (N,) of str
    labels : ndarray (N,) of int32
    logits : ndarray (N, K) of float32
    identity : mapping
        Model, data and software that they come from, as the metadata of their file says.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.int32]
    logits: NDArray[np.float32]
    identity: Identity

    def only(self, rows: NDArray[np.int64]) -> ModelLogits:
        """Logits of some rows (n,)."""
        if len(rows) == len(self.labels):
            return self
        return replace(self, sample_id=self.sample_id[rows], labels=self.labels[rows], logits=self.logits[rows])


def computed_logits(
    path: Path | str,
    manifest: DatasetManifest,
    *,
    model: ModelName,
    allow_probabilities: Probabilities,
) -> ModelLogits:
    """Logits that the workflow computed.

    Parameters
    ----------
    path : path
        File of the step extract_logits.
    manifest : DatasetManifest
    model : ModelName
        Model that the file must be of.
    allow_probabilities : bool or "logarithms"
        As in require_logits.

    Raises
    ------
    InputError
        For a file of another model or other data, another number of samples or classes than the manifest says, and
        for what require_logits refuses.
    """
    expected = {**model.columns(), "dataset_digest": manifest.digest}
    sample_id, labels, logits = read_logits(path, expect=expected)
    # The file of a network that gives probabilities holds their logarithms.
    logits, labels = require_logits(
        logits,
        labels,
        classes=len(manifest.classes),
        source=path,
        allow_probabilities=bool(allow_probabilities),
    )
    if len(labels) != manifest.samples:
        raise InputError(
            f"{path}: {len(labels)} rows, but {manifest.dataset} has {manifest.samples} samples; delete the "
            "file, so that it is made again"
        )
    return ModelLogits(sample_id, labels, logits, read_identity(path))


def supplied_logits(
    path: Path | str,
    manifest: DatasetManifest,
    samples: pd.DataFrame,
    *,
    model: ModelName,
    allow_probabilities: Probabilities,
    member: str | None = None,
) -> ModelLogits:
    """Logits of a user's file, in the formats of read_logits_file.

    Parameters
    ----------
    path : path
        The user's file.
    manifest : DatasetManifest
    samples : DataFrame
        Samples of the dataset (sample_id, label), which give labels, their order and names. Labels and names in the
        file must be the same.
    model : ModelName
        Name of the model.
    allow_probabilities : bool or "logarithms"
        As in require_logits, like one column of logits for two classes.
    member : str, optional
        Array of the file to read, where it has several.

    Raises
    ------
    InputError
        For what require_logits refuses, and for a label or name that differs, with the first such row.
    """
    classes = manifest.classes
    logits, file_labels, file_names = read_logits_file(path, classes=classes, member=member)
    for array in (logits, file_labels, file_names):
        if array is not None:
            require_rows(array, manifest, source=path)

    labels = samples["label"].to_numpy()
    names = samples["sample_id"].to_numpy()
    if file_labels is None:
        file_labels = labels
    logits, file_labels = require_logits(
        logits, file_labels, classes=len(classes), source=path, allow_probabilities=allow_probabilities
    )
    _require_equal("label", file_labels, labels, path=path, dataset=manifest.dataset)
    if file_names is not None:
        _require_equal("sample_id", file_names, names, path=path, dataset=manifest.dataset)

    identity = {
        **model.columns(),
        "dataset_digest": manifest.digest,
        "checkpoint_sha256": sha256_of_file(path),
        "architecture": "logits only",
        "preprocessing": "unknown",
        "dtype": str(logits.dtype),
        "device": "unknown",
        "torch": "unknown",
    }
    if member:
        identity["member"] = member
    if allow_probabilities == LOGARITHMS:
        identity["allow_probabilities"] = LOGARITHMS
        identity["outputs"] = LOGARITHMS_TAKEN
    return ModelLogits(names, labels, stored_logits(logits, labels, source=path), identity)


def _require_equal(
    column: str, values: NDArray[Any], expected: NDArray[Any], *, path: Path | str, dataset: str
) -> None:
    differs = values != expected
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise InputError(
            f"{path}: row {row} has {column} {values[row]}, but {dataset} has {expected[row]}; "
            "give the rows in the order of the dataset"
        )


def stored_values(
    path: Path | str, classes: Sequence[str], *, member: str | None = None, logarithms: bool = False
) -> NDArray[np.float32]:
    """Logits of a user's file that supplied_logits has accepted, without its labels and names.

    Parameters
    ----------
    path : path
        The user's file.
    classes : sequence of K str
        Names of the classes.
    member : str, optional
        Array of the file to read, where it has several.
    logarithms : bool
        Whether the file holds probabilities, whose logarithms are the logits.

    Returns
    -------
    ndarray (N, K) of float32
    """
    logits = read_logits_file(path, classes=classes, member=member)[0]
    if is_one_column(logits):
        logits = both_classes(logits, probabilities=logarithms)
    if logarithms:
        logits = log_probabilities(logits, source=path)
    return logits.astype(np.float32)


def write_scores(
    path: Path | str,
    parts: Sequence[tuple[ModelName, str, pd.DataFrame]],
    *,
    identity: Identity,
) -> None:
    """Write the table scores of an audit: one row group for each model and measure.

    Parameters
    ----------
    path : path
        File to write.
    parts : sequence of (ModelName, str, DataFrame)
        Model, measure and samples table.
    identity : mapping
        Metadata of the file.
    """
    frames = []
    index = []
    for model, measure, samples in parts:
        labelled = samples.assign(**model.columns(), measure=measure)
        frames.append(labelled.reindex(columns=SCORES.column_names))
        index.append([model.label, measure])
    write_parts(path, SCORES, frames, identity={**identity, "parts": index})


class ScoresFile:
    """The table scores of an audit, read for one model and measure at a time.

    Raises InputError, when it is opened, for a file that is missing, damaged or another table.
    """

    def __init__(self, path: Path | str) -> None:
        """Opens the file."""
        self._path = path
        self._table = TableFile(path, SCORES)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Identity of the file: audit, classes, dataset_digest, and the identity of each model's `logits`."""
        return self._table.identity

    @cached_property
    def _positions(self) -> dict[tuple[str, str], int]:
        parts = self.identity["parts"]
        result = positions(map(tuple, parts))
        if not len(result) == len(parts) == self._table.parts:
            raise InputError(f"{self._path}: its parts are not those that it names; delete it, and run make audit")
        return result

    def read(self, model: ModelName, measure: str) -> pd.DataFrame:
        """Samples table of a model and measure; raises InputError if it is not in the file."""
        position = self._positions.get((model.label, measure))
        if position is None:
            raise InputError(
                f"{self._path}: holds no {measure} of {model.label}; delete it and run the same command again"
            )
        frame = self._table.read_part(position)
        for column, name in {**model.columns(), "measure": measure}.items():
            if not (frame[column] == name).all():
                raise InputError(f"{self._path}: {measure} of {model.label} has rows of another {column}; delete it")
        return frame
