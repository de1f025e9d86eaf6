"""Classifiers of the source `transformers`: networks of Hugging Face's library with weights from a local file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.number_types import in_float32_unless_other
from gfscore.networks.outputs import first_line
from gfscore.networks.torch_models import with_preprocessing
from gfscore.networks.wrappers import around

WEIGHTS, CONFIGURATION = "model.safetensors", "config.json"

KERNELS = "USE_HUB_KERNELS"
"""Environment variable by which transformers is told not to load compiled kernels of others."""

IMPLEMENTATIONS = {
    "attn_implementation": ("eager", "sdpa"),
    "experts_implementation": ("eager", "batched_mm", "grouped_mm"),
}
"""Endings of the keys of a configuration that name code to compute with, and the names that are torch's own.

Others are libraries of compiled kernels, or addresses of them.
"""

REDIRECTIONS = {
    "configuration_files": "leads to another configuration; save the model again with save_pretrained",
    "quantization_config": "asks for compiled kernels of a quantised network; save the model in float32",
}
"""Keys of a configuration that lead past these names, and what is wrong with each, with the remedy."""


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


def require_plain_code(configuration: Mapping[str, Any], *, where: Path | str) -> None:
    """Raise InputError, naming key, value and remedy, for a configuration that names code outside torch.

    Parameters
    ----------
    configuration : mapping
        Content of a config.json, whose parts (of a vision tower, say) have configurations of their own.
    where : path
        The file, for messages.
    """
    waiting: list[Any] = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
            continue
        if not isinstance(part, Mapping):
            continue
        waiting += part.values()
        for key, value in part.items():
            if key in REDIRECTIONS and value is not None:
                raise InputError(f"{where}: {key} {REDIRECTIONS[key]}")
            allowed = _allowed_of(key)
            # One name, or one for each part of the network.
            names = list(value.values()) if isinstance(value, Mapping) else [value]
            for name in names if allowed else []:
                if name is not None and name not in allowed:
                    raise InputError(
                        f"{where}: {key} is {name!r}, which may be compiled code of others; write "
                        f"{' or '.join(allowed)} there, which compute the same"
                    )


def _allowed_of(key):
    # Names that a key may have; None for a key that names no code.
    plain = str(key).removesuffix("_internal")
    return next((names for ending, names in IMPLEMENTATIONS.items() if plain.endswith(ending)), None)


def _require_plain_file(path):
    try:
        configuration = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download or copy it again") from error
    require_plain_code(configuration, where=path)


def _loaded(path):
    from gfscore.networks.compatibility import import_torchvision

    if path.name != WEIGHTS:
        raise InputError(
            f"{path}: transformers' weights are read from a file {WEIGHTS}; save them as such, in one file"
        )
    _require_plain_file(path.with_name(CONFIGURATION))
    os.environ[KERNELS] = "NO"
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
    return in_float32_unless_other(network).eval()


def _logits(network, images):
    return network(pixel_values=images).logits


def _all_outputs(network, images):
    return network(pixel_values=images)
