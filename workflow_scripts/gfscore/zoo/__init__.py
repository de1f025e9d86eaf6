"""Classifiers of every source under one interface, whatever they are stored in.

A new source is one module in this folder and one line in SOURCES. The module has a function `open_classifier(settings,
path, *, image_shape, classes, threads)` that returns a Classifier: `settings` are the model's entry in config.yaml,
`path` its checkpoint, whose digest was verified before; `image_shape` (C, H, W) and `classes` K are those of the data
to be classified, `threads` how many the arithmetic may use where torch does not do it. A source whose own tables know
where its files lie also has `files_of(settings)` (see gfscore.models.checkpoint_files).
"""

from importlib import import_module

from gfscore.errors import InputError
from gfscore.models.checkpoint_files import require_digest
from gfscore.models.network_sources import require_network
from gfscore.zoo.classifier import Classifier, from_network
from gfscore.zoo.networks import ARCHITECTURES, build_network

__all__ = ["ARCHITECTURES", "SOURCES", "Classifier", "build_network", "from_network", "open_classifier"]

SOURCES = {
    "trained": "gfscore.zoo.trained",
    "robustbench": "gfscore.zoo.robustbench_models",
    "torch": "gfscore.zoo.checkpoint",
    "timm": "gfscore.zoo.timm_models",
    "onnx": "gfscore.zoo.onnx_models",
    "probe": "gfscore.zoo.probe",
}
"""Source name in config.yaml -> module that opens it."""


def open_classifier(manifest, path=None, *, image_shape, classes, threads=1):
    """Classifier that a manifest of train_model, train_probe or fetch_checkpoint describes, on the CPU in eval mode.

    `path` replaces the manifest's own (what was trained here has none); `image_shape` (C, H, W) and `classes` K are
    those of the data to be classified. The SHA-256 of every file is compared with the manifest's before any byte is
    parsed, and that of the code of its network before any of it runs. Raises InputError, naming file and remedy, for an
    unknown source, another digest, and whatever the source refuses.
    """
    source = manifest.get("source", "trained")
    if source not in SOURCES:
        raise InputError(f"source {source!r} is unknown; choose one of {', '.join(SOURCES)}")
    path = path or manifest["path"]
    # A probe's head is `path`, its backbone stands among the files.
    digests = {str(path): manifest["sha256"]} | {file["path"]: file["sha256"] for file in manifest.get("files", [])}
    for file, sha256 in digests.items():
        require_digest(file, sha256)
    require_network(manifest)
    return import_module(SOURCES[source]).open_classifier(
        manifest.get("settings", {}), path, image_shape=tuple(image_shape), classes=classes, threads=threads
    )
