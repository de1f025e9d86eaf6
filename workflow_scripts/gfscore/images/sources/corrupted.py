"""Published corrupted datasets: CIFAR-10-C and CIFAR-100-C (arrays), ImageNet-C (folders)."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored
from gfscore.images.sources.image_folder import open_folder

SEVERITIES = 5


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
    from gfscore.images.listing import visible

    root, corruption, severity = Path(path or ""), settings["corruption"], settings["severity"]
    prefix = f"{corruption}/{severity}/"
    if (root / f"{corruption}.npy").is_file():
        return _open_arrays(root, settings, prefix)
    if (root / corruption).is_dir():
        return open_folder(
            root / corruption / str(severity), {**settings, "folders": None, "list": None}, prefix=prefix
        )
    known = ", ".join(entry.name.removesuffix(".npy") for entry in visible(root) if entry.name != "labels.npy")
    raise InputError(f"{root}: no corruption {corruption}; choose one of {known or 'none'}")


def _open_arrays(root, settings, prefix):
    import numpy as np

    from gfscore.images.image_set import from_pixels

    file, method = root / f"{settings['corruption']}.npy", settings["preprocessing"]["method"]
    if method != "none":
        raise InputError(f"{file}: arrays need the preprocessing method none, not {method}; correct `preprocessing`")
    pixels, labels = _mapped(file), _mapped(root / "labels.npy")
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] not in (1, 3) or len(pixels) % SEVERITIES:
        raise InputError(f"{file}: {pixels.dtype} {pixels.shape}, expected uint8 (5 n, H, W, C); download it again")
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(
            f"{root}/labels.npy: {labels.dtype} {labels.shape} for {len(pixels)} images; download it again"
        )
    n = len(pixels) // SEVERITIES
    rows = slice((settings["severity"] - 1) * n, settings["severity"] * n)
    names = [f"{prefix}{row:05d}" for row in range(n)]
    return from_pixels(pixels[rows], labels[rows], sample_id=names, where=root / "labels.npy")


def _mapped(file):
    from gfscore.core.regular import require_regular
    from gfscore.tables.numpy_files import opened

    require_regular(file)
    try:
        return opened(file, mmap_mode="r")
    # A damaged header, which numpy parses as a Python literal, raises errors of many types.
    except Exception as error:
        raise InputError(f"{file}: not a whole .npy file of numbers ({error}); download it again") from error
