"""What a classifier does to pixels before its network sees them, as a part of the network.

Being part of it, it is differentiated through by attacks, whose distances therefore stay in pixels of [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import torch


def preprocessed(network: torch.nn.Module, settings: Mapping[str, Any], *, where: object) -> torch.nn.Module:
    """Torch module from RGB images in [0, 1] to what `network` makes of its own kind of input.

    `settings`: `channel_order` ("rgb" or "bgr"), `value_range` (1 or 255, the pixel value of white that the network
    was trained with), `mean` and `std` (one number per channel in the network's order and range, or None for none).
    Applied in this order. Raises InputError naming `where` and the setting.
    """
    import torch

    flip, scale, mean, std = _checked(settings, where)

    class Preprocessed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            # Kept out of the state dict: they are settings, not weights.
            self.register_buffer("mean", torch.tensor(mean).reshape(-1, 1, 1), persistent=False)
            self.register_buffer("std", torch.tensor(std).reshape(-1, 1, 1), persistent=False)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if flip:
                images = images.flip(1)
            return self.network((images * scale - self.mean) / self.std)

    return Preprocessed().eval()


def preprocess(images: NDArray[np.float32], settings: Mapping[str, Any], *, where: object) -> NDArray[np.float32]:
    """Do the same to a numpy array (n, C, H, W) float32, for classifiers without gradients."""
    flip, scale, mean, std = _checked(settings, where)
    images = images[:, ::-1] if flip else images
    mean, std = (np.array(values, dtype=np.float32).reshape(-1, 1, 1) for values in (mean, std))
    return np.ascontiguousarray((images * np.float32(scale) - mean) / std)


def description(settings: Mapping[str, Any]) -> str:
    """Preprocessing in words for the identity of logits, for instance "bgr, white 255, mean 104 117 123"."""
    words = [settings["channel_order"], f"white {settings['value_range']}"]
    words += [
        f"{key} {' '.join(f'{value:g}' for value in settings[key])}"
        for key in ("mean", "std")
        if settings[key] is not None
    ]
    return ", ".join(words)


def _checked(settings, where):
    channels = settings["image_shape"][0]
    order, scale = settings["channel_order"], settings["value_range"]
    if order not in ("rgb", "bgr"):
        raise InputError(f"{where}: channel_order {order!r} is not known; choose rgb or bgr")
    if order == "bgr" and channels != 3:
        raise InputError(f"{where}: channel_order bgr needs 3 channels, image_shape has {channels}; choose rgb")
    if scale not in (1, 255):
        raise InputError(f"{where}: value_range {scale!r} is not known; choose 1 or 255")
    values = []
    for key, neutral in (("mean", 0.0), ("std", 1.0)):
        given = settings[key] if settings[key] is not None else [neutral] * channels
        if len(given) != channels or not np.all(np.isfinite(given)) or (key == "std" and min(given) <= 0):
            raise InputError(f"{where}: {key} {given} must hold {channels} finite numbers, std positive ones")
        values.append([float(value) for value in given])
    return order == "bgr", float(scale), *values
