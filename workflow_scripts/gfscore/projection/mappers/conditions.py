"""Encoding of attributes as the numeric conditions of a conditional mapper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.tables.parquet_tables import read_attributes

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = 0.5
"""Condition of a missing attribute, halfway between its values."""


def condition_names(categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the conditions (A,), from the ordered categories of each attribute.

    An attribute with two categories is one condition, from the first to the second; one with more categories is one
    condition per category; one with a single category is none.
    """
    return [f"{attribute}={value}" for attribute, values in categories.items() for value in _coded(values)]


def conditions_of(
    frame: pd.DataFrame, categories: Mapping[str, Sequence[str]], *, source: object
) -> NDArray[np.float32]:
    """Conditions (N, A) float32: 1 if the sample has the category, 0 if it has another, NaN if the value is missing.

    `frame` holds one column of str or None per attribute (as returned by read_attributes), `categories` those that the
    mapper was trained with. Raises InputError, naming the `source` of the frame, for a missing attribute and for a
    category that the mapper was not trained with.
    """
    columns = []
    for attribute, values in categories.items():
        if attribute not in frame:
            held = [name for name in frame if name != "sample_id"]
            raise InputError(f"{source}: {unknown('attribute', attribute, held)}; the mapper is conditioned on it")
        column = frame[attribute].to_numpy(dtype=object)
        missing = frame[attribute].isna().to_numpy()
        strange = sorted(set(column[~missing]) - set(values))
        if strange:
            raise InputError(
                f"{source}: {attribute} holds {', '.join(map(repr, strange[:5]))}, but the mapper was trained with "
                f"{', '.join(map(repr, values))}; give all its datasets the same categories in config.yaml"
            )
        columns += [np.where(missing, np.nan, column == value).astype(np.float32) for value in _coded(values)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(frame), 0), dtype=np.float32)


def placed(conditions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Conditions with missing values (NaN) replaced by UNKNOWN, so that images can be decoded."""
    return np.where(np.isnan(conditions), np.float32(UNKNOWN), conditions)


def _coded(values):
    return {1: [], 2: values[1:]}.get(len(values), values)


# ---- Images of a dataset and the conditions of a mapper for them.


"""Images read per batch."""


def chosen_categories(path_to_attributes: Path | str, attributes: Sequence[str] | None) -> dict[str, list[str]]:
    """Ordered categories of the attributes that condition a mapper; those of all attributes in the table for None.

    Raises InputError for an attribute that is not in the table.
    """
    _, categories = read_attributes(path_to_attributes)
    for name in attributes or ():
        if name not in categories:
            raise InputError(f"{path_to_attributes}: {unknown('attribute', name, categories)}")
    return {name: categories[name] for name in attributes or categories}


def conditions_by_sample(
    path_to_attributes: Path | str | None, categories: Mapping[str, Sequence[str]] | None, *, dataset: str | None = None
) -> Callable[[Iterable[str]], dict[str, NDArray[np.float32]]]:
    """Function from sample identifiers (n,) to the keyword argument `conditions` (n, A); {} without attributes.

    `dataset` is that of the table, None for any. Raises InputError, naming the file, for attributes or categories that
    differ between mapper and table, and for a sample that is not in the table.
    """
    if not path_to_attributes:
        return lambda sample_id: {}
    assert categories is not None  # a mapper without conditions reads no attributes
    frame, _ = read_attributes(path_to_attributes, expect={"dataset": dataset} if dataset else {})
    place = {name: row for row, name in enumerate(frame["sample_id"])}
    conditions = conditions_of(frame, categories, source=path_to_attributes)

    def of_samples(sample_id: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        absent = [name for name in sample_id if name not in place]
        if absent:
            raise InputError(f"{path_to_attributes}: no sample {str(absent[0])!r}; delete the file, and run again")
        return {"conditions": conditions[[place[name] for name in sample_id]]}

    return of_samples


def names_of(categories: Mapping[str, Sequence[str]] | None) -> list[str] | None:
    """Names of the conditions; None for a mapper without conditions."""
    return None if categories is None else condition_names(categories)
