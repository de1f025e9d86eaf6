"""Encoded images in Parquet files, in the layout of Hugging Face's datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Part, Preprocessing, as_stored


class Parquet(DatasetSettings):
    """Parquet files with encoded images."""

    source: Literal["parquet"] = "parquet"
    path: Text = Field(description="Parquet file, or folder of them (shards).")
    image: Text = Field("image", description="Column of encoded images: bytes, or {bytes, path}.")
    label: Text = Field(
        "label", description="Column of labels: whole numbers from 0, or class names (then in alphabetical order)."
    )
    part: Part | None = Field(
        None, description="One part of a seeded two-way split, stratified by class; null for all samples."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)


SOURCE = DatasetSource(
    name="parquet",
    settings=Parquet,
    claims=path_ends(".parquet"),
    # Hugging Face's metadata may name more classes than the rows have.
    empty_classes=lambda _settings: True,
)


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images of one Parquet file, or of all .parquet files of a folder in the order of their names.

    `settings`: the columns `image` and `label`, `part` (None, or name, test_share, within and seed of a two-way split)
    and `preprocessing`. If labels are text, the classes are these names in alphabetical order. Identifiers are
    "<file>/<row>". Row groups are read one after another. Raises InputError, naming the file, for damaged files,
    missing columns, and labels or images that are missing or of another type.
    """
    import numpy as np

    from gfscore.images.encoded import class_indices, encoded_images, from_encoded, labels_in
    from gfscore.images.subsets import in_test_part

    path = Path(path or "")
    files = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: no .parquet file in this folder; check `path` of this dataset")
    labels, names_of_labels = class_indices([labels_in(file, settings["label"]) for file in files], path)
    if not any(map(len, labels)):
        raise InputError(f"{path}: no rows; check `path` of this dataset")
    starts = np.cumsum([0, *map(len, labels)])

    def blobs(rows: Any) -> Any:
        for file, start, end in zip(files, starts, starts[1:], strict=False):
            inside = rows[(rows >= start) & (rows < end)] - start
            yield from encoded_images(file, settings["image"], inside)

    names = [f"{file.stem}/{row:06d}" for file, part in zip(files, labels, strict=True) for row in range(len(part))]
    class_names = names_of_labels or _class_names(files[0], settings["label"])
    joined, part = np.concatenate(labels), settings["part"]
    images = from_encoded(
        blobs, joined, sample_id=names, preprocessing=settings["preprocessing"], class_names=class_names
    )
    if part is None:
        return images
    strata = joined
    if part["within"] is not None:
        strata = np.concatenate(class_indices([labels_in(file, part["within"]) for file in files], path)[0])
    test = in_test_part(strata, share=part["test_share"], seed=part["seed"])
    return images.select(np.flatnonzero(test == (part["name"] == "test")))


def _class_names(file, column):
    from gfscore.images.encoded import opened

    with opened(file, column) as parquet:
        stored = (parquet.schema_arrow.metadata or {}).get(b"huggingface")
    if stored is None:
        return None
    try:
        names = json.loads(stored).get("info", {}).get("features", {}).get(column, {}).get("names") or []
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"names are {names}")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"{file}: its metadata `huggingface` do not list the class names ({error}); write the file again"
        ) from error
    return tuple(names) or None
