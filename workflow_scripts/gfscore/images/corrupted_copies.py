"""Corrupted copies of a dataset's images, as others distribute them: arrays (CIFAR-10-C) or folders (ImageNet-C).

Source: Hendrycks and Dietterich 2019.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.files import require_regular
from gfscore.images.corruptions.parameters import PARAMETERS, SEVERITIES
from gfscore.images.dataset_source import CorruptedCopies, Preprocessing
from gfscore.images.decoding import describe
from gfscore.images.encoded import from_files
from gfscore.images.image_set import DIGEST_BATCH, Copies, ImageSet, unit_range
from gfscore.images.listing import visible
from gfscore.tables.binary_files import opened

LABELS = "labels.npy"


def open_copies(settings: CorruptedCopies, images: ImageSet) -> Copies:
    """Corrupted copies of the images of a dataset.

    Parameters
    ----------
    settings : CorruptedCopies
        Its folder holds either <corruption>.npy, (5 N, H, W, C) uint8, severity after severity in the order of the
        dataset, and labels.npy (5 N,); or <corruption>/<severity>/<identifier of the sample>.
    images : ImageSet
        All N images of the dataset.

    Returns
    -------
    Copies
        For every pair of the corruptions and severities of the settings.

    Raises
    ------
    InputError
        Naming the file, for a corruption that is missing, malformed arrays, another number of images, labels other than
        the dataset's, and another size of images.
    """
    root = Path(settings.path)
    severities = settings.severities or list(range(1, SEVERITIES + 1))
    corruptions = corruptions_in(root, settings.corruptions)
    conditions = tuple(product(corruptions, severities))
    rows = np.arange(len(images))
    shape = " ".join(map(str, images.image_shape))
    form = f"{shape} {describe(settings.preprocessing)}"
    if not (root / f"{corruptions[0]}.npy").is_file():
        return _EncodedCopies(
            conditions=conditions, rows=rows, form=form, root=root, images=images, preprocessing=settings.preprocessing
        )
    require_as_stored(root, settings.preprocessing)
    arrays = {name: _copies_in_array(root, name, severities, images) for name in corruptions}
    return _ArrayCopies(conditions=conditions, rows=rows, form=form, arrays=arrays)


def corruptions_in(root: Path, chosen: Sequence[str] | None) -> list[str]:
    """Names of the corruptions in a folder, first the ones in PARAMETERS; or the `chosen` ones, which must be there."""
    present = []
    for entry in visible(root):
        if entry.name != LABELS and (entry.name.endswith(".npy") or entry.is_dir()):
            present.append(entry.name.removesuffix(".npy"))
    if not present:
        raise InputError(f"{root}: no corruption here, neither <corruption>.npy nor a folder; correct `path`")
    if chosen is not None:
        for name in chosen:
            if name not in present:
                raise InputError(f"{root}: {unknown_name('corruption', name, _in_order(present))}")
        return list(chosen)
    return _in_order(present)


def _in_order(corruptions: Sequence[str]) -> list[str]:
    published = [name for name in PARAMETERS if name in corruptions]
    return published + sorted(set(corruptions) - set(published))


def require_as_stored(root: Path, preprocessing: Preprocessing) -> None:
    """Raise InputError for a preprocessing of arrays."""
    if preprocessing.method != "none":
        raise InputError(
            f"{root}: arrays need the preprocessing method none, not {preprocessing.method}; correct `preprocessing`"
        )
    if preprocessing.orientation is not None:
        raise InputError(f"{root}: arrays have no EXIF orientation; remove `orientation: {preprocessing.orientation}`")


def arrays_of_severity(root: Path, corruption: str, severity: int) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Memory maps of the images (n, H, W, C) uint8 with one corruption at one severity, and of their labels (n,).

    Raises InputError, naming the file, for missing or malformed files.
    """
    pixels, labels = _stored_arrays(root, corruption)
    number = len(pixels) // SEVERITIES
    rows = slice((severity - 1) * number, severity * number)
    return pixels[rows], labels[rows]


@dataclass(frozen=True, kw_only=True)
class _ArrayCopies(Copies):
    # Copies (5, N, H, W, C) uint8 by corruption.

    arrays: dict[str, NDArray[np.uint8]]

    def corrupted(self, corruption: str, severity: int) -> NDArray[np.float32]:
        return unit_range(self.arrays[corruption][severity - 1][self.rows])

    def contents(self, corruption: str, severity: int) -> Iterator[memoryview]:
        for start in range(0, len(self.rows), DIGEST_BATCH):
            batch = self.rows[start : start + DIGEST_BATCH]
            yield np.ascontiguousarray(self.arrays[corruption][severity - 1][batch]).data


@dataclass(frozen=True, kw_only=True)
class _EncodedCopies(Copies):
    # Encoded copies in the folders of the conditions, which have the names of the samples.

    root: Path
    images: ImageSet
    preprocessing: Preprocessing

    def corrupted(self, corruption: str, severity: int) -> NDArray[np.float32]:
        return np.concatenate(list(self._image_set(corruption, severity).batches(DIGEST_BATCH)))

    def contents(self, corruption: str, severity: int) -> Iterator[bytes]:
        return self._image_set(corruption, severity).hashes()

    def _image_set(self, corruption: str, severity: int) -> ImageSet:
        folder = self.root / corruption / str(severity)
        names = self.images.sample_id[self.rows]
        copies = from_files(
            folder,
            names.tolist(),
            self.images.labels[self.rows],
            sample_id=names,
            preprocessing=self.preprocessing,
            where=folder,
        )
        _require_shape(folder, copies.image_shape, self.images)
        return copies


def _copies_in_array(root: Path, corruption: str, severities: Sequence[int], images: ImageSet) -> NDArray[np.uint8]:
    # (5, N, H, W, C) of one corruption, whose labels are those of the images.
    pixels, labels = _stored_arrays(root, corruption)
    file = root / f"{corruption}.npy"
    number = len(pixels) // SEVERITIES
    if number != len(images):
        raise InputError(
            f"{file}: {number} images at each severity, but the dataset has {len(images)}; give the copies of these "
            "images"
        )
    _, height, width, channels = pixels.shape
    _require_shape(file, (channels, height, width), images)
    for severity in severities:
        start = (severity - 1) * number
        wrong = np.flatnonzero(labels[start : start + number] != images.labels)
        if wrong.size:
            sample = wrong[0]
            row = start + sample
            raise InputError(
                f"{root / LABELS}: row {row} has label {labels[row]}, but {images.sample_id[sample]} of the dataset "
                f"has {images.labels[sample]} ({wrong.size} such rows of severity {severity}); give the copies of "
                "these images, in their order"
            )
    return pixels.reshape(SEVERITIES, number, height, width, channels)


def _stored_arrays(root: Path, corruption: str) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    # Memory maps of <corruption>.npy, (5 n, H, W, C) uint8 ordered by severity, and of labels.npy, (5 n,).
    file = root / f"{corruption}.npy"
    pixels = _mapped(file)
    labels = _mapped(root / LABELS)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] not in (1, 3) or len(pixels) % SEVERITIES:
        raise InputError(f"{file}: {pixels.dtype} {pixels.shape}, expected uint8 (5 n, H, W, C); download it again")
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(f"{root / LABELS}: {labels.dtype} {labels.shape} for {len(pixels)} images; download it again")
    return pixels, labels


def _mapped(file: Path) -> np.memmap:
    require_regular(file)
    try:
        return opened(file, mmap_mode="r")
    # A damaged header, which numpy parses as a Python literal, raises errors of many types.
    except Exception as error:
        raise InputError(f"{file}: not a whole .npy file of numbers ({error}); download it again") from error


def _require_shape(where: Path, image_shape: tuple[int, int, int], images: ImageSet) -> None:
    if image_shape != images.image_shape:
        raise InputError(
            f"{where}: images of {_size(image_shape)}, but the dataset's are {_size(images.image_shape)}; give copies "
            "of that size, or, of encoded ones, a `preprocessing` under `corrupted`"
        )


def _size(image_shape: tuple[int, int, int]) -> str:
    channels, height, width = image_shape
    return f"{height}x{width}x{channels}"
