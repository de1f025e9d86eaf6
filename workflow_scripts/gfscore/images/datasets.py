"""Opening of datasets from any source, with the checks and subsets that all share."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.files import require_regular
from gfscore.core.labels import plain_name
from gfscore.core.names import require_utf8, spelled_alike
from gfscore.images.corrupted_copies import open_copies
from gfscore.images.dataset_source import SOURCES, PlainSettings, dataset_settings, dataset_sources
from gfscore.images.image_set import DIGEST_BATCH, ImageSet
from gfscore.images.subsets import subset_rows


class ClassesWithoutSamples(InputError):
    """Classes that are declared have no sample; `fault` names them and the file, without a remedy."""

    def __init__(self, fault: str) -> None:
        """Error of this fault."""
        self.fault = fault
        super().__init__(f"{fault}; add samples, or leave the class out of those that are declared")


def open_images(
    entry: PlainSettings,
    path: Path | str | None = None,
    *,
    classes: Sequence[str] | None,
    with_copies: bool = False,
) -> ImageSet:
    """Image set of a dataset entry of the configuration.

    Parameters
    ----------
    entry : mapping
        `source` and that source's own settings, as parameters of jobs and manifests hold them. After every check, the
        setting `subset` leaves the rows that `subset_rows` gives. With `half`, all samples of both halves are opened.
    path : path or str, optional
        File or folder of the data, for sources that have one.
    classes : sequence of str or None
        The K class names in label order; None for those that the data give, or the numbers of the labels where they
        give none.
    with_copies : bool
        With the corrupted copies that the setting `corrupted`, where there is one, describes.

    Returns
    -------
    ImageSet

    Raises
    ------
    InputError
        For an unknown source, fewer than 2 classes, class names in another order or number than the data's own, a label
        outside 0..K-1, names that are no UTF-8 text, repeated identifiers, and a class without samples, unless the data
        themselves name it, as an empty class folder does.
    """
    where = path or entry.get("source") or "dataset"
    require_utf8(str(where), where="dataset")
    settings = dataset_settings(entry, path, classes)
    source = dataset_sources()[settings.source]
    require_regular(where, or_folder=True)

    images: ImageSet = import_module(f"{SOURCES}.{settings.source}").open_source(settings, path)
    data_name_classes = images.class_names is not None
    if classes is None and not data_name_classes:
        numbers = range(1 + max(images.labels, default=-1))
        images = replace(images, class_names=tuple(map(str, numbers)))
    names = classes or images.class_names or ()
    for name in (*names, *images.sample_id.tolist()):
        require_utf8(name, where=where)
    _require_distinct(names, where)
    if images.class_names is not None:
        _require_order_of_data(names, images.class_names, where)
    _require_labels(images, len(names), where)
    if not (data_name_classes and source.empty_classes(settings)):
        empty = np.flatnonzero(np.bincount(images.labels, minlength=len(names)) == 0)
        if empty.size:
            classes_without = ", ".join(repr(names[label]) for label in empty[:10])
            raise ClassesWithoutSamples(
                f"{where}: no sample of class {classes_without} ({empty.size} of {len(names)} classes)"
            )
    identifiers, counts = np.unique(images.sample_id, return_counts=True)
    repeated = identifiers[counts > 1]
    if repeated.size:
        raise InputError(f"{where}: sample identifiers are repeated ({few(repeated.tolist())}); give each sample once")

    if with_copies and settings.corrupted is not None:
        images = replace(images, copies=open_copies(settings.corrupted, images))
    if settings.subset is not None:
        images = images.select(subset_rows(images.labels, settings.subset, where=where))
    return images


def load_all(images: ImageSet) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """All images in memory, (N, C, H, W) float32 in [0, 1], and their labels (N,) int32."""
    return np.concatenate(list(images.batches(DIGEST_BATCH))), images.labels


def _require_distinct(classes: Sequence[str], where: Path | str) -> None:
    for index, name in enumerate(classes):
        if name in classes[:index]:
            raise InputError(f"{where}: class {name!r} is repeated in `classes`, or in the data; name each class once")
    alike = spelled_alike(classes)
    if alike:
        raise InputError(
            f"{where}: classes {alike[0]!a} and {alike[1]!a} differ in blanks or spelling in Unicode alone; "
            "rename one in the data, or give them other names under `classes`"
        )


def _require_order_of_data(classes: Sequence[str], names_of_data: Sequence[str], where: Path | str) -> None:
    if len(names_of_data) != len(classes):
        only_in_data = sorted(set(names_of_data) - set(classes))
        only_declared = sorted(set(classes) - set(names_of_data))
        raise InputError(
            f"{where}: the data have {len(names_of_data)} classes, `classes` declares {len(classes)}; only in the "
            f"data: {', '.join(only_in_data[:5]) or 'none'}; only declared: {', '.join(only_declared[:5]) or 'none'}; "
            "correct `classes`"
        )
    # Names may be spelled differently, but the same name at another label is a mistake in the order.
    labels_in_data: dict[str, list[int]] = {}
    for label, name in enumerate(names_of_data):
        labels_in_data.setdefault(plain_name(name), []).append(label)
    for label, name in enumerate(classes):
        labels = labels_in_data.get(plain_name(name), [label])
        if label not in labels:
            raise InputError(
                f"{where}: {name!r} is label {label} in `classes`, but label {labels[0]} in the data; "
                f"give the order of the data: {', '.join(names_of_data[:5])}, ..."
            )


def _require_labels(images: ImageSet, k: int, where: Path | str) -> None:
    if k < 2:
        raise InputError(f"{where}: {k} class declared; class-wise robustness needs at least 2 classes")
    if len(images) == 0:
        raise InputError(f"{where}: no samples")
    outside = np.flatnonzero((images.labels < 0) | (images.labels >= k))
    if outside.size:
        row = outside[0]
        raise InputError(
            f"{where}: row {row} has label {images.labels[row]}, outside 0..{k - 1} "
            f"({outside.size} such rows); labels count from 0: correct them, or name every class (`classes`)"
        )
