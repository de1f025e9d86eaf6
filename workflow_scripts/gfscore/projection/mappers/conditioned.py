"""Images of a dataset and the conditions of a mapper for them."""

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


def conditioned_images(
    path_to_manifest: Path | str,
    path_to_attributes: Path | str | None,
    categories: Mapping[str, Sequence[str]] | None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, dict[str, Any]]:
    """Images (n, C, H, W), conditions (n, A) or None, and the manifest of a dataset.

    `path_to_attributes` and `categories` are None for a mapper without conditions. If the dataset has more than `most`
    images, a random subset of that size is drawn with `seed`, in the order of the dataset.
    """
    images, described = open_described(path_to_manifest)
    if most is not None and len(images) > most:
        # Random, since many datasets are sorted by class.
        images = images.select(np.sort(np.random.default_rng(seed).choice(len(images), most, replace=False)))
    of_samples = conditions_by_sample(path_to_attributes, categories, dataset=described["dataset"])
    return _pixels(images), of_samples(images.sample_id).get("conditions"), described


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


def _pixels(images):
    # Filled batch by batch, since concatenation would need the memory twice.
    pixels, start = np.empty((len(images), *images.image_shape), dtype=np.float32), 0
    for batch in images.batches(READ_AT_ONCE):
        pixels[start : start + len(batch)] = batch
        start += len(batch)
    return pixels
