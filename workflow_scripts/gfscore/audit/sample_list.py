"""The samples of a dataset that an audit counts: each image once, and only those of a measure's subset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.images.subsets import subset_rows
from gfscore.tables.parquet_tables import read_table
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
