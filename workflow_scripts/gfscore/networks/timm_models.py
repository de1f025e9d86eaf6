"""Classifiers of the source `timm`: networks of the timm collection with weights from a local file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.core.errors import InputError
from gfscore.networks.callables import ARGUMENTS_OF_AN_AUDIT, PRETRAINED
from gfscore.networks.checkpoints import load_checkpoint, weights_of
from gfscore.networks.compatibility import import_timm
from gfscore.networks.model_source import Settings
from gfscore.networks.torch_models import with_preprocessing, with_weights

if TYPE_CHECKING:
    from torch import nn

    from gfscore.networks.classifier import Classifier

RESERVED = (*PRETRAINED, "num_classes", "in_chans", "cache_dir")
"""Arguments that follow from the data, or that would download weights."""


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier with timm's `architecture` for C channels and K classes; nothing is downloaded.

    Parameters
    ----------
    settings : mapping
        Entry of the model, like one of the source `torch`, with timm's name as `architecture` and `arguments` of
        timm.create_model (img_size of a transformer).
    path : Path or str
        File of the weights, whose digest was verified before.
    image_shape, threads
        Not used.
    classes : int
        Number of classes K, unless the settings name some of the network's outputs.

    Raises
    ------
    InputError
        See `build_timm`; also for weights that do not fit.
    """
    del image_shape, threads
    network = open_network(settings, path, classes=classes)
    return with_preprocessing(network, settings, path, architecture=settings["architecture"])


def open_network(settings: Settings, path: Path | str, *, classes: int) -> nn.Module:
    """Network with its weights, from preprocessed images to logits; parameters as of `open_classifier`."""
    if settings.get("outputs"):
        classes = _outputs_in_file(settings, path)
    return with_weights(build_timm(settings, path, classes=classes), settings, path)


def build_timm(settings: Settings, path: Path | str, *, classes: int) -> nn.Module:
    """Network of timm with arbitrary weights.

    Parameters
    ----------
    settings : mapping
        `architecture` (timm's name), `arguments` (of timm.create_model) and `image_shape`, of which the channels C.
    path : Path or str
        The file, for messages.
    classes : int
        Number of classes; 0 for a network without a classifier layer.

    Raises
    ------
    InputError
        For an unknown name, with the nearest known one, and for arguments in RESERVED.
    """
    timm = import_timm()
    name, arguments = settings["architecture"], settings["arguments"]
    if not timm.is_model(name):
        close = get_close_matches(str(name), timm.list_models(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "timm.list_models() lists the names"
        raise InputError(f"{path}: timm {timm.__version__} has no architecture {name!r}; {hint}")
    for argument in arguments:
        if argument in RESERVED:
            raise InputError(
                f"{path}: argument {argument!r} follows from the data and `path`; remove it from arguments"
            )
    channels = settings["image_shape"][0]
    try:
        return timm.create_model(name, pretrained=False, num_classes=classes, in_chans=channels, **arguments)
    # The code of an architecture may raise anything.
    except Exception as error:
        raise InputError(
            f"{path}: timm's {name} cannot be built with {arguments} ({type(error).__name__}: {error}); correct its "
            f"arguments {ARGUMENTS_OF_AN_AUDIT}"
        ) from error


def _outputs_in_file(settings: Settings, path: Path | str) -> int:
    # Rows of the last layer in the file: of its outputs only some are classes of the data.
    build_timm(settings, path, classes=0)
    network = import_timm().create_model(settings["architecture"], pretrained=False, **settings["arguments"])
    layers = network.default_cfg["classifier"]
    layer = layers if isinstance(layers, str) else layers[0]
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    for name, value in weights.items():
        if name.endswith(f"{layer}.weight"):
            return len(value)
    raise InputError(f"{path}: has no weights {layer}.weight; leave out `outputs`, or name another architecture")
