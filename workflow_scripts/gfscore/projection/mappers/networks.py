"""Networks of mappers: what all kinds have in common, and convolutional encoders and decoders."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn

LONGEST_GRID_SIDE = 4
"""Largest side of the grid between convolutions and linear layers, to which images are halved."""

MOST_WIDENING = 8
"""Channels are doubled at each halving of the image, up to this multiple of the first number."""


class MapperTrainer(Protocol):
    """Training of a mapper, step by step."""

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses of a step."""

    @property
    def objects(self) -> Mapping[str, nn.Module | torch.optim.Optimizer]:
        """Modules and optimisers to save for resumption, by name."""

    def step(self, images: Tensor, conditions: Tensor) -> tuple[float, ...]:
        """Train on images (n, C, H, W) with conditions (n, A), NaN where missing, and return the losses."""


class MapperNetwork(nn.Module):
    """Encoder and decoder of images (n, C, H, W) in [0, 1].

    Attributes
    ----------
    names : list of str
        The D latent dimensions that are moved, the first D columns of codes (n, Z).
    limits : tuple of float or None
        (low, high), the range of their values.
    recipe : dict
        Arguments to build the network again; build_mapper sets it.
    """

    names: list[str]
    limits: tuple[float, float] | None = None
    recipe: dict[str, Any]

    def encode(self, images: Tensor, conditions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Codes (n, Z), and the posterior standard deviation (n, D) of the moved dimensions.

        `conditions` (n, A) are None for a mapper that was trained without them.
        """
        raise NotImplementedError

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, C, H, W) of codes (n, Z)."""
        raise NotImplementedError

    def trainer(self, learning_rate: float, generator: Generator) -> MapperTrainer:
        """Training of this network; `generator` draws its random numbers."""
        raise NotImplementedError


def encoder(image_shape: tuple[int, int, int], features: int, *, width: int) -> nn.Module:
    """Network from images (n, C, H, W), with sides of at least 8, to features (n, F).

    Stride-2 convolutions down to a grid of at most 4x4, then one linear layer; `width` is the number of channels of the
    first convolution.
    """
    image_channels, *size = image_shape
    layers: list[nn.Module] = [nn.Conv2d(image_channels, width, 3, padding=1), nn.ReLU()]
    channels = width
    for level in range(_halvings(size)):
        next_channels = _channels(width, level + 1)
        layers += [nn.Conv2d(channels, next_channels, 3, stride=2, padding=1), nn.ReLU()]
        channels = next_channels
    rows, columns = _grid(size)
    layers += [nn.Flatten(), nn.Linear(channels * rows * columns, features), nn.ReLU()]
    return nn.Sequential(*layers)


def decoder(image_shape: tuple[int, int, int], inputs: int, features: int, *, width: int) -> nn.Module:
    """Network from codes (n, Z) to logits of pixels (n, C, H, W): the reverse of `encoder`, cropped to the image."""
    image_channels, *size = image_shape
    rows, columns = _grid(size)
    halvings = _halvings(size)
    channels = _channels(width, halvings)
    layers: list[nn.Module] = [nn.Linear(inputs, features), nn.ReLU()]
    layers += [nn.Linear(features, channels * rows * columns), nn.ReLU(), nn.Unflatten(1, (channels, rows, columns))]
    for level in reversed(range(halvings)):
        next_channels = _channels(width, level)
        layers += [nn.ConvTranspose2d(channels, next_channels, 4, stride=2, padding=1), nn.ReLU()]
        channels = next_channels
    layers += [nn.Conv2d(channels, image_channels, 3, padding=1), Crop(*size)]
    return nn.Sequential(*layers)


class Crop(nn.Module):
    """Upper left part of images: a side that was rounded up at a halving is too long after doubling."""

    def __init__(self, height: int, width: int) -> None:
        """Size of the result in pixels."""
        super().__init__()
        self.height = height
        self.width = width

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, C, H, W) at their new size."""
        return images[..., : self.height, : self.width]


def _halvings(size: Sequence[int]) -> int:
    return max(0, math.ceil(math.log2(max(size) / LONGEST_GRID_SIDE)))


def _grid(size: Sequence[int]) -> list[int]:
    # Rows and columns of an image after all halvings.
    grid = list(size)
    for _ in range(_halvings(size)):
        grid = [-(-length // 2) for length in grid]
    return grid


def _channels(width: int, level: int) -> int:
    # Channels after so many halvings.
    return width * min(2**level, MOST_WIDENING)
