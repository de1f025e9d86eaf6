"""Images read again after a run: whether they are still those that the manifest of their dataset describes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core import digests
from gfscore.core.digests import require_pinned
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.images.datasets import open_images
from gfscore.images.image_set import ImageSet
from gfscore.images.listing import left_behind
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET


def open_and_describe(
    settings: Mapping[str, Any],
    path: Path | str | None = None,
    *,
    dataset: str,
    classes: Sequence[str] | None,
    pinned: str | None = None,
) -> tuple[ImageSet, dict[str, Any]]:
    """Image set of a dataset, and its manifest: a mapping for JSON with its description, digest and settings.

    Raises InputError as `open_images` does, and when a digest is `pinned` and the data have another one. The manifest
    does not record the pinned digest, since it does not change the data.
    """
    images = open_images(settings, path, classes=classes, with_copies=True)
    require_pinned(images.digest, pinned, where=path or dataset, remedy="restore the data, or correct `digest`")
    names = classes or images.class_names or ()
    return images, {
        "dataset": dataset,
        "settings": dict(settings),
        "path": str(path) if path else None,
        "digest": images.digest,
        "digest_covers": images.digest_covers,
        "samples": len(images),
        "classes": list(names),
        "samples_per_class": np.bincount(images.labels, minlength=len(names)).tolist(),
        "image_shape": list(images.image_shape),
        "preprocessing": images.preprocessing,
        **({"corrupted": images.copies.describe()} if images.copies else {}),
    }


def image_digests(images: ImageSet, *, where: Path | str) -> dict[str, NDArray[np.str_] | None]:
    """Digests of the N images in the columns of the table `dataset`.

    Parameters
    ----------
    images : ImageSet
        Every image is decoded.
    where : Path or str
        File or folder that errors name.

    Returns
    -------
    dict
        `image_digest`, that of each image as it is stored, and `pixel_digest`, that of its pixels after preprocessing:
        (N,) str, or None for labels without images.

    Raises
    ------
    InputError
        Naming two samples, for equal pixels under different labels: one label is wrong.
    """
    stored = images.image_digests()
    pixels = stored if images.decoded is None else images.pixel_digests()
    if pixels is not None:
        require_one_label(images, pixels, where=where)
    return {"image_digest": stored, "pixel_digest": pixels}


def require_one_label(images: ImageSet, digests: NDArray[Any], *, where: Path | str) -> None:
    """Raise InputError, naming two samples, if images of equal digests (N,) have different labels."""
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    wrong = images.labels != images.labels[first[inverse]]
    if wrong.any():
        row = int(wrong.argmax())
        other = int(first[inverse[row]])
        names = (f"{images.sample_id[at]} (label {images.labels[at]})" for at in (other, row))
        raise InputError(
            f"{where}: {' and '.join(names)} are one image under two labels, as {int(wrong.sum())} of {len(images)} "
            "samples repeat an image of another label; remove one of each, or correct its label"
        )


def open_described(path_to_manifest: Path | str, *, with_copies: bool = False) -> tuple[ImageSet, dict[str, Any]]:
    """Image set and manifest of a dataset, from the manifest that fetch_dataset wrote.

    The digest is computed again, from the pixels if they are stored as such, else from the encoded bytes, and so is
    that of corrupted copies, which the image set has `with_copies`. Raises InputError as `open_images` does, and when a
    digest differs from that of the manifest.
    """
    manifest = read_json(path_to_manifest)
    images = open_images(manifest["settings"], manifest["path"], classes=manifest["classes"], with_copies=with_copies)
    found = [(manifest["path"] or manifest["dataset"], images.digest, manifest["digest"])]
    if images.copies:
        found.append((manifest["settings"]["corrupted"]["path"], images.copies.digest, manifest["corrupted"]["digest"]))
    for where, digest, known in found:
        if digest != known:
            raise InputError(
                f"{where}: the data have digest {digest[:12]}, but {path_to_manifest} records {known[:12]}; if they "
                "were changed on purpose, delete that manifest and run the workflow again"
            )
    return images, manifest


def open_again(path_to_manifest: Path | str) -> tuple[ImageSet, str | None]:
    """Image set of a dataset, and the first file or folder that holds other images than its manifest describes.

    Every image is read and hashed, those of corrupted copies too; the second value is None if all are the same. Raises
    InputError, naming the file, for images that cannot be read.
    """
    manifest = read_json(path_to_manifest)
    images = open_images(manifest["settings"], manifest["path"], classes=manifest["classes"], with_copies=True)
    if images.digest != manifest["digest"]:
        return images, _first_difference(images, manifest, Path(path_to_manifest).with_suffix(".parquet"))
    if images.copies and images.copies.digest != manifest["corrupted"]["digest"]:
        return images, manifest["settings"]["corrupted"]["path"]
    return images, None


def store_digest(images: ImageSet, path_to_manifest: Path | str, *, started: float) -> None:
    """Store in the cache that these images, read from the time `started` on, are those of a manifest."""
    manifest = read_json(path_to_manifest)
    files = files_behind(images, manifest)
    if files:
        digests.store(str(path_to_manifest), manifest["digest"], paths=files, started=started)


def files_behind(images: ImageSet, manifest: Mapping[str, Any]) -> list[str]:
    """Files that the images come from, and their folders, whose times tell of files that are added or removed."""
    settings, path = manifest["settings"], manifest["path"]
    files = [name for name in (path, settings.get("list")) if name and Path(name).is_file()]
    copies = (settings.get("corrupted") or {}).get("path")
    folder = _folder_of_samples(images.sample_id.tolist(), path, settings)
    if folder is not None:
        files += [os.path.join(folder, name) for name in images.sample_id.tolist()]  # noqa: PTH118 - 50,000 names
    elif path and Path(path).is_dir():
        files += _files_below(path)
    if copies:
        files += _files_below(copies)
    folders = {os.path.dirname(name) or "." for name in files}  # noqa: PTH120
    folders |= {name for name in (path, copies) if name and Path(name).is_dir()}
    return [*files, *sorted(folders)]


def _folder_of_samples(names: Sequence[str], path: str | None, settings: Mapping[str, Any]) -> str | None:
    # The folder that the names of the samples are paths in; None where they are none.
    if path is None:
        return None
    given = settings.get("images") or (path if Path(path).is_dir() else os.path.dirname(path) or ".")  # noqa: PTH120
    return str(given) if len(names) and Path(given, str(names[0])).is_file() else None


def _files_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not left_behind(name)]
        yield from (os.path.join(place, name) for name in sorted(names) if not left_behind(name))  # noqa: PTH118


def _first_difference(images: ImageSet, manifest: Mapping[str, Any], path_to_samples: Path) -> str:
    where = str(manifest["path"] or manifest["dataset"])
    table = read_table(path_to_samples, DATASET)
    before = dict(zip(table["sample_id"], zip(table["label"], table["image_digest"], strict=True), strict=True))
    digests = images.image_digests()
    if digests is None:
        return where
    now = dict(zip(images.sample_id.tolist(), zip(images.labels.tolist(), digests.tolist(), strict=True), strict=True))
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    if not changed:
        return where
    folder = _folder_of_samples(images.sample_id.tolist(), manifest["path"], manifest["settings"])
    return f"{folder}/{changed[0]}" if folder else f"{where} ({changed[0]})"


def main(manifests: Sequence[str]) -> None:
    """Print, as JSON, what of each manifest differs: a file or folder, or the error of one that cannot be read."""
    differing = {}
    for path in manifests:
        started = time.time()
        try:
            images, differing[path] = open_again(path)
            if differing[path] is None:
                store_digest(images, path, started=started)
        except InputError as error:
            differing[path] = str(error)
    print(json.dumps(differing))


if __name__ == "__main__":
    main(sys.argv[1:])
