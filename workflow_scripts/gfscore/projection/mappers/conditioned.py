"""Images of a dataset together with the conditions that a mapper takes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.images.datasets import open_described
from gfscore.projection.mappers.conditions import condition_names, conditions_of
from gfscore.tables.parquet_tables import read_attributes

READ_AT_ONCE = 256
"""Images that are decoded together."""


def chosen_categories(path_to_attributes: Path | str, attributes: Sequence[str] | None) -> dict[str, list[str]]:
    """Categories of the attributes that condition a mapper, in order; all that the table has where None is given.

    Raises InputError for an attribute that the table does not have.
    """
    _, categories = read_attributes(path_to_attributes)
    for name in attributes or ():
        if name not in categories:
            raise InputError(f"{path_to_attributes}: {unknown('attribute', name, categories)}")
    return {name: categories[name] for name in attributes or categories}


def conditioned_images(
    path_to_manifest: Path | str,
    path_to_attributes: Path | str | None,
    categories: Mapping[str, Sequence[str]] | None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, dict[str, Any]]:
    """Images (n, C, H, W), conditions (n, A) or None, and the manifest of a dataset.

    `path_to_attributes` and `categories` are None for a mapper without conditions. Of a dataset of more than `most`
    images a part of that size is drawn by `seed`, in the order of the dataset; None takes all.
    """
    images, described = open_described(path_to_manifest)
    if most is not None and len(images) > most:
        # Drawn, since many datasets are sorted by class.
        images = images.select(np.sort(np.random.default_rng(seed).choice(len(images), most, replace=False)))
    of_samples = conditions_by_sample(path_to_attributes, categories, dataset=described["dataset"])
    return _pixels(images), of_samples(images.sample_id).get("conditions"), described


def conditions_by_sample(
    path_to_attributes: Path | str | None, categories: Mapping[str, Sequence[str]] | None, *, dataset: str | None = None
) -> Callable[[Iterable[str]], dict[str, NDArray[np.float32]]]:
    """Function from sample identifiers (n,) to the keyword argument `conditions` (n, A); {} without attributes.

    `dataset` is the one whose attributes the table must hold, None for any. Raises InputError, naming the file, for
    attributes and categories that the mapper and the table do not share, and for a sample that the table does not have.
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
    """Names of the conditions, or None for a mapper without any."""
    return None if categories is None else condition_names(categories)


def _pixels(images):
    # Filled batch by batch: joining batches would take their memory twice.
    pixels, start = np.empty((len(images), *images.image_shape), dtype=np.float32), 0
    for batch in images.batches(READ_AT_ONCE):
        pixels[start : start + len(batch)] = batch
        start += len(batch)
    return pixels
