"""Classifiers of the source `timm`: networks of the timm collection with weights from a local file."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.callables import ARGUMENTS_OF_AN_AUDIT, PRETRAINED
from gfscore.networks.checkpoints import load_checkpoint, weights_of
from gfscore.networks.torch_models import loaded, with_preprocessing

if TYPE_CHECKING:
    from torch import nn

    from gfscore.networks.classifier import Classifier

RESERVED = (*PRETRAINED, "num_classes", "in_chans", "cache_dir")
"""Arguments that follow from the data, or that would download weights."""


def build_timm(settings: Mapping[str, Any], path: Path | str, *, classes: int) -> nn.Module:
    """Network of timm with arbitrary weights, a torch module; without a classifier layer if `classes` is 0.

    `settings` hold `architecture` (timm's name), `arguments` (of timm.create_model) and `image_shape` (C, H, W). Raises
    InputError, naming `path`, for an unknown name, with the nearest known one, and for arguments in RESERVED.
    """
    from gfscore.networks.compatibility import import_torchvision

    # timm imports torchvision, which may need mending for a CPU build of torch.
    import_torchvision()
    import timm

    name, arguments = settings["architecture"], settings["arguments"]
    if not timm.is_model(name):
        close = get_close_matches(str(name), timm.list_models(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "timm.list_models() lists the names"
        raise InputError(f"{path}: timm {timm.__version__} has no architecture {name!r}; {hint}")
    refused = [key for key in arguments if key in RESERVED]
    if refused:
        raise InputError(f"{path}: argument {refused[0]!r} follows from the data and `path`; remove it from arguments")
    shape = {"num_classes": classes, "in_chans": settings["image_shape"][0]}
    try:
        return timm.create_model(name, pretrained=False, **shape, **arguments)
    # The code of an architecture may raise anything.
    except Exception as error:
        raise InputError(
            f"{path}: timm's {name} cannot be built with {arguments} ({type(error).__name__}: {error}); correct its "
            f"arguments {ARGUMENTS_OF_AN_AUDIT}"
        ) from error


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier with timm's `architecture` for C channels and K classes; nothing is downloaded.

    `settings` as for the source `torch`, with timm's name as `architecture` and `arguments` of timm.create_model
    (img_size of a transformer). Raises InputError as `build_timm` does, and for weights that do not fit.
    """
    del image_shape, threads
    if settings.get("outputs"):
        classes = _classes_in(settings, path)
    network = loaded(build_timm(settings, path, classes=classes), settings, path)
    return with_preprocessing(network, settings, path, architecture=settings["architecture"])


def _classes_in(settings, path):
    # Rows of the last layer in the file: of its outputs only some are classes of the data.
    import timm

    build_timm(settings, path, classes=0)
    last = timm.create_model(settings["architecture"], pretrained=False, **settings["arguments"]).default_cfg
    names = last["classifier"]
    name = names if isinstance(names, str) else names[0]
    weights = weights_of(load_checkpoint(settings, path), path, which=settings["weights"])
    found = next((value for key, value in weights.items() if key.endswith(f"{name}.weight")), None)
    if found is None:
        raise InputError(f"{path}: has no weights {name}.weight; leave out `outputs`, or name another architecture")
    return len(found)
