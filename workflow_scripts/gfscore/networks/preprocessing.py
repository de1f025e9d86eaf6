"""Preprocessing of pixels as a part of the network.

Attacks differentiate through it, so their distances refer to pixels in [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.errors import InputError
from gfscore.networks.model_source import Settings
from gfscore.networks.outputs import Images

if TYPE_CHECKING:
    import torch


def preprocessed(network: torch.nn.Module, settings: Settings, *, where: object) -> torch.nn.Module:
    """Torch module that applies a network to RGB images in [0, 1] after its preprocessing.

    Parameters
    ----------
    network : torch.nn.Module
        From preprocessed images (n, C, H, W) to its output.
    settings : mapping
        `image_shape` (C, H, W), and, applied in this order: `channel_order` ("rgb" or "bgr"), `value_range` (1 or 255,
        the pixel value of white for the network), `mean` and `std` (one number per channel in the network's order and
        range, or None).
    where : object
        The network, for messages.

    Raises
    ------
    InputError
        Naming the setting, if it does not fit the number of channels.
    """
    # Not at the top: what only preprocesses arrays needs no torch.
    import torch

    from gfscore.networks.wrappers import wrap

    flip, scale, means, deviations = _steps(settings, where)

    def forward(network: torch.nn.Module, images: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        if flip:
            images = images.flip(1)
        return network((images * scale - mean) / std)

    mean = torch.tensor(means).reshape(-1, 1, 1)
    std = torch.tensor(deviations).reshape(-1, 1, 1)
    return wrap(network, forward, mean=mean, std=std)


def preprocess(images: Images, settings: Settings, *, where: object) -> Images:
    """Preprocessed images (n, C, H, W) float32, for classifiers without gradients; parameters as of `preprocessed`."""
    flip, scale, means, deviations = _steps(settings, where)
    if flip:
        images = images[:, ::-1]
    mean = np.array(means, dtype=np.float32).reshape(-1, 1, 1)
    std = np.array(deviations, dtype=np.float32).reshape(-1, 1, 1)
    return np.ascontiguousarray((images * np.float32(scale) - mean) / std)


def description(settings: Settings) -> str:
    """Preprocessing in words for the identity of logits, for instance "bgr, white 255, mean 104 117 123"."""
    words = [settings["channel_order"], f"white {settings['value_range']}"]
    for key in ("mean", "std"):
        values = settings[key]
        if values is not None:
            numbers = " ".join(f"{value:g}" for value in values)
            words.append(f"{key} {numbers}")
    return ", ".join(words)


def image_shape_of(settings: Settings) -> tuple[int, int, int]:
    """Shape (C, H, W) of the images that a network takes."""
    channels, height, width = settings["image_shape"]
    return channels, height, width


def _steps(settings: Settings, where: object) -> tuple[bool, float, list[float], list[float]]:
    # Whether the order of the channels is reversed, a factor, and means and standard deviations of the channels.
    channels, _, _ = image_shape_of(settings)
    flip = settings["channel_order"] == "bgr"
    if flip and channels != 3:
        raise InputError(f"{where}: channel_order bgr needs 3 channels, image_shape has {channels}; choose rgb")
    mean = _constants(settings, "mean", channels, where)
    std = _constants(settings, "std", channels, where)
    return flip, float(settings["value_range"]), mean, std


def _constants(settings: Settings, key: str, channels: int, where: object) -> list[float]:
    values = settings[key]
    if values is None:
        return [0.0 if key == "mean" else 1.0] * channels
    fits = len(values) == channels and np.all(np.isfinite(values))
    if not fits or (key == "std" and min(values) <= 0):
        raise InputError(f"{where}: {key} {values} must hold {channels} finite numbers, std positive ones")
    return list(map(float, values))
