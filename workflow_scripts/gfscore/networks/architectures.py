"""Networks for images of at least 8x8 pixels.

None uses batch statistics or dropout, so that the logits of a sample do not depend on its batch, as adversarial
training and the audit require. Imports torch: import it where a network is built.
"""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


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
