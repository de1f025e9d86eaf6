"""A linear classifier in a file of numpy: `weight` (K, C * H * W) and `bias` (K,); it has gradients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gfscore.core.errors import InputError
from gfscore.networks.model_source import FileSettings, ModelSource, Pixels

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier


class Linear(Pixels, FileSettings):
    """A .npz file with the weights of a linear classifier."""

    source: Literal["linear"] = "linear"


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier of such a file; raises InputError, naming it, for weights that do not fit images and classes."""
    import numpy as np
    import torch

    from gfscore.networks.classifier import from_network
    from gfscore.networks.preprocessing import description, preprocessed

    try:
        with np.load(path, allow_pickle=False) as stored:
            weight, bias = (torch.from_numpy(stored[name]).float() for name in ("weight", "bias"))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: no weight and bias to read ({error}); write it with numpy.savez") from error
    pixels = int(np.prod(image_shape))
    if weight.shape != (classes, pixels) or bias.shape != (classes,):
        raise InputError(
            f"{path}: weight {tuple(weight.shape)}, expected ({classes}, {pixels}); train it on these data"
        )
    layer = torch.nn.Linear(pixels, classes)
    layer.load_state_dict({"weight": weight, "bias": bias})
    network = preprocessed(torch.nn.Sequential(torch.nn.Flatten(), layer), settings, where=path)
    return from_network(
        network, architecture="linear", image_shape=image_shape, classes=classes, preprocessing=description(settings)
    )


SOURCE = ModelSource(name="linear", settings=Linear, gives="gradients", fetched=True, opened_by=__name__)
