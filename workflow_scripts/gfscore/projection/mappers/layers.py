"""Convolutional encoders and decoders for images of at least 8x8 pixels."""

import math

from gfscore.core.tensors import Module, Tensor

COARSEST = 4
"""Largest side of the grid between convolutions and linear layers."""

MOST_WIDENING = 8
"""Channels are doubled at each halving of the image, up to this multiple of the first number."""


def encoder(image_shape: tuple[int, int, int], features: int, *, width: int) -> Module:
    """Images (n, C, H, W) to features (n, F): stride-2 convolutions down to a 4x4 grid, then one linear layer."""
    from torch import nn

    channels, *size = image_shape
    layers, before = [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()], width
    for level in range(_halvings(size)):
        after = _channels(width, level + 1)
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
        before = after
    rows, columns = _grid(size)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * rows * columns, features), nn.ReLU())


def decoder(image_shape: tuple[int, int, int], inputs: int, features: int, *, width: int) -> Module:
    """Codes (n, Z) to logits of pixels (n, C, H, W): the reverse of `encoder`, cropped to the size of the image."""
    from torch import nn

    channels, *size = image_shape
    rows, columns = _grid(size)
    levels = _halvings(size)
    before = _channels(width, levels)
    layers = [nn.Linear(inputs, features), nn.ReLU(), nn.Linear(features, before * rows * columns), nn.ReLU()]
    layers += [nn.Unflatten(1, (before, rows, columns))]
    for level in reversed(range(levels)):
        after = _channels(width, level)
        layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.Conv2d(before, channels, 3, padding=1), _cut(size))


def _cut(size):
    from torch import nn

    class Cut(nn.Module):
        """Crop to the upper left part of a given size, since doubled grids may be too large."""

        def forward(self, images: Tensor) -> Tensor:
            return images[..., : size[0], : size[1]]

    return Cut()


def _halvings(size):
    return max(0, math.ceil(math.log2(max(size) / COARSEST)))


def _grid(size):
    for _ in range(_halvings(size)):
        size = [-(-side // 2) for side in size]
    return size


def _channels(width, level):
    return width * min(2**level, MOST_WIDENING)
