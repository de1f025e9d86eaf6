"""The samples tables of one model, each read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from gfscore.core.identity import label_of
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_identity, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.scores_file import ScoresFile


class ModelSamples(Mapping[str, pd.DataFrame]):
    """Samples tables of one model by measure, each with the columns that with_predictions adds."""

    def __init__(
        self,
        model: Mapping[str, str],
        measures: Mapping[str, Mapping[str, Any]],
        paths: Mapping[str, Path | str | None],
        *,
        scores: ScoresFile | None = None,
        logits: Path | str | None = None,
    ) -> None:
        """Takes the settings of each measure and its path, None where it stands in `scores`, made of `logits`."""
        self.model, self.measures = model, measures
        self._paths = paths
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
            self._read[measure] = with_predictions(found)
        return self._read[measure]

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
        """What that file says of itself."""
        path = self._paths[measure]
        return read_identity(path) if path else self._scores.identity["logits"][label_of(self.model)]


def with_predictions(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples table with clean correctness and the network's own prediction, whatever its kind.

    They are the columns `correct`, where it is not known by what was measured, and `predicted`, there missing.
    """
    predicted = samples["clean_prediction" if "clean_prediction" in samples else "prediction"]
    # What was computed elsewhere comes with the predictions of the measured classifier only.
    clean = predicted.fillna(samples["prediction"])
    return samples.assign(correct=clean == samples["label"], predicted=predicted)


def one_row_per_sample(samples: pd.DataFrame) -> pd.DataFrame:
    """Mean value over the rows of each sample, in the order of the samples' first rows: N rows, not N x conditions.

    Rows of one sample are no independent draws, so they must not count as samples in an interval.
    """
    if not samples["sample_id"].duplicated().any():
        return samples
    grouped = samples.groupby("sample_id", sort=False)
    first = {name: grouped[name].first() for name in ("label", "correct", "predicted")}
    return pd.DataFrame(first | {"value": grouped["value"].mean()}).reset_index()
