"""Preprocessing of pixels as a part of the network.

Attacks differentiate through it, so their distances refer to pixels in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.wrappers import around

if TYPE_CHECKING:
    import torch


def preprocessed(network: torch.nn.Module, settings: Mapping[str, Any], *, where: object) -> torch.nn.Module:
    """Torch module that applies `network` to RGB images in [0, 1] after its preprocessing.

    `settings`, applied in this order: `channel_order` ("rgb" or "bgr"), `value_range` (1 or 255, the pixel value of
    white for the network), `mean` and `std` (one number per channel in the network's order and range, or None). Raises
    InputError, naming `where` and the setting, if they do not fit the number of channels.
    """
    import torch

    flip, scale, mean, std = _checked(settings, where)

    def forward(network: torch.nn.Module, images: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        return network(((images.flip(1) if flip else images) * scale - mean) / std)

    mean, std = (torch.tensor(values).reshape(-1, 1, 1) for values in (mean, std))
    return around(network, forward, mean=mean, std=std)


def preprocess(images: NDArray[np.float32], settings: Mapping[str, Any], *, where: object) -> NDArray[np.float32]:
    """Preprocessed images (n, C, H, W) float32, for classifiers without gradients; arguments as `preprocessed`."""
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
    if order == "bgr" and channels != 3:
        raise InputError(f"{where}: channel_order bgr needs 3 channels, image_shape has {channels}; choose rgb")
    constants = []
    for key, neutral in (("mean", 0.0), ("std", 1.0)):
        values = settings[key] if settings[key] is not None else [neutral] * channels
        if len(values) != channels or not np.all(np.isfinite(values)) or (key == "std" and min(values) <= 0):
            raise InputError(f"{where}: {key} {values} must hold {channels} finite numbers, std positive ones")
        constants.append([float(value) for value in values])
    return order == "bgr", float(scale), *constants
