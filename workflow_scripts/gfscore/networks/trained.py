"""Classifiers of the source `trained`: safetensors files of weights and the arguments to build the network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.networks.building import build_network
from gfscore.networks.classifier import Classifier, from_network

if TYPE_CHECKING:
    from torch import nn

HEADER_KEY = "gfscore"


def save_classifier(path: Path | str, network: nn.Module, *, metadata: Mapping[str, Any]) -> str:
    """Write a network built by `build_network` to a safetensors file, atomically; returns its sha256 (hex).

    `metadata` is a mapping for JSON, stored with the recipe. Equal weights and metadata give equal bytes.
    """
    from safetensors.torch import save

    # A single key, since the order of safetensors' metadata differs between runs.
    header = json.dumps({"recipe": network.recipe, "metadata": metadata}, sort_keys=True)
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = save(weights, metadata={HEADER_KEY: header})
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier written by train_model; shape and classes are those in its header. InputError as load_network."""
    del settings, image_shape, classes, threads
    network = load_network(path)
    recipe = network.recipe
    shape = (recipe["in_channels"], *recipe["image_size"])
    return from_network(network, architecture=recipe["architecture"], image_shape=shape, classes=recipe["classes"])


def load_network(path: Path | str) -> Any:
    """Trained network in eval mode on the CPU: images (n, C, H, W) in [0, 1] to logits (n, K).

    The result has `recipe` (architecture, in_channels, image_size, classes, arguments) and `metadata`. Raises
    InputError, naming the file and the remedy, for a file not written by `save_classifier`, and for weights that do not
    fit the architecture.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = Path(path).read_bytes()
    header = _header(content, path)
    recipe = header["recipe"]
    network = _built(recipe, path)
    try:
        network.load_state_dict(load(content))
    except (RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{path}: the weights do not fit architecture {recipe['architecture']!r} "
            f"({str(error).splitlines()[0]}); train the model again with this version"
        ) from error
    network.metadata = header["metadata"]
    return network.eval()


def _built(recipe, path):
    try:
        return build_network(
            recipe["architecture"],
            in_channels=recipe["in_channels"],
            image_size=recipe["image_size"],
            classes=recipe["classes"],
            **recipe["arguments"],
        )
    # A recipe of another version may cause any error.
    except Exception as error:
        raise InputError(f"{path}: its network cannot be built ({error}); train the model again") from error


def _header(content, path):
    # safetensors: 8 bytes little-endian length of the JSON header, then the header.
    try:
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8:end])["__metadata__"][HEADER_KEY])
        return {key: header[key] for key in ("recipe", "metadata")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: no header of a classifier trained by this workflow; state the source of its architecture in "
            "config.yaml, or train the model again"
        ) from error
