"""Opening of classifiers of any source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gfscore.networks.architecture_files import require_network
from gfscore.networks.building import build_network
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.classifier import Classifier, from_network, with_outputs
from gfscore.networks.model_source import module_of

__all__ = ["Classifier", "build_network", "from_network", "open_classifier"]


def open_classifier(
    manifest: Mapping[str, Any],
    path: Path | str | None = None,
    *,
    image_shape: Sequence[int],
    classes: int,
    threads: int = 1,
) -> Classifier:
    """Classifier described by a manifest of train_model, train_probe or fetch_checkpoint, on the CPU in eval mode.

    `path` replaces that of the manifest (trained models have none there); `image_shape` (C, H, W) and `classes` K are
    those of the data. The SHA-256 of every file is verified before it is parsed, and that of the network's code before
    it is executed. Raises InputError, naming file and remedy, for an unknown source, another digest, and as the source
    does.
    """
    opening = module_of(manifest.get("source", "trained"))
    path = path or manifest["path"]
    # For a probe, `path` is the head, and the files include the backbone.
    digests = {str(path): manifest["sha256"]} | {file["path"]: file["sha256"] for file in manifest.get("files", [])}
    options: dict[str, Any] = {}
    if getattr(opening, "READS_DIGESTS", False):
        options["digests"] = digests
    else:
        for file, sha256 in digests.items():
            require_digest(file, sha256)
    require_network(manifest)
    settings = manifest.get("settings", {})
    if settings.get("image_shape", ()) is None:
        settings = {**settings, "image_shape": list(image_shape)}
    classifier = opening.open_classifier(
        settings, path, image_shape=tuple(image_shape), classes=classes, threads=threads, **options
    )
    return with_outputs(classifier, settings["outputs"], where=path) if settings.get("outputs") else classifier
