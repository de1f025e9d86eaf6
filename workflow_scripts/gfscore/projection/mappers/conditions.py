"""Attributes of samples as numbers that a conditional mapper can be moved between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = 0.5
"""Where a missing attribute starts: halfway between its values."""


def condition_names(categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the conditions (A,), from the categories of each attribute in order.

    An attribute of two categories is one condition, from the first to the second; one of more is one condition for
    each of them; one of a single category is none.
    """
    return [f"{attribute}={value}" for attribute, values in categories.items() for value in _coded(values)]


def conditions_of(
    frame: pd.DataFrame, categories: Mapping[str, Sequence[str]], *, source: object
) -> NDArray[np.float32]:
    """Conditions (N, A) float32: 1 where the sample has the category, 0 where it has another, NaN where none is known.

    `frame` holds one column of str or None per attribute (as read_attributes gives it), `categories` those that the
    mapper was trained with. Raises InputError, naming the `source` of the frame, for an attribute that it does not have
    and for a category that the mapper does not know, which would count as every other one.
    """
    columns = []
    for attribute, values in categories.items():
        if attribute not in frame:
            held = [name for name in frame if name != "sample_id"]
            raise InputError(f"{source}: {unknown('attribute', attribute, held)}; the mapper is conditioned on it")
        found = frame[attribute].to_numpy(dtype=object)
        missing = frame[attribute].isna().to_numpy()
        strange = sorted(set(found[~missing]) - set(values))
        if strange:
            raise InputError(
                f"{source}: {attribute} holds {', '.join(map(repr, strange[:5]))}, but the mapper knows only "
                f"{', '.join(map(repr, values))}; make the attributes of all its data sets alike in config.yaml"
            )
        columns += [np.where(missing, np.nan, found == value).astype(np.float32) for value in _coded(values)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(frame), 0), dtype=np.float32)


def placed(conditions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Conditions with a missing one halfway between its values, so that an image can be decoded."""
    return np.where(np.isnan(conditions), np.float32(UNKNOWN), conditions)


def _coded(values):
    return {1: [], 2: values[1:]}.get(len(values), values)
