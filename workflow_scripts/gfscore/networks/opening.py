"""Classifiers of every source under one interface, whatever they are stored in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.networks.architecture_files import require_network
from gfscore.networks.building import ARCHITECTURES, build_network
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.model_source import module_of

__all__ = ["ARCHITECTURES", "Classifier", "build_network", "from_network", "open_classifier"]


def open_classifier(
    manifest: Mapping[str, Any],
    path: Path | str | None = None,
    *,
    image_shape: Sequence[int],
    classes: int,
    threads: int = 1,
) -> Classifier:
    """Classifier that a manifest of train_model, train_probe or fetch_checkpoint describes, on the CPU in eval mode.

    `path` replaces the manifest's own (what was trained here has none); `image_shape` (C, H, W) and `classes` K are
    those of the data to be classified. The SHA-256 of every file is compared with the manifest's before any byte is
    parsed, and that of the code of its network before any of it runs. Raises InputError, naming file and remedy, for an
    unknown source, another digest, and whatever the source refuses.
    """
    opening = module_of(manifest.get("source", "trained"))
    path = path or manifest["path"]
    # A probe's head is `path`, its backbone stands among the files.
    digests = {str(path): manifest["sha256"]} | {file["path"]: file["sha256"] for file in manifest.get("files", [])}
    for file, sha256 in digests.items():
        require_digest(file, sha256)
    require_network(manifest)
    settings = with_image_shape(manifest.get("settings", {}), image_shape)
    return opening.open_classifier(settings, path, image_shape=tuple(image_shape), classes=classes, threads=threads)


def with_image_shape(settings: Mapping[str, Any], image_shape: Sequence[int]) -> Mapping[str, Any]:
    """Settings of a network with the shape (C, H, W) of the images where they state none of their own."""
    return {**settings, "image_shape": list(image_shape)} if settings.get("image_shape", ()) is None else settings
