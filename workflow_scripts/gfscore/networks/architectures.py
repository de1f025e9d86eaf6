"""Networks for images of at least 8x8 pixels.

None uses batch statistics or dropout, so that the logits of a sample do not depend on its batch, as adversarial
training and the audit require. Imports torch: import it where a network is built.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from gfscore.core.errors import InputError
from gfscore.networks.timm_models import build_timm

if TYPE_CHECKING:
    from torch import nn


def small_convnet(
    in_channels: int, image_size: tuple[int, int], classes: int, *, width: int = 16, pool: int = 4
) -> nn.Module:
    """Three 3x3 convolutions and a hidden linear layer.

    `width` is the number of channels of the first convolution (the others have twice as many), `pool` the side of the
    grid that the last feature map is averaged to, which makes the number of weights independent of the image size.
    """
    del image_size  # the pooling makes it irrelevant
    return nn.Sequential(
        nn.Conv2d(in_channels, width, 3, padding=1),
        _rectifier(),
        nn.Conv2d(width, 2 * width, 3, padding=1, stride=2),
        _rectifier(),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        _rectifier(),
        _AveragePool(pool),
        nn.Flatten(),
        nn.Linear(2 * width * pool * pool, 4 * width),
        _rectifier(),
        nn.Linear(4 * width, classes),
    )


def patch_mixer(
    in_channels: int, image_size: tuple[int, int], classes: int, *, patch: int = 2, width: int = 48, depth: int = 2
) -> nn.Module:
    """MLP-Mixer: a sequence of image patches, mixed alternately over positions and over channels.

    `patch` is the side of a patch in pixels (images are padded with zeros to a multiple of it), `width` the number of
    channels per patch, `depth` the number of mixer blocks. Source: Tolstikhin et al. 2021, MLP-Mixer.
    """
    height, width_of_image = image_size
    rows, columns = -(-height // patch), -(-width_of_image // patch)
    padding = (0, columns * patch - width_of_image, 0, rows * patch - height)
    # Before the other layers, since the weights that a seed gives depend on the order in which layers are made.
    blocks = [layer for _ in range(depth) for layer in _mixer_block(rows * columns, width)]
    return nn.Sequential(
        nn.ZeroPad2d(padding),
        nn.Conv2d(in_channels, width, patch, stride=patch),
        nn.Flatten(2),
        _Transpose(),
        *blocks,
        nn.LayerNorm(width),
        nn.Flatten(),
        nn.Linear(rows * columns * width, classes),
    )


def residual_network(
    in_channels: int, image_size: tuple[int, int], classes: int, *, width: int = 64, blocks: int = 2
) -> nn.Module:
    """Residual network for small images: a 3x3 stem, four stages of basic blocks, global average pooling.

    `width` is the number of channels of the first stage, doubled at each further stage while the sides are halved,
    `blocks` the number of blocks per stage; 64 and 2 are the ResNet-18 of the CIFAR literature, with group
    normalisation in place of batch normalisation. Sources: He et al. 2016, sections 3 and 4.2; Wu and He 2018, Group
    Normalization.
    """
    del image_size  # the pooling makes it irrelevant
    layers, channels = [*_convolution(in_channels, width), _rectifier()], width
    for stage in range(4):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers += _basic_block(channels, width * 2**stage, stride)
            channels = width * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    function.__name__: function for function in (small_convnet, patch_mixer, residual_network)
}
"""Functions that build architectures, by their name in config.yaml."""


class _AveragePool(nn.Module):
    """Mean over the cells of a grid of `side` x `side` that covers a feature map."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        # The same values as adaptive_avg_pool2d; several times as fast if all cells are equal or single pixels.
        height, width = features.shape[-2:]
        if height == width == self.side:
            return features
        if height % self.side or width % self.side:
            return functional.adaptive_avg_pool2d(features, self.side)
        return functional.avg_pool2d(features, (height // self.side, width // self.side))


class _Residual(nn.Module):
    """Sum of a branch and a shortcut, by default the input."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shortcut(x) + self.branch(x)


class _Transpose(nn.Module):
    """Exchange of positions and channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2)


class Centred(nn.Module):
    """Pixels in [0, 1] rescaled to [-1, 1]."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Rescaled images."""
        return images * 2 - 1


def _rectifier():
    # In place, which saves memory: no gradient needs the input.
    return nn.ReLU(inplace=True)


def _basic_block(in_channels, channels, stride):
    branch = [*_convolution(in_channels, channels, stride=stride), _rectifier(), *_convolution(channels, channels)]
    shortcut = (
        None if in_channels == channels else nn.Sequential(*_convolution(in_channels, channels, 1, stride=stride))
    )
    return [_Residual(nn.Sequential(*branch), shortcut), _rectifier()]


def _convolution(in_channels, channels, side=3, *, stride=1):
    # 16 channels per group, among the best choices of Wu and He; gcd, because groups must be of equal size.
    groups = math.gcd(channels, max(1, channels // 16))
    # No bias, since the normalisation would remove it.
    convolution = nn.Conv2d(in_channels, channels, side, stride=stride, padding=side // 2, bias=False)
    return [convolution, nn.GroupNorm(groups, channels)]


def _mixer_block(patches, width):
    def mlp(size: int) -> list[nn.Module]:
        return [nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size)]

    over_positions = nn.Sequential(nn.LayerNorm(width), _Transpose(), *mlp(patches), _Transpose())
    over_channels = nn.Sequential(nn.LayerNorm(width), *mlp(width))
    return [_Residual(over_positions), _Residual(over_channels)]


# Construction of the networks that the workflow trains, by name. A new architecture is one function in
# architectures.py, named in its ARCHITECTURES. Every network of the timm collection is available, untrained, as
# timm/<name>.


TIMM = "timm/"
"""Prefix of the names of timm's networks."""

SMALLEST_SIDE = 8


def build_network(
    name: str, *, in_channels: int, image_size: Sequence[int], classes: int, seed: int = 0, **arguments: Any
) -> nn.Module:
    """Newly initialised torch module from images (n, C, H, W) in [0, 1] to logits (n, K).

    `name` is a key of ARCHITECTURES or timm/<name> (see `_of_timm`), `in_channels` C, `image_size` (H, W) with both at
    least 8, `classes` K, `seed` that of the weights, `arguments` those of the architecture. The attribute `recipe` of
    the result holds the arguments to build it again. Raises InputError for an unknown name or argument, and for smaller
    images.
    """
    import torch

    timm = name.startswith(TIMM)
    if not timm and name not in ARCHITECTURES:
        raise InputError(f"architecture {name!r} is unknown; choose one of {', '.join(ARCHITECTURES)}, {TIMM}<name>")
    height, width = image_size
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"architecture {name!r} needs images of at least 8x8 pixels, got {height}x{width}")
    if not timm:
        _require_known(name, ARCHITECTURES[name], arguments)
    # The initialisation uses torch's global CPU generator, which is forked so that other draws do not change.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if timm:
            network: Any = _of_timm(name, in_channels, classes, arguments)
        else:
            network = ARCHITECTURES[name](in_channels, (height, width), classes, **arguments)
    network.recipe = {
        "architecture": name,
        "in_channels": in_channels,
        "image_size": [height, width],
        "classes": classes,
        "arguments": arguments,
    }
    return network


def _require_known(name, function, arguments):
    known = [*inspect.signature(function).parameters][3:]
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise InputError(f"architecture {name!r} has no argument {unknown[0]!r}; it knows {', '.join(known)}")


def _of_timm(name, in_channels, classes, arguments):
    # `arguments` are those of timm.create_model (drop_path_rate, img_size of a transformer, ...). Pixels are rescaled
    # to [-1, 1], as most of these networks expect. Many use batch statistics, which attacks during training update too.
    from torch import nn

    settings = {"architecture": name.removeprefix(TIMM), "arguments": arguments, "image_shape": [in_channels]}
    return nn.Sequential(Centred(), build_timm(settings, f"architecture {name}", classes=classes))
