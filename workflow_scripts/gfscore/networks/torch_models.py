"""Classifiers of the source `torch`: a checkpoint of weights, and an architecture named in config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.networks.callables import build_architecture
from gfscore.networks.checkpoints import load_checkpoint
from gfscore.networks.classifier import Classifier, classes_given, from_network
from gfscore.networks.preprocessing import description, preprocessed
from gfscore.networks.state_dicts import load_weights, weights_of

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
    network = build_architecture(settings["architecture"], settings["arguments"])
    return with_weights(network, settings, path)


def with_weights(network: nn.Module, settings: Mapping[str, Any], path: Path | str) -> Classifier:
    """Classifier from a network, the weights in a file, and the preprocessing in `settings`."""
    network = preprocessed(loaded(network, settings, path), settings, where=path)
    shape = tuple(settings["image_shape"])
    return from_network(
        network,
        architecture=settings["architecture"],
        image_shape=shape,
        classes=classes_of(network, shape, path),
        preprocessing=description(settings),
    )


def loaded(network: nn.Module, settings: Mapping[str, Any], path: Path | str) -> nn.Module:
    """A network in eval mode with the weights in a file; `settings` are weights, trust_pickle and sha256."""
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    return load_weights(network, weights, path).eval()


def classes_of(network: nn.Module, image_shape: tuple[int, int, int], path: Path | str) -> int:
    """Number of classes K of a torch network, from the logits of two grey images; InputError as classes_given."""
    import torch

    def run(images: Any) -> Any:
        with torch.inference_mode():
            return network(torch.from_numpy(images))

    return classes_given(run, image_shape, where=path)
