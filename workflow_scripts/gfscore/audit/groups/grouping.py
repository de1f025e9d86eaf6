"""Groups of the samples of an audit by their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.groups.fairness import balanced_rows
from gfscore.audit.settings import BalancedSubsample, GroupSettings
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.mappings import positions
from gfscore.tables.parquet_tables import read_attributes

NO_GROUP = -1
"""Group index of a sample without a value."""


@dataclass(frozen=True)
class Grouping:
    """Groups of the samples of a dataset.

    Parameters
    ----------
    codes : dict
        By attribute and sample_id: index of the sample's group, NO_GROUP without a value.
    groups : dict
        Names of the groups of each attribute that is compared.
    balanced : BalancedSubsample or None
        Attribute whose groups are equally large in the balanced subsample, and seed of its draw.
    """

    codes: dict[str, dict[str, int]]
    groups: dict[str, list[str]]
    balanced: BalancedSubsample | None = None

    @classmethod
    def read_chosen(cls, path: Path | str, *, dataset: str, groups: GroupSettings) -> Grouping:
        """Read the groups that the entry `groups` of an audit chooses; raises InputError as `read` does."""
        return cls.read(path, dataset=dataset, attributes=groups.attributes or (), balanced=groups.balanced)

    @classmethod
    def read(
        cls, path: Path | str, *, dataset: str, attributes: Sequence[str], balanced: BalancedSubsample | None = None
    ) -> Grouping:
        """Read the groups of a dataset.

        Parameters
        ----------
        path : path
            Table of attributes.
        dataset : str
            Name of the dataset that the table must be of.
        attributes : sequence of str
            Attributes that are compared.
        balanced : BalancedSubsample, optional
            See the class.

        Raises
        ------
        InputError
            For an attribute that is not in the table, or has no value in any sample.
        """
        frame, categories = read_attributes(path, expect={"dataset": dataset})
        needed = list(attributes)
        if balanced is not None:
            needed.append(balanced.attribute)

        codes = {}
        for name in needed:
            if name not in categories:
                raise InputError(
                    f"{path}: {unknown_name('attribute', name, list(categories))}; correct it in the audit's `groups`"
                )
            if not categories[name]:
                raise InputError(f"{path}: attribute {name!r} has no value in any sample; leave it out of `groups`")
            index_by_group = positions(categories[name])
            indices = [index_by_group.get(group, NO_GROUP) for group in frame[name]]
            codes[name] = dict(zip(frame["sample_id"], indices, strict=True))
        return cls(codes, {name: categories[name] for name in attributes}, balanced)

    def group_indices(self, attribute: str, sample_id: Iterable[str]) -> NDArray[np.int64]:
        """Group index of each sample, (N,) int64, NO_GROUP for none; InputError for a sample not in the table."""
        codes = self.codes[attribute]
        try:
            return np.array([codes[identifier] for identifier in sample_id], dtype=np.int64)
        except KeyError as error:
            raise InputError(
                f"attributes: sample {error} of the audit is not in the table; delete the table and run again"
            ) from error

    def balanced_subsample(self, sample_id: NDArray[np.str_]) -> NDArray[np.bool_] | None:
        """Random subsample in which all groups of the balanced attribute have the size of the smallest one.

        It does not depend on the order of the samples.

        Parameters
        ----------
        sample_id : array of str, shape (N,)

        Returns
        -------
        array of bool, shape (N,), or None
            Whether each sample is in it; None where no attribute is balanced.
        """
        if self.balanced is None:
            return None
        order = np.argsort(np.asarray(sample_id, dtype=str))
        group = self.group_indices(self.balanced.attribute, sample_id)[order]
        in_subsample = np.zeros(len(sample_id), dtype=bool)
        in_subsample[order[balanced_rows(group, seed=self.balanced.seed)]] = True
        return in_subsample
