"""One corruption at one severity of a published set, as a dataset: CIFAR-10-C, CIFAR-100-C (arrays), ImageNet-C."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.images.corruptions.parameters import SEVERITIES
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored
from gfscore.images.sources.image_folder import open_folder


class Corrupted(DatasetSettings):
    """Images with one corruption at one severity."""

    source: Literal["corrupted"] = "corrupted"
    path: Text = Field(description="Folder with one file or folder per corruption.")
    corruption: Text = Field(description="Name of the corruption: gaussian_noise, fog, ...")
    severity: int = Field(ge=1, le=SEVERITIES, description="Severity, 1 (weakest) to 5.")
    preprocessing: Preprocessing = Field(default_factory=as_stored)


SOURCE = DatasetSource(name="corrupted", settings=Corrupted, claims=lambda entry: "corruption" in entry)


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images with one corruption at one severity.

    `settings`: `corruption`, `severity` 1..5 and `preprocessing` (method none for arrays). `path` holds either
    <corruption>.npy, (5 n, H, W, C) uint8 ordered by severity, and labels.npy (5 n,), both memory-mapped; or
    <corruption>/<severity>/<class folder>/<image>. Identifiers are "<corruption>/<severity>/<row or path>". Raises
    InputError, naming the file, for missing or malformed files. Source: Hendrycks and Dietterich 2019.
    """
    from gfscore.images.corrupted_copies import require_known

    root, corruption, severity = Path(path or ""), settings["corruption"], settings["severity"]
    prefix = f"{corruption}/{severity}/"
    require_known(root, [corruption])
    if (root / f"{corruption}.npy").is_file():
        return _open_arrays(root, settings, prefix)
    return open_folder(root / corruption / str(severity), {**settings, "folders": None, "list": None}, prefix=prefix)


def _open_arrays(root, settings, prefix):
    from gfscore.images.corrupted_copies import require_as_stored, stored_arrays
    from gfscore.images.image_set import from_pixels

    require_as_stored(root, settings["preprocessing"])
    pixels, labels = stored_arrays(root, settings["corruption"])
    n = len(pixels) // SEVERITIES
    rows = slice((settings["severity"] - 1) * n, settings["severity"] * n)
    names = [f"{prefix}{row:05d}" for row in range(n)]
    return from_pixels(pixels[rows], labels[rows], sample_id=names, where=root / "labels.npy")
