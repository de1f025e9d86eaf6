"""Classifiers of the source `torch`: a checkpoint of weights, and an architecture named in config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.networks.callables import build_architecture
from gfscore.networks.checkpoints import load_checkpoint, load_weights, weights_of
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.number_types import number_type_of, taking_float32, with_search_in_float32
from gfscore.networks.outputs import classes_given
from gfscore.networks.preprocessing import description, preprocessed
from gfscore.networks.wrappers import in_blocks, logits_of_network

if TYPE_CHECKING:
    from torch import nn


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier with the weights of a file (.pt, .pth, .safetensors) in the network of the configuration.

    `settings`: `architecture` (package.module:callable) with `arguments`, `weights` ("model" or "ema"), `trust_pickle`
    and `sha256` (see gfscore.networks.checkpoints), `image_shape` (C, H, W) and the preprocessing (see
    gfscore.networks.preprocessing). Raises InputError, naming file, value and remedy, if these do not fit together.
    """
    del image_shape, classes, threads
    network = build_architecture(settings["architecture"], settings["arguments"], any_number_type=True)
    return with_preprocessing(loaded(network, settings, path), settings, path, architecture=settings["architecture"])


def with_preprocessing(
    network: nn.Module,
    settings: Mapping[str, Any],
    path: Path | str,
    *,
    architecture: str,
    batch: int | None = None,
) -> Classifier:
    """Classifier from a network with its weights, and the preprocessing, image shape and output in `settings`.

    `batch` is the batch size of a network that takes no other. Raises InputError, naming `path`, as
    gfscore.networks.preprocessing, logits_of_network and classes_given do.
    """
    import torch

    shape = tuple(settings["image_shape"])
    grey = torch.full((batch or 2, *shape), 0.5)
    logits = logits_of_network(taking_float32(network, grey), settings, grey, where=path)
    network = with_search_in_float32(network, grey, logits.of)
    network = in_blocks(network, batch) if batch else network
    network = preprocessed(network, settings, where=path)

    def run(images: Any) -> Any:
        with torch.inference_mode():
            return network(torch.from_numpy(images))

    return from_network(
        network,
        architecture=architecture,
        image_shape=shape,
        classes=classes_given(run, shape, where=path),
        preprocessing=description(settings),
        number_type=number_type_of(network),
        outputs=logits.words,
        one_column=logits.one_column,
    )


def loaded(network: nn.Module, settings: Mapping[str, Any], path: Path | str) -> nn.Module:
    """A network in eval mode with the weights in a file; `settings` are weights, trust_pickle and sha256."""
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    return load_weights(network, weights, path).eval()
