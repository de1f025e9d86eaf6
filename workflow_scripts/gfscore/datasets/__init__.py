"""Labelled images under one interface, whatever they are stored in.

A new source is one module in this folder with a function `open_source(settings, path)` that returns an
ImageSet, and one line in SOURCES.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

import numpy as np

from gfscore.errors import InputError
from gfscore.files import read_json

SOURCES = {
    "digits": "gfscore.datasets.digits",
    "npz": "gfscore.datasets.arrays",
    "generated": "gfscore.datasets.arrays",
}
"""Source name in config.yaml -> module that opens it."""

DIGEST_BATCH = 256


@dataclass(frozen=True)
class ImageSet:
    """N labelled images in a fixed order, read in batches.

    `sample_id` (N,) str, unique; `labels` (N,) int32; `image_shape` (C, H, W); `preprocessing` names what was
    done to the stored pixels, in words; `stream(batch_size)` yields float32 arrays (n, C, H, W) in [0, 1], n
    <= batch_size, in the order of `sample_id`, from the first sample on at every call. So a source too large
    for memory implements `stream` alone.
    """

    sample_id: np.ndarray
    labels: np.ndarray
    image_shape: tuple[int, int, int]
    preprocessing: str
    stream: Callable[[int], Iterator[np.ndarray]]

    def __len__(self):
        """Return the number of samples N."""
        return len(self.labels)

    def batches(self, batch_size):
        """Yield the images, (n, C, H, W) float32 in [0, 1], in order; InputError for pixels that are not."""
        seen = 0
        for images in self.stream(batch_size):
            if images.dtype != np.float32 or images.shape[1:] != self.image_shape:
                raise InputError(
                    f"images from row {seen} on are {images.dtype} {images.shape[1:]}; "
                    f"expected float32 {self.image_shape}: check the preprocessing of this dataset"
                )
            # Written so that NaN, for which every comparison is false, is refused too.
            if not (images.min() >= 0 and images.max() <= 1):
                raise InputError(f"images from row {seen} on have pixels outside [0, 1]: check the value range")
            seen += len(images)
            yield images
        if seen != len(self):
            raise InputError(f"{seen} images for {len(self)} labels; give one label per image")

    @cached_property
    def digest(self):
        """SHA-256 (hex) of pixels, labels and order: equal digests mean equal data, in the same order.

        Hashed are: the line "gfscore image set 1 C H W", then per sample its identifier in UTF-8, a zero
        byte, the label as little-endian int32 and the pixels as little-endian float32 in C order.
        """
        state = hashlib.sha256("gfscore image set 1 {} {} {}\n".format(*self.image_shape).encode())
        row = 0
        for images in self.batches(DIGEST_BATCH):
            for image in images:
                state.update(str(self.sample_id[row]).encode() + b"\0")
                state.update(self.labels[row].astype("<i4").tobytes())
                state.update(np.ascontiguousarray(image, dtype="<f4").tobytes())
                row += 1
        return state.hexdigest()


def from_arrays(images, labels, *, sample_id, preprocessing):
    """Image set held in memory: `images` (N, C, H, W) float32 in [0, 1], `labels` (N,), `sample_id` (N,)."""
    images = np.ascontiguousarray(images, dtype=np.float32)

    def stream(batch_size):
        for start in range(0, len(images), batch_size):
            yield images[start : start + batch_size]

    return ImageSet(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=np.asarray(labels, dtype=np.int32),
        image_shape=images.shape[1:],
        preprocessing=preprocessing,
        stream=stream,
    )


def open_images(settings, path=None, *, classes):
    """Image set that a dataset entry of the configuration describes.

    `settings` holds `source` (a key of SOURCES) and that source's own keys, `path` its file where it has one,
    `classes` the K class names in label order. Raises InputError for an unknown source, fewer than 2 classes,
    a label outside 0..K-1, a class without samples (named: a class that is audited must be seen), and
    repeated identifiers.
    """
    source = settings.get("source")
    if source not in SOURCES:
        raise InputError(f"source {source!r} is unknown; choose one of {', '.join(SOURCES)}")
    images = import_module(SOURCES[source]).open_source(settings, path)
    where = path or source
    _require_classes(images, classes, where)
    if len(np.unique(images.sample_id)) != len(images):
        raise InputError(f"{where}: sample identifiers are repeated; make them unique")
    return images


def describe_images(settings, path=None, *, dataset, classes):
    """Manifest of a dataset, a JSON-able mapping: what it is, its digest, and how to open it again."""
    images = open_images(settings, path, classes=classes)
    return {
        "dataset": dataset,
        "settings": dict(settings),
        "path": str(path) if path else None,
        "digest": images.digest,
        "samples": len(images),
        "classes": list(classes),
        "samples_per_class": np.bincount(images.labels, minlength=len(classes)).tolist(),
        "image_shape": list(images.image_shape),
        "preprocessing": images.preprocessing,
    }


def open_described(path_to_manifest):
    """Image set and manifest of a dataset that fetch_dataset described.

    Raises InputError as `open_images` does, and when the data are no longer those that the manifest
    describes.
    """
    manifest = read_json(path_to_manifest)
    images = open_images(manifest["settings"], manifest["path"], classes=manifest["classes"])
    if images.digest != manifest["digest"]:
        raise InputError(
            f"{manifest['path'] or manifest['dataset']}: the data have digest {images.digest[:12]}, but "
            f"{path_to_manifest} records {manifest['digest'][:12]}: they changed since; delete that "
            "manifest and run the workflow again"
        )
    return images, manifest


def load_all(images):
    """All images in memory, (N, C, H, W) float32 in [0, 1], and their labels (N,) int32."""
    return np.concatenate(list(images.batches(DIGEST_BATCH))), images.labels


def _require_classes(images, classes, where):
    k = len(classes)
    if k < 2:
        raise InputError(f"{where}: {k} class declared; class-wise robustness needs at least 2 classes")
    if len(images) == 0:
        raise InputError(f"{where}: no samples")
    outside = np.flatnonzero((images.labels < 0) | (images.labels >= k))
    if outside.size:
        raise InputError(
            f"{where}: row {outside[0]} has label {images.labels[outside[0]]}, outside 0..{k - 1} "
            f"({outside.size} such rows); labels count from 0, or a class is missing from `classes`"
        )
    missing = np.flatnonzero(np.bincount(images.labels, minlength=k) == 0)
    if missing.size:
        names = ", ".join(repr(classes[index]) for index in missing[:10])
        raise InputError(
            f"{where}: no sample of class {names} ({missing.size} of {k} classes); "
            "add samples, or remove the class from `classes`"
        )
