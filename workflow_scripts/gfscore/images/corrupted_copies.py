"""Corrupted copies of a dataset's images, as others distribute them: arrays (CIFAR-10-C) or folders (ImageNet-C).

Source: Hendrycks and Dietterich 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.core.files import require_regular
from gfscore.images.corruptions.parameters import PARAMETERS, SEVERITIES
from gfscore.images.decoding import describe
from gfscore.images.encoded import from_files
from gfscore.images.image_set import DIGEST_BATCH, Condition, Copies, ImageSet, unit_range
from gfscore.images.listing import visible
from gfscore.tables.binary_files import opened

LABELS = "labels.npy"


def open_copies(settings: Mapping[str, Any], images: ImageSet) -> Copies:
    """Copies of the N `images`, all of a dataset, that its entry `corrupted` describes.

    `settings` holds `path`, `corruptions` and `severities` (None for all), and `preprocessing`. The folder holds either
    <corruption>.npy, (5 N, H, W, C) uint8, severity after severity in the order of the dataset, and labels.npy (5 N,);
    or <corruption>/<severity>/<identifier of the sample>. Raises InputError, naming the file, for a corruption that is
    missing, malformed arrays, another number of images, labels other than the dataset's, and another size of images.
    """
    root, severities = Path(settings["path"]), settings["severities"] or range(1, SEVERITIES + 1)
    names = require_known(root, settings["corruptions"])
    conditions = tuple(product(names, severities))
    shape, rows = images.image_shape, np.arange(len(images))
    form = f"{' '.join(map(str, shape))} {describe(settings['preprocessing'])}"
    if (root / f"{names[0]}.npy").is_file():
        require_as_stored(root, settings["preprocessing"])
        arrays = {name: _pixels(root, name, severities, images) for name in names}
        return Copies(conditions, rows, partial(_of_array, arrays), partial(_stored_pixels, arrays), form)
    of_rows = partial(_encoded, root, images, settings["preprocessing"])
    return Copies(conditions, rows, partial(_decoded, of_rows), partial(_hashes, of_rows), form)


def require_known(root: Path, names: Sequence[str] | None) -> list[str]:
    """Names of the corruptions in a folder, those of PARAMETERS first; or `names`, which must be among them."""
    entries = [entry for entry in visible(root) if entry.name != LABELS]
    known = [entry.name.removesuffix(".npy") for entry in entries if entry.name.endswith(".npy") or entry.is_dir()]
    order = {name: place for place, name in enumerate(PARAMETERS)}
    known.sort(key=lambda name: (order.get(name, len(order)), name))
    if not known:
        raise InputError(f"{root}: no corruption here, neither <corruption>.npy nor a folder; correct `path`")
    for name in names or ():
        if name not in known:
            raise InputError(f"{root}: {unknown('corruption', name, known)}")
    return list(names or known)


def require_as_stored(root: Path, preprocessing: Mapping[str, Any]) -> None:
    """Raise InputError for a preprocessing of arrays."""
    if (method := preprocessing["method"]) != "none":
        raise InputError(f"{root}: arrays need the preprocessing method none, not {method}; correct `preprocessing`")
    if orientation := preprocessing.get("orientation"):
        raise InputError(f"{root}: arrays have no EXIF orientation; remove `orientation: {orientation}`")


def stored_arrays(root: Path, corruption: str) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Memory maps of <corruption>.npy, (5 n, H, W, C) uint8 ordered by severity, and of labels.npy, (5 n,).

    Raises InputError, naming the file, for missing or malformed files.
    """
    file = root / f"{corruption}.npy"
    pixels, labels = _mapped(file), _mapped(root / LABELS)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] not in (1, 3) or len(pixels) % SEVERITIES:
        raise InputError(f"{file}: {pixels.dtype} {pixels.shape}, expected uint8 (5 n, H, W, C); download it again")
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(f"{root / LABELS}: {labels.dtype} {labels.shape} for {len(pixels)} images; download it again")
    return pixels, labels


def _mapped(file):
    require_regular(file)
    try:
        return opened(file, mmap_mode="r")
    # A damaged header, which numpy parses as a Python literal, raises errors of many types.
    except Exception as error:
        raise InputError(f"{file}: not a whole .npy file of numbers ({error}); download it again") from error


def _pixels(root, corruption, severities, images):
    # (5, N, H, W, C) of one corruption, whose labels are those of the images.
    stored, labels = stored_arrays(root, corruption)
    file, n = root / f"{corruption}.npy", len(stored) // SEVERITIES
    if n != len(images):
        raise InputError(
            f"{file}: {n} images at each severity, but the dataset has {len(images)}; give the copies of these images"
        )
    _require_shape(file, (stored.shape[3], *stored.shape[1:3]), images)
    for severity in severities:
        wrong = np.flatnonzero(labels[(severity - 1) * n : severity * n] != images.labels)
        if wrong.size:
            row = (severity - 1) * n + wrong[0]
            raise InputError(
                f"{root / LABELS}: row {row} has label {labels[row]}, but {images.sample_id[wrong[0]]} of the dataset "
                f"has {images.labels[wrong[0]]} ({wrong.size} such rows of severity {severity}); give the copies of "
                "these images, in their order"
            )
    return stored.reshape(SEVERITIES, n, *stored.shape[1:])


def _require_shape(where, shape, images):
    if tuple(shape) != tuple(images.image_shape):
        have, want = ("x".join(map(str, (*size[1:], size[0]))) for size in (shape, images.image_shape))
        raise InputError(
            f"{where}: images of {have}, but the dataset's are {want}; give copies of that size, or, of encoded ones, "
            "a `preprocessing` under `corrupted`"
        )


def _of_array(arrays, condition, rows):
    corruption, severity = condition
    return unit_range(arrays[corruption][severity - 1][rows])


def _stored_pixels(arrays: Mapping[str, Any], condition: Condition, rows: NDArray[np.int64]) -> Iterator[Any]:
    corruption, severity = condition
    for start in range(0, len(rows), DIGEST_BATCH):
        yield np.ascontiguousarray(arrays[corruption][severity - 1][rows[start : start + DIGEST_BATCH]])


def _encoded(root, images, preprocessing, condition, rows):
    # Image set of the copies of some rows, which have the names of the samples.
    folder, names = root.joinpath(*map(str, condition)), images.sample_id[rows]
    found = from_files(folder, names, images.labels[rows], sample_id=names, preprocessing=preprocessing, where=folder)
    _require_shape(folder, found.image_shape, images)
    return found


def _decoded(of_rows, condition, rows):
    return np.concatenate(list(of_rows(condition, rows).batches(DIGEST_BATCH)))


def _hashes(of_rows: Any, condition: Condition, rows: NDArray[np.int64]) -> Iterator[bytes]:
    yield from of_rows(condition, rows).hashes()
