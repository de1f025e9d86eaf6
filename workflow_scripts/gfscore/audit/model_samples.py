"""The samples tables of one model, each read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from gfscore.audit.sample_list import ExpectedSamples, SampleList
from gfscore.core.identity import label_of
from gfscore.measures import from_logits
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_identity, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.scores_file import ScoresFile


class ModelSamples(Mapping[str, pd.DataFrame]):
    """Samples tables of one model by measure, each with the columns that with_predictions adds.

    Each image counts once (SampleList), and of a measure of a subset the samples of that subset alone.
    """

    def __init__(
        self,
        model: Mapping[str, str],
        measures: Mapping[str, Mapping[str, Any]],
        paths: Mapping[str, Path | str | None],
        *,
        listed: SampleList,
        scores: ScoresFile | None = None,
        logits: Path | str | None = None,
    ) -> None:
        """Takes the settings of each measure and its path, None where it stands in `scores`, made of `logits`."""
        self.model, self.measures = model, measures
        self._paths, self._listed = paths, listed
        # Both are there where a path is not.
        self._scores: Any = scores
        self._logits: Any = logits
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, measure: str) -> pd.DataFrame:
        """Samples table of a measure, read at the first time."""
        if measure not in self._read:
            path, kind = self._paths[measure], self.measures[measure]["kind"]
            if path is None:
                found = self._scores.read(self.model, measure)
            else:
                found = read_table(path, table_of(kind), expect={**self.model, "measure": measure})
                found = self._listed.once(found, source=path)
                found = found[found["sample_id"].isin(self.expected(measure).sample_id)]
            self._read[measure] = with_predictions(found)
        return self._read[measure]

    def expected(self, measure: str) -> ExpectedSamples:
        """Samples for which a measure must have values; where it has none, the value counts as missing."""
        return self._listed.expected(self._subset(measure), where=f"measures: {measure}")

    def _subset(self, measure):
        if self._paths[measure] is None or not from_logits(self.measures[measure]):
            return self.measures[measure].get("subset")
        # Predictions that are imported with certified radii exist only for the samples with radii.
        return next((entry["subset"] for entry in self.measures.values() if not from_logits(entry)), None)

    def __iter__(self) -> Iterator[str]:
        """Names of the measures, in the order of the configuration."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Number of measures."""
        return len(self._paths)

    def path(self, measure: str) -> Path | str:
        """File that the values come from: the samples table, or the logits."""
        return self._paths[measure] or self._logits

    def identity(self, measure: str) -> Mapping[str, Any]:
        """Identity in the metadata of that file."""
        path = self._paths[measure]
        return read_identity(path) if path else self._scores.identity["logits"][label_of(self.model)]


def with_predictions(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples table of any kind with two more columns: `correct`, of the clean image, and the network's `predicted`.

    Where the network's prediction is missing, `correct` is that of the measured classifier.
    """
    predicted = samples["clean_prediction" if "clean_prediction" in samples else "prediction"]
    # Values computed elsewhere come with predictions of the measured (smoothed) classifier alone.
    clean = predicted.fillna(samples["prediction"])
    return samples.assign(correct=clean == samples["label"], predicted=predicted)


def one_row_per_sample(samples: pd.DataFrame) -> pd.DataFrame:
    """Mean value over the rows of each sample, in the order of the samples' first rows: N rows, not N x conditions.

    Rows of one sample are no independent draws, so they must not count as samples in an interval. Samples with fewer
    rows than others are left out: the rows that they have may be the better ones.
    """
    if not samples["sample_id"].duplicated().any():
        return samples
    grouped = samples.groupby("sample_id", sort=False)
    first = {name: grouped[name].first() for name in ("label", "correct", "predicted")}
    whole = grouped.size() == grouped.size().max()
    return pd.DataFrame(first | {"value": grouped["value"].mean()})[whole].reset_index()
