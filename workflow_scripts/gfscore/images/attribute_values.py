"""Attributes of a dataset's samples, read from any source: text is used as is, numbers are cut at thresholds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.names import shortened, spelled_alike, spelling
from gfscore.images.attribute_source import (
    SAMPLE_ID,
    SOURCES,
    AttributeColumn,
    Cut,
    attribute_settings,
    column_name,
)
from gfscore.images.dataset_source import PlainSettings
from gfscore.images.image_set import ImageSet
from gfscore.images.manifests import open_described

MISSING = "missing"
"""Category of the samples without a value, where the configuration makes them a group."""

MOST_CATEGORIES = 100
"""Largest number of groups of an attribute; more indicate a column that is no attribute, such as a name."""


@dataclass(frozen=True)
class Dataset:
    """Input of a source of attributes: the manifest of a dataset and its images."""

    manifest: Mapping[str, Any]
    images: ImageSet

    @classmethod
    def open(cls, path_to_manifest: Path | str) -> Dataset:
        """Dataset of a manifest that fetch_dataset wrote; InputError as `open_described`."""
        images, manifest = open_described(path_to_manifest)
        return cls(manifest, images)

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.manifest["dataset"]

    @property
    def source(self) -> str:
        """Source of its images."""
        return self.manifest["settings"]["source"]

    @property
    def path(self) -> str | None:
        """File or folder of its images, where the source has one."""
        return self.manifest.get("path")


@dataclass(frozen=True)
class Attributes:
    """Attributes of the N samples of a dataset.

    Attributes
    ----------
    frame : DataFrame
        `sample_id` and a column per attribute (str, None where missing), a row per sample in the order of the dataset.
    categories : dict
        Ordered categories of each attribute, with empty ones where thresholds define them.
    missing : dict
        Number of samples without a value, by attribute.
    """

    frame: pd.DataFrame
    categories: dict[str, list[str]]
    missing: dict[str, int]


def attributes_of(entry: PlainSettings, dataset: Dataset, fixed_on: Dataset | None = None) -> Attributes:
    """Attributes of the samples of a dataset.

    Parameters
    ----------
    entry : mapping
        The entry `attributes` of a dataset in config.yaml.
    dataset : Dataset
        The dataset.
    fixed_on : Dataset or None
        Dataset on whose samples quantiles are taken, so that the groups do not depend on the audited samples.

    Raises
    ------
    InputError
        Naming the file, for a missing column and for samples that do not match.
    """
    settings = attribute_settings(entry)
    source = import_module(f"{SOURCES}.{settings.source}")
    path = getattr(settings, "path", None)
    where = _where(dataset, path)
    raw = _aligned(source.open_source(settings, dataset), dataset.images.sample_id, where)
    reference = None
    where_reference = where
    if fixed_on is not None:
        reference = source.open_source(settings, fixed_on)
        where_reference = _where(fixed_on, path)

    columns = {SAMPLE_ID: dataset.images.sample_id.astype(object)}
    categories: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    for column in settings.columns or list(raw.columns):
        name = column_name(column)
        if name in columns:
            raise InputError(f"{where}: column {name} has the name of the samples' identifiers; rename it in the data")
        values, order = _categorised(raw, column, reference, where=where, where_reference=where_reference)
        absent = np.array([value is None for value in values])
        missing[name] = int(absent.sum())
        if settings.missing == "group" and absent.any():
            if MISSING in order:
                raise InputError(f"{where}: {name}: {MISSING!r} is already a category; set missing: drop")
            values[absent] = MISSING
            order = [*order, MISSING]
        columns[name] = values
        categories[name] = order
    return Attributes(pd.DataFrame(columns, dtype=object), categories, missing)


def identity_of(entry: PlainSettings, dataset: Dataset, attributes: Attributes) -> dict[str, Any]:
    """Identity metadata of a table of attributes: dataset, settings, ordered categories, samples without a value."""
    return {
        "dataset": dataset.name,
        "dataset_digest": dataset.manifest["digest"],
        "settings": json.dumps(entry, sort_keys=True),
        "categories": attributes.categories,
        "missing": attributes.missing,
    }


def _where(dataset: Dataset, path_to_attributes: str | None) -> str:
    # Dataset and file of the attributes, for error messages.
    path = path_to_attributes or dataset.path
    words = f"attributes of {dataset.name}"
    return f"{words} ({path})" if path else words


def _aligned(raw: pd.DataFrame, sample_id: NDArray[np.str_], where: str) -> pd.DataFrame:
    # Rows of the samples in the order of the dataset.
    repeated = raw.index[raw.index.duplicated()]
    if len(repeated):
        rows = (raw.index == repeated[0]).sum()
        raise InputError(f"{where}: sample {repeated[0]!r} has {rows} rows; keep one")
    if not len(raw):
        raise InputError(f"{where}: the source holds no samples; check its path")
    if not raw.index.isin(sample_id).any():
        raise InputError(
            f"{where}: no sample of the dataset is among the {len(raw):,} with attributes: those have "
            f"identifiers such as {raw.index[0]!r}, the dataset's are such as {str(sample_id[0])!r}; correct the names"
        )
    return raw.reindex(sample_id)


def _categorised(
    raw: pd.DataFrame,
    column: AttributeColumn,
    reference: pd.DataFrame | None,
    *,
    where: str,
    where_reference: str,
) -> tuple[NDArray[np.object_], list[str]]:
    # Category of each sample (N,), str or None, and the categories in order: those of raw text and whole numbers, or
    # T + 1 of T thresholds, from low to high; a value at a threshold belongs to the upper one.
    name = column_name(column)
    if name not in raw:
        raise InputError(f"{where}: {unknown_name('column', name, list(raw.columns))}")
    if isinstance(column, str):
        return _categories_of_values(raw[name], f"{where}: column {name}")

    if isinstance(column, Cut):
        thresholds = column.cut
    else:
        assert reference is not None  # the settings name it
        reference_values = _numbers(reference, column.column, where_reference)
        present = reference_values[~np.isnan(reference_values)]
        if not len(present):
            raise InputError(
                f"{where_reference}: column {column.column} has no value in any of {len(reference_values):,} samples, "
                "so it has no quantiles; correct the data, or leave it out of `columns`"
            )
        thresholds = np.quantile(present, column.quantiles).tolist()
    numbers = _numbers(raw, name, where)
    names = np.array([*column.names, None], dtype=object)
    if raw[name].dtype == np.float32:
        # As the values were rounded, so that 0.7 is at a threshold of 0.7.
        thresholds = np.array(thresholds, dtype=np.float32).tolist()
    groups = np.digitize(numbers, thresholds)
    position_of_none = len(column.names)
    return names[np.where(np.isnan(numbers), position_of_none, groups)], list(column.names)


def _categories_of_values(column: pd.Series, where: str) -> tuple[NDArray[np.object_], list[str]]:
    present = column.dropna()
    if not present.map(pd.api.types.is_hashable).all():
        raise InputError(f"{where} holds lists or mappings; give one value per sample")
    if present.map(lambda value: isinstance(value, bytes)).any():
        raise InputError(f"{where} holds bytes; write the file again with text")

    # Category of each value, in the order of the categories; blank text has none.
    values = sorted(present.unique(), key=str)
    kind = present.infer_objects()
    words: dict[object, str] = {}
    if pd.api.types.is_bool_dtype(kind):
        words = {value: "yes" if value else "no" for value in values}
    elif pd.api.types.is_numeric_dtype(kind):
        if not all(float(value).is_integer() for value in values):
            raise InputError(f"{where} holds fractions; give thresholds: {{column: ..., cut: [...], names: [...]}}")
        words = {value: str(int(value)) for value in sorted(values)}
    else:
        words = {value: str(value) for value in values if str(value).strip()}

    if len(words) > MOST_CATEGORIES:
        raise InputError(
            f"{where} holds {len(words):,} values, more than {MOST_CATEGORIES} groups; cut numbers by `cut`, join "
            "texts in the table, or leave the column out"
        )
    # Two spellings of one group would be compared as two groups.
    pair = spelled_alike(sorted(set(words.values())), key=lambda word: spelling(word).casefold())
    if pair:
        raise InputError(
            f"{where} holds {pair[0]!a} and {pair[1]!a}, which differ in blanks, capitals or spelling in "
            "Unicode alone; use one spelling per group, or distinct names"
        )
    categories = np.array([words.get(value) for value in column.to_numpy()], dtype=object)
    return categories, list(dict.fromkeys(words.values()))


def _numbers(raw: pd.DataFrame, name: str, where: str) -> NDArray[np.float64]:
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
        largest = max(map(str, column.dropna()), key=len)
        raise _no_finite_number(largest, name, where) from None
    infinite = np.isinf(numbers)
    if infinite.any():
        raise _no_finite_number(column.iloc[infinite.argmax()], name, where)
    return numbers


def _no_finite_number(value: object, name: str, where: str) -> InputError:
    return InputError(
        f"{where}: column {name} cannot be cut, since {shortened(value, 40)} is no finite number; correct it, or "
        "leave the cell empty"
    )
