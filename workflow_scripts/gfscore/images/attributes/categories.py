"""From raw values to categories: text as it is, numbers cut at thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.core.names import shortened, spelled_alike, spelling

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_CATEGORIES = 100
"""Groups of one attribute beyond which a column is taken for numbers or names that were not meant as groups."""


def name_of(entry: str | Mapping[str, Any]) -> str:
    """Name of the attribute that an entry of `columns` makes: a column, or {column, cut or quantiles, names}."""
    return entry if isinstance(entry, str) else entry["column"]


def thresholds_of(entry: str | Mapping[str, Any], reference: DataFrame | None, *, where: str) -> list[float] | None:
    """Thresholds of an attribute, or None: as config states them, or quantiles of the reference's raw column.

    Raises InputError, naming `where`, for values that are no finite numbers, and where there are none.
    """
    if isinstance(entry, str):
        return None
    if "cut" in entry:
        return entry["cut"]
    values = _numbers(reference, entry["column"], where)
    present = values[~np.isnan(values)]
    if not len(present):
        raise InputError(
            f"{where}: column {entry['column']} has no value in any of {len(values):,} samples, so it has no "
            "quantiles; correct the data, or leave it out of `columns`"
        )
    return np.quantile(present, entry["quantiles"]).tolist()


def categorised(
    raw: DataFrame, entry: str | Mapping[str, Any], thresholds: Sequence[float] | None, *, where: str
) -> tuple[NDArray[Any], list[str]]:
    """Categories of the samples, (N,) of str or None, and the list of them in order.

    Takes a data frame of raw columns. Without thresholds each value is a category, numbers in ascending order. With T
    thresholds there are T + 1 categories, named by the entry's `names` from low to high; a value at a threshold belongs
    to the upper one. Raises InputError, naming `where`, for fractions without thresholds, lists, too many
    categories, and two that differ in blanks, capitals or spelling in Unicode alone.
    """
    name = name_of(entry)
    if name not in raw:
        raise InputError(f"{where}: {unknown('column', name, list(raw.columns))}")
    if thresholds is None:
        return _as_they_are(raw[name], f"{where}: column {name}")
    assert not isinstance(entry, str)  # a name alone has no thresholds
    numbers = _numbers(raw, name, where)
    names = np.array([*entry["names"], None], dtype=object)
    place = np.where(np.isnan(numbers), len(entry["names"]), np.digitize(numbers, thresholds))
    return names[place], list(entry["names"])


def _as_they_are(column, where):
    import pandas as pd

    present = column.dropna()
    if not present.map(pd.api.types.is_hashable).all():
        raise InputError(f"{where} holds lists or mappings; give one value per sample")
    if present.map(lambda value: isinstance(value, bytes)).any():
        raise InputError(f"{where} holds bytes; write the file again with text")
    order = sorted(present.unique(), key=str)
    if pd.api.types.is_bool_dtype(present.infer_objects()):
        words = {value: "yes" if value else "no" for value in order}
    elif pd.api.types.is_numeric_dtype(present.infer_objects()):
        order = sorted(order)
        if not all(float(value).is_integer() for value in order):
            raise InputError(f"{where} holds fractions; say where to cut: {{column: ..., cut: [...], names: [...]}}")
        words = {value: str(int(value)) for value in order}
    else:
        words = {value: str(value) for value in order}
    words = {value: word for value, word in words.items() if word.strip()}
    if len(words) > MOST_CATEGORIES:
        raise InputError(
            f"{where} holds {len(words):,} values, more than {MOST_CATEGORIES} groups; cut it or leave it out"
        )
    _require_distinct(set(words.values()), where)
    values = np.array([words.get(value) for value in column.to_numpy()], dtype=object)
    return values, list(dict.fromkeys(words.values()))


def _require_distinct(words, where):
    # One group in two spellings would be compared with itself.
    pair = spelled_alike(sorted(words), key=lambda word: spelling(word).casefold())
    if pair:
        raise InputError(
            f"{where} holds {pair[0]!a} and {pair[1]!a}, which differ in blanks, capitals or spelling in "
            "Unicode alone; write one group in one way, or give two groups other names"
        )


def _numbers(raw, name, where):
    import pandas as pd

    column = raw[name]
    if column.dtype.kind in "mM":
        raise InputError(
            f"{where}: column {name} cannot be cut, since it holds dates or times ({column.dtype}); write them as "
            "numbers, such as years"
        )
    try:
        numbers = pd.to_numeric(column).to_numpy(dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: column {name} cannot be cut, since not all are numbers ({error})") from error
    # Whole numbers of more digits than a float holds, unlike fractions, do not become infinite by themselves.
    except OverflowError:
        beyond = max(map(str, column.dropna()), key=len)
    else:
        infinite = np.isinf(numbers)
        if not infinite.any():
            return numbers
        beyond = column.iloc[infinite.argmax()]
    raise InputError(
        f"{where}: column {name} cannot be cut, since {shortened(beyond, 40)} is no finite number; correct it, or "
        "leave the cell empty"
    )
