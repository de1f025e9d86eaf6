"""Parquet files with encoded images, in the layout of Hugging Face's datasets."""

import json
from pathlib import Path

import numpy as np

from gfscore.datasets import from_encoded
from gfscore.datasets._parquet import encoded_images, opened
from gfscore.errors import InputError

SETTINGS = {
    "path": {"description": "Parquet file, or folder of them (shards).", "type": "string", "minLength": 1},
    "image": {"description": "Column of encoded images: bytes, or {bytes, path}.", "type": "string", "minLength": 1},
    "label": {"description": "Column of labels, whole numbers from 0.", "type": "string", "minLength": 1},
    "preprocessing": {"$ref": "#/$defs/preprocessing"},
}


def open_source(settings, path):
    """Images of one Parquet file or, in the order of their names, of every .parquet file of a folder.

    `settings`: the columns `image` and `label`, and `preprocessing`. Identifiers are "<file>/<row>". Row groups
    are read one after another. Raises InputError, naming the file, for damaged files, missing columns, and
    labels or images that are missing or of another type.
    """
    path = Path(path or "")
    files = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: no .parquet file in this folder; check `path` of this dataset")
    labels = [_labels(file, settings["label"]) for file in files]
    if not any(map(len, labels)):
        raise InputError(f"{path}: no rows; check `path` of this dataset")
    starts = np.cumsum([0, *map(len, labels)])

    def blobs(rows):
        for file, start, end in zip(files, starts, starts[1:], strict=False):
            inside = rows[(rows >= start) & (rows < end)] - start
            yield from encoded_images(file, settings["image"], inside)

    names = [f"{file.stem}/{row:06d}" for file, part in zip(files, labels, strict=True) for row in range(len(part))]
    chosen = {"preprocessing": settings["preprocessing"], "class_names": _class_names(files[0], settings["label"])}
    return from_encoded(blobs, np.concatenate(labels), sample_id=names, **chosen)


def _labels(file, column):
    with opened(file, column) as parquet:
        values = parquet.read([column])[column]
    if values.null_count or not str(values.type).removeprefix("u").startswith("int"):
        raise InputError(f"{file}: column {column} is {values.type}, {values.null_count} null; give whole numbers")
    return values.to_numpy().astype(np.int64)


def _class_names(file, column):
    with opened(file, column) as parquet:
        features = json.loads((parquet.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    names = features.get("info", {}).get("features", {}).get(column, {}).get("names")
    return tuple(names) if names else None
