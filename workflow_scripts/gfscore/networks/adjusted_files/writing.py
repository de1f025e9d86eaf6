"""A network with offsets of its classes as a file that others can use, checked before it gets its name."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import require_free, umask
from gfscore.core.mappings import only
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.adjusted_files.shift import AdjustedFiles
from gfscore.networks.architecture_files import FOLDER_VARIABLE, PACKAGE, folder
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import Classifier, open_classifier
from gfscore.networks.model_source import Manifest, model_sources
from gfscore.networks.outputs import FLOAT32, Images, softmax

ROUNDING = {FLOAT32: 1e-6, "float64": 1e-6, "uint8": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}
"""Largest difference between the logits of a written network and those that it must have, relative to the largest of
them or 1, by the number type of the network, in which sums are rounded."""

LARGEST_LOSS = 0.25
"""Share of the largest offset that rounding may take; where logits are large, it can be longer than all offsets."""


@dataclass(frozen=True)
class AdjustedModel:
    """A network with offsets in a file that was read again.

    Attributes
    ----------
    path : Path
        Its main file.
    sha256 : str
        SHA-256 (hex) of that file, which also stands in a file beside it.
    method : str
        Where the offsets are, in words.
    code : Path or None
        The Python file of its architecture; None where the original's file defines it.
    difference : float
        Largest difference between its logits and the original's plus the offsets.
    """

    path: Path
    sha256: str
    method: str
    code: Path | None
    difference: float


def write_adjusted(
    manifest: Manifest,
    offsets: NDArray[np.float64],
    target: Path | str,
    *,
    images: Images,
    overwrite: bool = False,
) -> AdjustedModel:
    """Write a model whose logits have offsets, in the format that it came in.

    The files are written beside their place, opened as any other model, and compared with the original on images; only
    then they get their names, the main file last.

    Parameters
    ----------
    manifest : mapping
        Manifest of the original.
    offsets : ndarray of shape (K,), float64
        What is added to the logits of the classes of the data.
    target : Path or str
        The main file to write; of a folder of timm or transformers, its model.safetensors.
    images : ndarray of float32
        Images (n, C, H, W) of the data in [0, 1].
    overwrite : bool
        Whether files that stand there are replaced.

    Raises
    ------
    InputError
        Naming file, reason and remedy: for a model of another source, for one that cannot be written, for one that
        would give other logits, and for files that stand there. Nothing is left behind.
    """
    target = Path(target)
    path = manifest["path"]
    source = model_sources()[manifest.get("source", "trained")]
    require_free(target, overwrite=overwrite)
    if not source.adjusted_by:
        raise InputError(
            f"{path}: models of the source {source.name} are not written with offsets; add the numbers in the file of "
            "offsets to its logits where it is made"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as staging:
        staged = Path(staging, target.name)
        files = import_module(source.adjusted_by).write_adjusted(
            _settings_of(manifest), path, offsets, staged, image_shape=images.shape[1:], classes=len(offsets)
        )
        difference = _checked(manifest, path, files, offsets, images)
        sha256 = sha256_of_file(staged)
        Path(f"{staged}.sha256").write_text(f"{sha256}  {target.name}\n", encoding="utf-8")

        others = [file for file in sorted(Path(staging).iterdir()) if file.is_file() and file != staged]
        for file in others:
            require_free(target.with_name(file.name), overwrite=overwrite)
        for file in [*others, staged]:
            # Temporary files may be for the owner only; results are shared like any other file.
            file.chmod(0o666 & ~umask())
            file.replace(target.with_name(file.name))
    code = target.with_name(files.code.name) if files.code else None
    return AdjustedModel(target, sha256, files.method, code, difference)


def _settings_of(manifest: Manifest) -> dict[str, object]:
    # A graph is compared as it runs, without its conversion to torch.
    settings = dict(manifest.get("settings", {}))
    for key, value in {"gradients": False, "url": None}.items():
        if key in settings:
            settings[key] = value
    return {"source": manifest.get("source", "trained"), **settings}


# The check


def _checked(
    manifest: Manifest, path: Path | str, files: AdjustedFiles, offsets: NDArray[np.float64], images: Images
) -> float:
    # Largest difference between the logits of the files and those that they must have.
    plain = {**manifest, "settings": _settings_of(manifest)}
    original = _opened(plain, path, images, len(offsets))
    logits = original.logits(images).astype(np.float64)

    settings = files.settings
    identity = only(manifest, ["dataset", "threat", "model"])
    with _architectures_with(files.code):
        if model_sources()[str(settings["source"])].fetched:
            written = describe_checkpoint(settings, identity=identity, record=False)
        else:
            written = {**plain, "path": settings["path"], "sha256": sha256_of_file(settings["path"])}
        adjusted = _opened(written, settings["path"], images, len(offsets))
        adjusted_logits = adjusted.logits(images).astype(np.float64)

    expected = logits + offsets
    allowed = ROUNDING[original.number_type] * max(1.0, float(np.abs(expected).max()))
    if settings.get("allow_probabilities") == LOGARITHMS:
        # Of small probabilities the logarithms differ by the rounding of others.
        expected = softmax(expected).astype(np.float64)
        adjusted_logits = softmax(adjusted_logits).astype(np.float64)
        allowed = ROUNDING[original.number_type]
    else:
        allowed = min(allowed, LARGEST_LOSS * float(np.abs(offsets).max()))
        if original.one_column:
            expected -= expected.mean(axis=1, keepdims=True)
            adjusted_logits -= adjusted_logits.mean(axis=1, keepdims=True)
    difference = float(np.abs(adjusted_logits - expected).max())
    # NaN, for which every comparison is false, must be refused too.
    if not difference <= allowed:
        raise InputError(
            f"{path}: not written, as its logits with offsets would differ from what they must be by {difference:.1e}, "
            f"more than {allowed:.1e}; add the numbers in the file of offsets to its logits where it is made, in "
            "float32"
        )
    return difference


def _opened(manifest: Manifest, path: Path | str, images: Images, classes: int) -> Classifier:
    return open_classifier(manifest, path, image_shape=images.shape[1:], classes=classes)


@contextmanager
def _architectures_with(code: Path | None) -> Iterator[None]:
    # The folder of architectures with one more file, as it is when the written model is audited.
    if code is None:
        yield
        return
    named = os.environ.get(FOLDER_VARIABLE)
    with tempfile.TemporaryDirectory() as temporary:
        package = Path(temporary, PACKAGE)
        if folder().is_dir():
            shutil.copytree(folder(), package)
        package.mkdir(exist_ok=True)
        shutil.copyfile(code, package / code.name)
        os.environ[FOLDER_VARIABLE] = str(package)
        try:
            yield
        finally:
            if named is None:
                del os.environ[FOLDER_VARIABLE]
            else:
                os.environ[FOLDER_VARIABLE] = named
