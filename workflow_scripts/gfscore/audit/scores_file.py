"""The table scores of an audit: values of all measures from logits, one row group per model and measure."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.errors import InputError
from gfscore.core.identity import label_of
from gfscore.measures.samples import SCORES
from gfscore.tables.parquet_tables import TableFile, write_parts


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
