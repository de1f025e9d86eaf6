"""Attributes of samples as the numeric conditions of a conditional mapper."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.mappings import positions
from gfscore.tables.parquet_tables import read_attributes

UNKNOWN = 0.5
"""Condition of a missing attribute, halfway between its values."""

Categories = Mapping[str, Sequence[str]]
"""Ordered categories of each attribute."""

ConditionsOfSamples = Callable[[NDArray[np.str_]], dict[str, NDArray[np.float32]]]
"""Function of sample identifiers (n,), which gives the keyword argument `conditions` (n, A), or none."""


def chosen_categories(path_to_attributes: Path | str, attributes: Sequence[str] | None) -> dict[str, list[str]]:
    """Ordered categories of the attributes that condition a mapper; None: of all attributes in the table.

    Raises InputError for an attribute that is not in the table.
    """
    _, categories = read_attributes(path_to_attributes)
    if attributes is None:
        return categories
    chosen = {}
    for name in attributes:
        if name not in categories:
            raise InputError(f"{path_to_attributes}: {unknown_name('attribute', name, categories)}")
        chosen[name] = categories[name]
    return chosen


def condition_names(categories: Categories) -> list[str]:
    """Names of the conditions (A,), from the ordered categories of each attribute.

    An attribute with two categories is one condition, from the first to the second; one with more categories is one
    condition per category; one with a single category is none.
    """
    names = []
    for attribute, values in categories.items():
        names += [f"{attribute}={value}" for value in _coded(values)]
    return names


def conditions_of(frame: pd.DataFrame, categories: Categories, *, source: object) -> NDArray[np.float32]:
    """Conditions of samples.

    Parameters
    ----------
    frame : DataFrame
        A row per sample, and a column of str or None per attribute, as read_attributes returns it.
    categories : mapping
        Categories that the mapper was trained with.
    source : object
        Source of the frame, which errors name.

    Returns
    -------
    ndarray of shape (N, A), float32
        1 where the sample has the category, 0 where it has another, NaN where the value is missing.

    Raises
    ------
    InputError
        For a missing attribute, and for a category that the mapper was not trained with.
    """
    columns = []
    for attribute, values in categories.items():
        if attribute not in frame:
            attributes = [name for name in frame if name != "sample_id"]
            raise InputError(
                f"{source}: {unknown_name('attribute', attribute, attributes)}; the mapper is conditioned on it"
            )
        column = frame[attribute].to_numpy(dtype=object)
        missing = frame[attribute].isna().to_numpy()
        untrained = sorted(set(column[~missing]) - set(values))
        if untrained:
            raise InputError(
                f"{source}: {attribute} holds {', '.join(map(repr, untrained[:5]))}, but the mapper was trained with "
                f"{', '.join(map(repr, values))}; give all its datasets the same categories"
            )
        for value in _coded(values):
            columns.append(np.where(missing, np.nan, column == value).astype(np.float32))
    if not columns:
        return np.zeros((len(frame), 0), dtype=np.float32)
    return np.stack(columns, axis=1)


def conditions_by_sample(
    path_to_attributes: Path | str | None, categories: Categories | None, *, dataset: str | None = None
) -> ConditionsOfSamples:
    """Function from sample identifiers to conditions, by a table of attributes.

    Parameters
    ----------
    path_to_attributes : path or None
        The table; None for a mapper without conditions, for which the function returns no keyword argument.
    categories : mapping or None
        Categories that the mapper was trained with.
    dataset : str or None
        Dataset that the table must be of; None for any.

    Raises
    ------
    InputError
        Naming the file, for attributes or categories that differ between mapper and table; the function also raises it,
        for a sample that is not in the table.
    """
    if not path_to_attributes:
        return lambda _sample_id: {}
    assert categories is not None  # a mapper without conditions reads no attributes
    frame, _ = read_attributes(path_to_attributes, expect={"dataset": dataset} if dataset else {})
    row_of = positions(frame["sample_id"])
    conditions = conditions_of(frame, categories, source=path_to_attributes)

    def of_samples(sample_id: NDArray[np.str_]) -> dict[str, NDArray[np.float32]]:
        rows = []
        for name in sample_id:
            if name not in row_of:
                raise InputError(f"{path_to_attributes}: no sample {str(name)!r}; delete the file, and run again")
            rows.append(row_of[name])
        return {"conditions": conditions[rows]}

    return of_samples


def imputed(conditions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Conditions with missing values (NaN) replaced by UNKNOWN, so that images can be decoded."""
    return np.where(np.isnan(conditions), np.float32(UNKNOWN), conditions)


def _coded(values: Sequence[str]) -> Sequence[str]:
    # Categories that are conditions.
    if len(values) == 1:
        return []
    if len(values) == 2:
        return values[1:]
    return values
