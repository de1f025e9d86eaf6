"""Groups of the samples of an audit by their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.groups.fairness import balanced_rows
from gfscore.core.errors import InputError, unknown
from gfscore.tables.parquet_tables import read_attributes

NO_GROUP = -1
"""Group index of a sample without a value."""


@dataclass(frozen=True)
class Grouping:
    """Groups of the samples of a dataset.

    `codes`: group index by sample identifier, NO_GROUP for none, for each attribute; `groups`: names of the groups of
    the compared attributes; `balanced`: the attribute whose groups are balanced and the seed of the draw, or None.
    """

    codes: dict[str, dict[str, int]]
    groups: dict[str, list[str]]
    balanced: dict[str, Any] | None = None

    @classmethod
    def read_chosen(cls, path: Path | str, *, dataset: str, groups: Mapping[str, Any]) -> Grouping:
        """Grouping by what the entry `groups` of an audit chooses; InputError as `read`."""
        return cls.read(path, dataset=dataset, attributes=groups["attributes"], balanced=groups["balanced"])

    @classmethod
    def read(
        cls, path: Path | str, *, dataset: str, attributes: Sequence[str], balanced: dict[str, Any] | None = None
    ) -> Grouping:
        """Grouping from the table of attributes of a dataset; InputError for an attribute that is not in it."""
        frame, categories = read_attributes(path, expect={"dataset": dataset})
        needed = [*attributes, *([balanced["attribute"]] if balanced else [])]
        codes = {}
        for name in needed:
            if name not in categories:
                raise InputError(f"{path}: {unknown('attribute', name, list(categories))}; correct it in config.yaml")
            if not categories[name]:
                raise InputError(f"{path}: attribute {name!r} has no value in any sample; leave it out of `groups`")
            place = {group: index for index, group in enumerate(categories[name])}
            indices = (place.get(group, NO_GROUP) for group in frame[name])
            codes[name] = dict(zip(frame["sample_id"], indices, strict=True))
        return cls(codes, {name: categories[name] for name in attributes}, balanced)

    def of(self, attribute: str, sample_id: Iterable[str]) -> NDArray[np.int64]:
        """Group index of each sample, (N,) int64; InputError for a sample that is not in the table."""
        codes = self.codes[attribute]
        try:
            return np.array([codes[identifier] for identifier in sample_id], dtype=np.int64)
        except KeyError as error:
            raise InputError(
                f"attributes: sample {error} of the audit is not in the table; delete the table and run again"
            ) from error

    def balanced_part(self, sample_id: NDArray[np.str_]) -> NDArray[np.bool_] | None:
        """Mask (N,) bool of the samples in the balanced part; None without `balanced`.

        It depends on the samples, not on their order.
        """
        if self.balanced is None:
            return None
        chosen, order = np.zeros(len(sample_id), dtype=bool), np.argsort(np.asarray(sample_id, dtype=str))
        group = self.of(self.balanced["attribute"], sample_id)[order]
        chosen[order[balanced_rows(group, seed=self.balanced["seed"])]] = True
        return chosen
