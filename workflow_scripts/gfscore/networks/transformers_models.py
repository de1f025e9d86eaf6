"""Classifiers of the source `transformers`: networks of Hugging Face's library with weights from a local file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.checkpoints import require_real_numbers, stored_weights
from gfscore.networks.classifier import Classifier
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.model_source import Settings
from gfscore.networks.number_types import all_in_float32_where_most
from gfscore.networks.outputs import first_line
from gfscore.networks.sources.transformers import CONFIGURATION, WEIGHT_FILES
from gfscore.networks.torch_models import with_preprocessing
from gfscore.networks.wrappers import wrap

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


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier of transformers with its weights from local files; nothing is downloaded, no code of it is run.

    Parameters
    ----------
    settings : mapping
        `image_shape` (C, H, W), the preprocessing (see gfscore.networks.preprocessing) and `output`, by default the
        attribute `logits` of what the network returns.
    path : Path or str
        The file, in the same folder as its configuration.
    image_shape, classes, threads
        Not used, since the network determines them.

    Raises
    ------
    InputError
        Naming file and remedy: without the library, for a configuration that it does not know, and for weights that do
        not fit.
    """
    del image_shape, threads
    network = open_network(settings, path, classes=classes)
    return with_preprocessing(network, settings, path, architecture="transformers")


def open_network(settings: Settings, path: Path | str, *, classes: int) -> nn.Module:
    """Network with its weights, from preprocessed images to what it returns; parameters as of `open_classifier`."""
    del classes
    path = Path(path)
    if path.name not in WEIGHT_FILES:
        raise InputError(f"{path}: transformers' weights are in a file {' or '.join(WEIGHT_FILES)}; name that")
    configuration = path.with_name(CONFIGURATION)
    try:
        configured = json.loads(configuration.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{configuration}: cannot be read as JSON ({error}); download or copy it again") from error
    require_plain_code(configured, where=configuration)
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
    weights = stored_weights({}, path, which="model")
    try:
        config = transformers.AutoConfig.from_pretrained(path.parent, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            empty = transformers.AutoModelForImageClassification.from_config(config, trust_remote_code=False)
        # The library reads no file of weights itself, so that none is unpickled.
        network, loading = type(empty).from_pretrained(
            None, config=config, state_dict=weights, output_loading_info=True
        )
    # Configurations and weights of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{path}: transformers {transformers.__version__} makes no image classifier of it and its {CONFIGURATION} "
            f"({first_line(error)}); name the folder of one"
        ) from error
    unfitting = [*loading["missing_keys"], *loading["unexpected_keys"]]
    if unfitting:
        raise InputError(
            f"{path}: the weights do not fit the network in {CONFIGURATION}: {len(unfitting)} are missing or "
            f"unexpected, such as {min(unfitting)}; save both together again"
        )

    require_real_numbers(weights, network.state_dict(), path)

    def forward(network: nn.Module, images: Tensor) -> Any:
        outputs = network(pixel_values=images)
        return outputs.logits if settings.get("output") is None else outputs

    return wrap(all_in_float32_where_most(network).eval(), forward)


# Configuration


def require_plain_code(configuration: Settings, *, where: Path | str) -> None:
    """Refuse a configuration that names code outside torch.

    Parameters
    ----------
    configuration : mapping
        Content of a config.json. It may hold configurations of members of the network (a vision tower, say).
    where : path
        The file, for messages.

    Raises
    ------
    InputError
        Naming key, value and remedy.
    """
    waiting: list[object] = [configuration]
    while waiting:
        member = waiting.pop()
        if isinstance(member, list):
            waiting += member
        elif isinstance(member, Mapping):
            waiting += member.values()
            for key, value in member.items():
                _require_plain_value(key, value, where)


def _require_plain_value(key: str, value: object, where: Path | str) -> None:
    if key in REDIRECTIONS and value is not None:
        raise InputError(f"{where}: {key} {REDIRECTIONS[key]}")
    # One name, or one for each member of the network.
    names = list(value.values()) if isinstance(value, Mapping) else [value]
    for ending, allowed in IMPLEMENTATIONS.items():
        if not str(key).removesuffix("_internal").endswith(ending):
            continue
        for name in names:
            if name is not None and name not in allowed:
                raise InputError(
                    f"{where}: {key} is {name!r}, which may be compiled code of others; write "
                    f"{' or '.join(allowed)} there, which compute the same"
                )
