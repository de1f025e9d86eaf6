"""One corruption at one severity of a published set, as a dataset: CIFAR-10-C, CIFAR-100-C (arrays), ImageNet-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.names import numbered
from gfscore.core.settings import Text
from gfscore.images.corruptions.parameters import SEVERITIES
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class Corrupted(DatasetSettings):
    """Images with one corruption at one severity."""

    source: Literal["corrupted"] = "corrupted"
    path: Text = Field(description="Folder with one file or folder per corruption.")
    corruption: Text = Field(description="Name of the corruption: gaussian_noise, fog, ...")
    severity: int = Field(ge=1, le=SEVERITIES, description="Severity, 1 (weakest) to 5.")
    preprocessing: Preprocessing = Field(default_factory=as_stored)


SOURCE = DatasetSource(name="corrupted", settings=Corrupted, claims=lambda entry: "corruption" in entry)


def open_source(settings: Corrupted, path: Path | str) -> ImageSet:
    """Images with one corruption at one severity.

    `path` holds either <corruption>.npy, (5 n, H, W, C) uint8 ordered by severity, and labels.npy (5 n,), both
    memory-mapped; or <corruption>/<severity>/<class folder>/<image>. Identifiers are
    "<corruption>/<severity>/<row or path>". Raises InputError, naming the file, for missing or malformed files. Source:
    Hendrycks and Dietterich 2019.
    """
    from gfscore.images.corrupted_copies import LABELS, arrays_of_severity, corruptions_in, require_as_stored
    from gfscore.images.image_set import from_pixels
    from gfscore.images.listing import open_class_folders

    root = Path(path)
    corruption = settings.corruption
    severity = settings.severity
    condition = f"{corruption}/{severity}"
    corruptions_in(root, [corruption])
    if not (root / f"{corruption}.npy").is_file():
        return open_class_folders(
            root,
            folders=None,
            path_to_list=None,
            preprocessing=settings.preprocessing,
            within=condition,
        )

    require_as_stored(root, settings.preprocessing)
    pixels, labels = arrays_of_severity(root, corruption, severity)
    names = numbered(f"{condition}/", len(labels), digits=5)
    return from_pixels(pixels, labels, sample_id=names, where=root / LABELS)
