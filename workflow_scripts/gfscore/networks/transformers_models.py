"""Classifiers of the source `transformers`: networks of Hugging Face's library with weights from a local file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, around, first_line
from gfscore.networks.torch_models import with_preprocessing

WEIGHTS, CONFIGURATION = "model.safetensors", "config.json"


def files_of(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Weights and configuration, each enforced by its digest."""
    beside = Path(settings["path"]).with_name(CONFIGURATION)
    return [
        {key: settings.get(key) for key in ("path", "url", "sha256")},
        {"path": str(beside), "url": None, "sha256": None},
    ]


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier of transformers with the weights of a .safetensors file; nothing is downloaded, no code of it is run.

    `settings`: `image_shape` (C, H, W), the preprocessing (see gfscore.networks.preprocessing) and `output` (see
    gfscore.networks.outputs), by default the attribute `logits`. Raises InputError,
    naming file and remedy, without the library, for a configuration that it does not know, and for weights that do not
    fit.
    """
    del image_shape, classes, threads
    forward = _logits if settings.get("output") is None else _all_outputs
    return with_preprocessing(around(_loaded(Path(path)), forward), settings, path, architecture="transformers")


def _loaded(path):
    from gfscore.networks.compatibility import import_torchvision

    if path.name != WEIGHTS:
        raise InputError(
            f"{path}: transformers' weights are read from a file {WEIGHTS}; save them as such, in one file"
        )
    # transformers imports torchvision, which may need mending for a CPU build of torch.
    import_torchvision()
    try:
        import transformers
    except ImportError as error:
        raise InputError(
            f"{path}: needs the library transformers, which is not installed; run: make setup, or pip install "
            "'gfscore[models]'"
        ) from error
    # Its warnings name web pages and options that do not apply here.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        network, found = transformers.AutoModelForImageClassification.from_pretrained(
            path.parent, use_safetensors=True, output_loading_info=True, **local
        )
    # Configurations and weights of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{path}: transformers {transformers.__version__} makes no image classifier of it and its {CONFIGURATION} "
            f"({first_line(error)}); name the folder of one"
        ) from error
    if wrong := [*found["missing_keys"], *found["unexpected_keys"]]:
        raise InputError(
            f"{path}: the weights do not fit the network in {CONFIGURATION}: {len(wrong)} are missing or unexpected, "
            f"such as {min(wrong)}; save both together again"
        )
    return network.float().eval()


def _logits(network, images):
    return network(pixel_values=images).logits


def _all_outputs(network, images):
    return network(pixel_values=images)
