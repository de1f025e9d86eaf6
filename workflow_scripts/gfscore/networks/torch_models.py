"""Classifiers of the source `torch`: a checkpoint of weights, and an architecture named in config.yaml."""

from pathlib import Path

import torch
from torch import Tensor, nn

from gfscore.networks.callables import build_architecture
from gfscore.networks.checkpoints import load_checkpoint, load_weights, weights_of
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.model_source import Settings
from gfscore.networks.number_types import number_type_of, with_float32_images, with_search_in_float32
from gfscore.networks.outputs import Images, class_count
from gfscore.networks.preprocessing import description, image_shape_of, preprocessed
from gfscore.networks.wrappers import in_blocks, logits_of_network


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier with the weights of a file (.pt, .pth, .safetensors) in the network of the configuration.

    Parameters
    ----------
    settings : mapping
        `architecture` (package.module:callable) with `arguments`; `weights` ("model" or "ema"), `trust_pickle` and
        `sha256` (see gfscore.networks.checkpoints); and the settings of `with_preprocessing`.
    path : Path or str
        The file, whose digest was verified before.
    image_shape, classes, threads
        Not used, since the network determines them.

    Raises
    ------
    InputError
        Naming file, value and remedy, if these do not fit together.
    """
    del image_shape, threads
    network = open_network(settings, path, classes=classes)
    return with_preprocessing(network, settings, path, architecture=settings["architecture"])


def open_network(settings: Settings, path: Path | str, *, classes: int) -> nn.Module:
    """Network with its weights, from preprocessed images to what it returns; parameters as of `open_classifier`."""
    del classes
    network = build_architecture(settings["architecture"], settings["arguments"], any_number_type=True)
    return with_weights(network, settings, path)


def with_weights(network: nn.Module, settings: Settings, path: Path | str) -> nn.Module:
    """A network in eval mode with the weights in a file; `settings` are weights, trust_pickle and sha256."""
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    return load_weights(network, weights, path).eval()


def with_preprocessing(
    network: nn.Module,
    settings: Settings,
    path: Path | str,
    *,
    architecture: str,
    batch: int | None = None,
) -> Classifier:
    """Classifier from a network with its weights.

    Parameters
    ----------
    network : torch.nn.Module
        From preprocessed images to what it returns, in eval mode.
    settings : mapping
        `image_shape` (C, H, W), the preprocessing (see gfscore.networks.preprocessing), `output` and
        `allow_probabilities` (see gfscore.networks.wrappers).
    path : Path or str
        The file, for messages.
    architecture : str
        In words.
    batch : int, optional
        The batch size of a network that takes no other.

    Raises
    ------
    InputError
        For settings that do not fit the network, and a network that returns no logits.
    """
    shape = image_shape_of(settings)
    grey = torch.full((batch or 2, *shape), 0.5)
    logits = logits_of_network(with_float32_images(network, grey), settings, grey, where=path)
    network = with_search_in_float32(network, grey, logits.network)
    if batch:
        network = in_blocks(network, batch)
    network = preprocessed(network, settings, where=path)

    def run(images: Images) -> Tensor:
        with torch.inference_mode():
            return network(torch.from_numpy(images))

    return from_network(
        network,
        architecture=architecture,
        image_shape=shape,
        classes=class_count(run, shape, where=path),
        preprocessing=description(settings),
        number_type=number_type_of(network),
        outputs=logits.words,
        one_column=logits.one_column,
        batch=batch or 1,
    )
