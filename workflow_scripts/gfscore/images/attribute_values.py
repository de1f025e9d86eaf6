"""Attributes of a dataset's samples, read from any source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.errors import InputError
from gfscore.images.attribute_source import SOURCES

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.images.image_set import ImageSet
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from gfscore.core.errors import unknown
from gfscore.core.names import shortened, spelled_alike, spelling

if TYPE_CHECKING:
    from pandas import DataFrame


MISSING = "missing"
"""Category of the samples without a value, where the configuration makes them a group."""


@dataclass(frozen=True)
class Dataset:
    """Input of a source of attributes: the manifest of a dataset and its images."""

    manifest: dict[str, Any]
    images: ImageSet


def attributes_of(
    settings: Mapping[str, Any], dataset: Dataset, fixed_on: Dataset | None = None
) -> tuple[pd.DataFrame, dict[str, list[str]], dict[str, int]]:
    """Attributes of the N samples of a dataset: `(frame, categories, missing)`.

    Takes the entry `attributes` of a dataset in config.yaml and a Dataset; quantiles are taken on `fixed_on`, so that
    the groups do not depend on the audited samples. `frame` has sample_id and one column per attribute (str, None where
    missing) in the order of the dataset; `categories` maps each attribute to its ordered categories (those of
    thresholds include empty ones), `missing` to the number of samples without a value. Raises InputError, naming the
    file, for a missing column and for samples that do not match.
    """
    import pandas as pd

    source = import_module(f"{SOURCES}.{settings['source']}")
    where = _where(settings, dataset)
    raw = _aligned(source.open_source(settings, dataset), dataset, where)
    reference = source.open_source(settings, fixed_on) if fixed_on else None
    columns, categories, missing = {"sample_id": dataset.images.sample_id.astype(object)}, {}, {}
    for entry in settings["columns"] or list(raw.columns):
        name = name_of(entry)
        if name in columns:
            raise InputError(f"{where}: column {name} has the name of the samples' identifiers; rename it in the data")
        cut = thresholds_of(entry, reference, where=_where(settings, fixed_on or dataset))
        values, order = categorised(raw, entry, cut, where=where)
        absent = np.array([value is None for value in values])
        missing[name] = int(absent.sum())
        if settings["missing"] == "group" and absent.any():
            if MISSING in order:
                raise InputError(f"{where}: {name}: {MISSING!r} is already a category; set missing: drop")
            values[absent], order = MISSING, [*order, MISSING]
        columns[name], categories[name] = values, order
    return pd.DataFrame(columns, dtype=object), categories, missing


def identity_of(
    settings: Mapping[str, Any],
    dataset: Dataset,
    categories: Mapping[str, list[str]],
    missing: Mapping[str, int],
) -> dict[str, Any]:
    """Identity metadata of a table of attributes: dataset, settings, ordered categories, samples without a value."""
    return {
        "dataset": dataset.manifest["dataset"],
        "dataset_digest": dataset.manifest["digest"],
        "settings": json.dumps(settings, sort_keys=True),
        "categories": categories,
        "missing": missing,
    }


def _where(settings, dataset):
    """Dataset and file of the attributes, for error messages."""
    path = settings.get("path") or dataset.manifest.get("path")
    return f"attributes of {dataset.manifest['dataset']}" + (f" ({path})" if path else "")


def _aligned(raw, dataset, where):
    repeated = raw.index[raw.index.duplicated()]
    if len(repeated):
        raise InputError(f"{where}: sample {repeated[0]!r} has {(raw.index == repeated[0]).sum()} rows; keep one")
    wanted = dataset.images.sample_id
    if not raw.index.isin(wanted).any():
        raise InputError(
            f"{where}: no sample of the dataset is among the {len(raw):,} with attributes: those have "
            f"identifiers such as {raw.index[0]!r}, the dataset's are such as {str(wanted[0])!r}; correct the names"
            if len(raw)
            else f"{where}: the source holds no samples; check its path"
        )
    return raw.reindex(wanted)


# ---- Categories of attributes from raw values: text is used as is, numbers are cut at thresholds.


MOST_CATEGORIES = 100
"""Largest number of groups of an attribute; more indicate a column that is no attribute, such as a name."""


def name_of(entry: str | Mapping[str, Any]) -> str:
    """Name of the attribute of an entry of `columns`: a column name, or {column, cut or quantiles, names}."""
    return entry if isinstance(entry, str) else entry["column"]


def thresholds_of(entry: str | Mapping[str, Any], reference: DataFrame | None, *, where: str) -> list[float] | None:
    """Thresholds of an attribute: those of the entry, or quantiles of the raw column of `reference`; None without any.

    Raises InputError, naming `where`, for a column of the reference without values or with non-finite ones.
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

    Takes a data frame of raw columns. Without thresholds each value is a category, numbers in ascending order. T
    thresholds make T + 1 categories, named by the entry's `names` from low to high; a value at a threshold belongs to
    the upper one. Raises InputError, naming `where`, for fractions without thresholds, lists, too many categories, and
    categories that differ only in blanks, capitals or Unicode spelling.
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
            raise InputError(f"{where} holds fractions; give thresholds: {{column: ..., cut: [...], names: [...]}}")
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
    # Two spellings of one group would be compared as two groups.
    pair = spelled_alike(sorted(words), key=lambda word: spelling(word).casefold())
    if pair:
        raise InputError(
            f"{where} holds {pair[0]!a} and {pair[1]!a}, which differ in blanks, capitals or spelling in "
            "Unicode alone; use one spelling per group, or distinct names"
        )


def _numbers(raw, name, where):
    import pandas as pd

    column = raw[name]
    if column.dtype.kind in "mM":
        raise InputError(
            f"{where}: column {name} cannot be cut, since it holds dates or times ({column.dtype}); convert them to "
            "numbers, such as years"
        )
    try:
        numbers = pd.to_numeric(column).to_numpy(dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{where}: column {name} cannot be cut, since not all values are numbers ({error}); correct them"
        ) from error
    # Integers beyond the range of float64 raise an error instead of becoming infinite.
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
