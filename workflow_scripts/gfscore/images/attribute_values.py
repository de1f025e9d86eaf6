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
from gfscore.images.attributes.categories import categorised, name_of, thresholds_of

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.images.image_set import ImageSet

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
