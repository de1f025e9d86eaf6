"""Manifests of datasets: what `fetch_dataset` has read, and whether the data are still the same.

A manifest is a mapping for JSON with name, settings, path, digest, classes and image shape of a dataset. The table of
its samples has the same path with the suffix .parquet. The manifest of a half also has the digest of the whole dataset.
The samples of a half are read from the table: to split the dataset again, all images would have to be decoded, since
equal images go to the same half.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core import digests
from gfscore.core.digests import require_pinned
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.images.dataset_source import PlainSettings
from gfscore.images.datasets import open_images
from gfscore.images.encoded import EncodedImages
from gfscore.images.image_set import ImageSet
from gfscore.images.listing import left_behind, visible
from gfscore.images.subsets import first_rows, half_rows
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET

Manifest = dict[str, Any]
"""Content of the file of a manifest."""


def open_and_describe(
    entry: PlainSettings,
    path: Path | str | None = None,
    *,
    dataset: str,
    classes: Sequence[str] | None,
    pinned: str | None = None,
) -> tuple[ImageSet, Manifest]:
    """Image set of a dataset, and its manifest.

    Parameters
    ----------
    entry, path, classes
        See `open_images`.
    dataset : str
        Name of the dataset.
    pinned : str or None
        Digest that the data must have. The manifest does not record it, since it does not change the data.

    Raises
    ------
    InputError
        See `open_images`; also if the digest differs from the pinned one.
    """
    whole = open_images(entry, path, classes=classes, with_copies=True)
    where = path or dataset
    names = list(classes or whole.class_names or ())
    images = whole
    half = entry.get("half")
    if half is not None:
        first = first_rows(whole.pixel_digests, len(whole))
        rows = half_rows(
            whole.sample_id, whole.labels, half, first=first, digest=whole.digest, names=names, where=where
        )
        images = whole.select(rows)
    require_pinned(images.digest, pinned, where=where, remedy="restore the data, or correct `digest`")
    manifest: Manifest = {
        "dataset": dataset,
        "settings": dict(entry),
        "path": str(path) if path else None,
        "digest": images.digest,
        "digest_covers": images.digest_covers,
        "samples": len(images),
        "classes": names,
        "samples_per_class": np.bincount(images.labels, minlength=len(names)).tolist(),
        "image_shape": list(images.image_shape),
        "preprocessing": images.preprocessing,
    }
    if half is not None:
        manifest["digest_of_whole"] = whole.digest
    if images.copies is not None:
        conditions = [list(condition) for condition in images.copies.conditions]
        manifest["corrupted"] = {"digest": images.copies.digest, "conditions": conditions}
    return images, manifest


def open_described(path_to_manifest: Path | str, *, with_copies: bool = False) -> tuple[ImageSet, Manifest]:
    """Image set of a dataset, and its manifest, after a check that the data still have the digest of the manifest.

    The digest is of the pixels if these are stored, else of the encoded bytes, so that no image is decoded. For a half,
    the digest of the whole dataset is checked too.

    Parameters
    ----------
    path_to_manifest : path or str
        Manifest that fetch_dataset wrote, next to the table of the samples.
    with_copies : bool
        Whether to open the corrupted copies of the images and check their digest.

    Returns
    -------
    images : ImageSet
    manifest : dict

    Raises
    ------
    InputError
        See `open_images`; also when a digest differs from the manifest.
    """
    manifest = read_json(path_to_manifest)
    whole = _open_whole(manifest, with_copies=with_copies)
    where = manifest["path"] or manifest["dataset"]
    _require_digest(whole.digest, _digest_of_whole(manifest), where, path_to_manifest)
    images = _select_samples(whole, manifest, path_to_manifest)
    _require_digest(images.digest, manifest["digest"], where, path_to_manifest)
    if images.copies is not None:
        path_to_copies = manifest["settings"]["corrupted"]["path"]
        _require_digest(images.copies.digest, manifest["corrupted"]["digest"], path_to_copies, path_to_manifest)
    return images, manifest


def open_and_compare(path_to_manifest: Path | str) -> tuple[ImageSet, str | None]:
    """Image set of a dataset, and its first file that has changed since fetch_dataset wrote the manifest.

    Every image and every corrupted copy is read and hashed.

    Parameters
    ----------
    path_to_manifest : path or str
        Manifest that fetch_dataset wrote, next to the table of the samples.

    Returns
    -------
    images : ImageSet
    difference : str or None
        First file or folder with other images; None if all are the same.

    Raises
    ------
    InputError
        Naming the file, for images that cannot be read.
    """
    manifest = read_json(path_to_manifest)
    whole = _open_whole(manifest, with_copies=True)
    if whole.digest != _digest_of_whole(manifest):
        return whole, _first_difference(whole, manifest, path_to_manifest)
    images = _select_samples(whole, manifest, path_to_manifest)
    if images.digest != manifest["digest"]:
        return images, _first_difference(images, manifest, path_to_manifest)
    if images.copies is not None and images.copies.digest != manifest["corrupted"]["digest"]:
        return images, manifest["settings"]["corrupted"]["path"]
    return images, None


def _open_whole(manifest: Manifest, *, with_copies: bool) -> ImageSet:
    return open_images(manifest["settings"], manifest["path"], classes=manifest["classes"], with_copies=with_copies)


def _digest_of_whole(manifest: Manifest) -> str:
    return str(manifest.get("digest_of_whole", manifest["digest"]))


def _select_samples(whole: ImageSet, manifest: Manifest, path_to_manifest: Path | str) -> ImageSet:
    # The whole dataset, or the samples of a half that the table lists.
    if manifest["settings"].get("half") is None:
        return whole
    samples = read_table(_path_to_samples(path_to_manifest), DATASET, expect={"dataset_digest": manifest["digest"]})
    rows = np.flatnonzero(np.isin(whole.sample_id, samples["sample_id"].to_numpy(dtype=str)))
    return whole.select(rows)


def _path_to_samples(path_to_manifest: Path | str) -> Path:
    return Path(path_to_manifest).with_suffix(".parquet")


def _require_digest(digest: str, recorded: str, where: str, path_to_manifest: Path | str) -> None:
    if digest != recorded:
        raise InputError(
            f"{where}: the data have digest {digest[:12]}, but {path_to_manifest} records {recorded[:12]}; if they "
            "were changed on purpose, delete that manifest and run the workflow again"
        )


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
        `image_digest` of each image as it is stored, and `pixel_digest` of its pixels after preprocessing:
        (N,) str, or None for labels without images.

    Raises
    ------
    InputError
        Naming two samples with equal pixels and different labels: one label is wrong.
    """
    stored = images.image_digests()
    pixels = images.pixel_digests if isinstance(images, EncodedImages) else stored
    if pixels is not None:
        require_one_label(images, pixels, where=where)
    return {"image_digest": stored, "pixel_digest": pixels}


def require_one_label(images: ImageSet, digests: NDArray[np.generic], *, where: Path | str) -> None:
    """Raise InputError, naming two samples, if images of equal digests (N,) have different labels."""
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    wrong = images.labels != images.labels[first[inverse]]
    if wrong.any():
        row = int(wrong.argmax())
        earlier = int(first[inverse[row]])
        names = [f"{images.sample_id[sample]} (label {images.labels[sample]})" for sample in (earlier, row)]
        raise InputError(
            f"{where}: {' and '.join(names)} are one image under two labels ({int(wrong.sum())} of {len(images)} "
            "samples repeat an image of another label); remove one of each, or correct its label"
        )


def store_digest(images: ImageSet, path_to_manifest: Path | str, *, started: float) -> None:
    """Store the digest of a manifest in the cache, after its images were read, from the time `started` on."""
    manifest = read_json(path_to_manifest)
    paths = watched_paths(images, manifest)
    if paths:
        digests.store(str(path_to_manifest), manifest["digest"], paths=paths, started=started)


def watched_paths(images: ImageSet, manifest: Manifest) -> list[str]:
    """Files that the images of a manifest come from, and the folders of these files.

    A folder gets another time of modification when a file is added or removed. For a half, all images of the source are
    watched: a change of any image may change the split.
    """
    settings = manifest["settings"]
    path = manifest["path"]
    copies = settings.get("corrupted")
    path_to_copies = copies["path"] if copies else None

    files: list[str] = []
    places: list[str] = [path] if path else []
    if images.files is not None:
        places += map(str, images.files.listing)
        samples = images.files.names if settings.get("half") else images.sample_id.tolist()
        files += map(images.files.path_of, samples)
    elif path and Path(path).is_dir():
        files += _files_below(path)
    if path_to_copies:
        files += _files_below(path_to_copies)
        places.append(path_to_copies)

    folders: set[str] = set()
    for place in places:
        if Path(place).is_dir():
            folders.add(place)
            # A class folder without images is the folder of no file.
            folders.update(entry.path for entry in visible(place) if entry.is_dir())
        elif Path(place).is_file():
            files.append(place)
    folders.update(os.path.dirname(name) or "." for name in files)  # noqa: PTH120
    return files + sorted(folders)


def _files_below(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not left_behind(name)]
        for name in sorted(names):
            if not left_behind(name):
                yield os.path.join(parent, name)  # noqa: PTH118


def _first_difference(images: ImageSet, manifest: Manifest, path_to_manifest: Path | str) -> str:
    where = str(manifest["path"] or manifest["dataset"])
    digests = images.image_digests()
    if digests is None:
        return where
    table = read_table(_path_to_samples(path_to_manifest), DATASET)
    recorded = dict(zip(table["sample_id"], zip(table["label"], table["image_digest"], strict=True), strict=True))
    pairs = zip(images.labels.tolist(), digests.tolist(), strict=True)
    present = dict(zip(images.sample_id.tolist(), pairs, strict=True))
    # The table of a half does not list the other half: its images are no difference.
    names = recorded if manifest["settings"].get("half") else recorded | present
    for name in sorted(names):
        if recorded.get(name) != present.get(name):
            return images.files.path_of(name) if images.files else f"{where} ({name})"
    return where


def main(manifests: Sequence[str]) -> None:
    """Print as JSON, for each manifest, its first file that has changed, or the error of reading it; null if none."""
    differences = {}
    for path in manifests:
        started = time.time()
        try:
            images, difference = open_and_compare(path)
            if difference is None:
                store_digest(images, path, started=started)
        except InputError as error:
            difference = str(error)
        differences[path] = difference
    print(json.dumps(differences))


if __name__ == "__main__":
    main(sys.argv[1:])
