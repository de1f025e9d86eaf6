"""Opening of datasets from any source, with the checks, subsets and manifests that all share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown
from gfscore.core.files import require_regular
from gfscore.core.names import spelled_alike
from gfscore.images.corrupted_copies import open_copies
from gfscore.images.dataset_source import SOURCES, dataset_sources
from gfscore.images.image_set import DIGEST_BATCH, ImageSet
from gfscore.images.subsets import subset_rows


class ClassesWithoutSamples(InputError):
    """Classes that are declared have no sample; `fault` names them and the file, without a remedy."""

    def __init__(self, fault: str) -> None:
        """Error of this fault."""
        self.fault = fault
        super().__init__(f"{fault}; add samples, or leave the class out of those that are declared")


def open_images(
    settings: Mapping[str, Any],
    path: Path | str | None = None,
    *,
    classes: Sequence[str] | None,
    with_copies: bool = False,
) -> ImageSet:
    """Image set of a dataset entry of the configuration.

    `settings` holds `source` and that source's own keys, `path` its file or folder where it has one, `classes` the K
    class names in label order; None for those that the data give, or the numbers of the labels where they give none.
    Its key `subset`, where it has one, leaves the rows of `subset_rows`, after every check; `with_copies`: with the
    corrupted copies that its key `corrupted`, where it has one, describes. Raises InputError for an
    unknown source, fewer than 2 classes, class names in another order or number than the data's own, a label outside
    0..K-1, names that are no UTF-8 text, repeated identifiers, and a class without samples, unless the data
    themselves name it, as an empty class folder does.
    """
    source = settings.get("source")
    if source not in dataset_sources():
        raise InputError(unknown("source", source, dataset_sources()))
    where = path or source
    require_regular(where, or_folder=True)
    images = import_module(f"{SOURCES}.{source}").open_source({**settings, "classes": classes}, path)
    names_of_data = images.class_names
    if classes is None and images.class_names is None:
        images = replace(images, class_names=tuple(map(str, range(1 + max(images.labels, default=-1)))))
    classes = classes or images.class_names
    _require_utf8(where, classes, images)
    _require_names(images.class_names, classes, where)
    _require_classes(images, classes, where)
    if names_of_data is None or not dataset_sources()[source].empty_classes(settings):
        _require_samples(images, classes, where)
    identifiers, counts = np.unique(images.sample_id, return_counts=True)
    repeated = [str(identifier) for identifier in identifiers[counts > 1]]
    if repeated:
        raise InputError(f"{where}: sample identifiers are repeated ({few(repeated)}); give each sample once")
    if with_copies and settings.get("corrupted"):
        images = replace(images, copies=open_copies(settings["corrupted"], images))
    if settings.get("subset"):
        images = images.select(subset_rows(images.labels, settings["subset"], where=where))
    return images


def load_all(images: ImageSet) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """All images in memory, (N, C, H, W) float32 in [0, 1], and their labels (N,) int32."""
    return np.concatenate(list(images.batches(DIGEST_BATCH))), images.labels


def _require_utf8(where, classes, images):
    # Python represents undecodable bytes of file names as lone surrogates, which cannot be written as UTF-8.
    for what, names in (("path", [str(where)]), ("class", classes), ("sample", images.sample_id)):
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            wrong = next(str(name) for name in names if str(name) != str(name).encode(errors="ignore").decode())
            raise InputError(f"{str(where)!r}: {what} {wrong!r} is no UTF-8 text; rename it") from None


def _require_names(stored, classes, where):
    repeated = [name for index, name in enumerate(classes) if name in classes[:index]]
    if repeated:
        raise InputError(
            f"{where}: class {repeated[0]!r} is repeated in `classes`, or in the data; name each class once"
        )
    alike = spelled_alike(classes)
    if alike:
        raise InputError(
            f"{where}: classes {alike[0]!a} and {alike[1]!a} differ in blanks or spelling in Unicode alone; "
            "rename one in the data, or give them other names under `classes`"
        )
    if stored is None:
        return
    if len(stored) != len(classes):
        extra, absent = sorted(set(stored) - set(classes)), sorted(set(classes) - set(stored))
        raise InputError(
            f"{where}: the data have {len(stored)} classes, `classes` declares {len(classes)}; only in the data: "
            f"{', '.join(extra[:5]) or 'none'}; only declared: {', '.join(absent[:5]) or 'none'}; correct `classes`"
        )
    # Names may be spelled differently, but the same name at another label is a mistake in the order.
    place = {name: label for label, name in enumerate(stored)}
    for label, name in enumerate(classes):
        if place.get(name, label) != label:
            raise InputError(
                f"{where}: {name!r} is label {label} in `classes`, but label {place[name]} in the data; "
                f"give the order of the data: {', '.join(stored[:5])}, ..."
            )


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
            f"({outside.size} such rows); labels count from 0: correct them, or name every class (`classes`)"
        )


def _require_samples(images, classes, where):
    k = len(classes)
    missing = np.flatnonzero(np.bincount(images.labels, minlength=k) == 0)
    if missing.size:
        names = ", ".join(repr(classes[index]) for index in missing[:10])
        raise ClassesWithoutSamples(f"{where}: no sample of class {names} ({missing.size} of {k} classes)")
