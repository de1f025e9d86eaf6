"""Networks that the workflow trains: architectures for images of at least 8x8 pixels, and their construction by name.

A new architecture is one function here, listed in ARCHITECTURES. Every network of the timm collection is available,
untrained, as timm/<name>. No architecture here uses batch statistics or dropout, so that the logits of a sample do not
depend on its batch, as adversarial training and the audit require.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

from gfscore.core.errors import InputError
from gfscore.networks.model_source import Arguments
from gfscore.networks.timm_models import build_timm

TIMM = "timm/"
"""Prefix of the names of timm's networks."""

SMALLEST_SIDE = 8


class NetworkRecipe(TypedDict):
    """Arguments with which a network is built again."""

    architecture: str
    in_channels: int
    image_size: list[int]
    classes: int
    arguments: Arguments


def build_network(
    name: str, *, in_channels: int, image_size: Sequence[int], classes: int, seed: int = 0, **arguments: Any
) -> nn.Module:
    """Newly initialised torch module from images (n, C, H, W) in [0, 1] to logits (n, K).

    Parameters
    ----------
    name : str
        A key of ARCHITECTURES, or timm/<name>. A network of timm takes the arguments of timm.create_model
        (drop_path_rate, img_size of a transformer, ...), and has its pixels rescaled to [-1, 1], as most of these
        networks expect. Many of them use batch statistics, which attacks during training update too.
    in_channels : int
        C.
    image_size : sequence of int
        (H, W), at least 8 each.
    classes : int
        K.
    seed : int
        Seed of the weights.
    **arguments
        Arguments of the architecture.

    Returns
    -------
    torch.nn.Module
        Its attribute `recipe` is a NetworkRecipe.

    Raises
    ------
    InputError
        For an unknown name or argument, and for smaller images.
    """
    is_timm = name.startswith(TIMM)
    if not is_timm and name not in ARCHITECTURES:
        raise InputError(f"architecture {name!r} is unknown; choose one of {', '.join(ARCHITECTURES)}, {TIMM}<name>")
    height, width = image_size
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"architecture {name!r} needs images of at least 8x8 pixels, got {height}x{width}")
    if not is_timm:
        # The first three parameters, in_channels, image_size and classes, are not arguments of an entry.
        parameters = list(inspect.signature(ARCHITECTURES[name]).parameters)[3:]
        unknown = sorted(set(arguments) - set(parameters))
        if unknown:
            raise InputError(f"architecture {name!r} has no argument {unknown[0]!r}; it knows {', '.join(parameters)}")

    # Weights are drawn from torch's global CPU generator; its state is restored afterwards for the draws of others.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if is_timm:
            settings = {"architecture": name.removeprefix(TIMM), "arguments": arguments, "image_shape": [in_channels]}
            timm_network = build_timm(settings, f"architecture {name}", classes=classes)
            network: nn.Module = nn.Sequential(Centred(), timm_network)
        else:
            network = ARCHITECTURES[name](in_channels, (height, width), classes, **arguments)
    # A module takes attributes of any kind, but its type declares tensors and modules only.
    network.recipe = NetworkRecipe(  # type: ignore[assignment]
        architecture=name,
        in_channels=in_channels,
        image_size=[height, width],
        classes=classes,
        arguments=arguments,
    )
    return network


# Architectures


def small_convnet(
    in_channels: int, image_size: tuple[int, int], classes: int, *, width: int = 16, pool: int = 4
) -> nn.Module:
    """Three 3x3 convolutions and a hidden linear layer.

    Parameters
    ----------
    in_channels, image_size, classes
        C, (H, W), K.
    width : int
        Channels of the first convolution; the others have twice as many.
    pool : int
        Side of the grid that the last feature map is averaged to, which makes the number of weights independent of the
        image size.
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

    Parameters
    ----------
    in_channels, image_size, classes
        C, (H, W), K.
    patch : int
        Side of a patch in pixels; images are padded with zeros to a multiple of it.
    width : int
        Channels per patch.
    depth : int
        Number of mixer blocks.

    References
    ----------
    Tolstikhin et al. 2021, MLP-Mixer.
    """
    image_height, image_width = image_size
    rows = math.ceil(image_height / patch)
    columns = math.ceil(image_width / patch)
    padding = (0, columns * patch - image_width, 0, rows * patch - image_height)
    # The blocks are made before the other layers: the weights that a seed gives depend on this order.
    blocks: list[nn.Module] = []
    for _ in range(depth):
        over_positions = nn.Sequential(nn.LayerNorm(width), _Transpose(), *_mlp(rows * columns), _Transpose())
        over_channels = nn.Sequential(nn.LayerNorm(width), *_mlp(width))
        blocks += [_Residual(over_positions), _Residual(over_channels)]
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

    With the defaults the ResNet-18 of the CIFAR literature, with group normalisation in place of batch normalisation.

    Parameters
    ----------
    in_channels, image_size, classes
        C, (H, W), K.
    width : int
        Channels of the first stage, doubled at each further stage while the sides are halved.
    blocks : int
        Blocks per stage.

    References
    ----------
    He et al. 2016, sections 3 and 4.2; Wu and He 2018, Group Normalization.
    """
    del image_size  # the pooling makes it irrelevant
    layers = [*_convolution(in_channels, width), _rectifier()]
    channels = width
    for stage in range(4):
        stage_channels = width * 2**stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers += _basic_block(channels, stage_channels, stride)
            channels = stage_channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "small_convnet": small_convnet,
    "patch_mixer": patch_mixer,
    "residual_network": residual_network,
}
"""Functions that build architectures, by their name in config.yaml."""


# Layers


class Centred(nn.Module):
    """Pixels in [0, 1] rescaled to [-1, 1]."""

    def forward(self, images: Tensor) -> Tensor:
        """Rescaled images."""
        return images * 2 - 1


class _AveragePool(nn.Module):
    """Mean over the cells of a grid of `side` x `side` that covers a feature map."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, features: Tensor) -> Tensor:
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

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.branch(x)


class _Transpose(nn.Module):
    """Exchange of positions and channels."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


def _rectifier() -> nn.Module:
    # In place, which saves memory: no gradient needs the input.
    return nn.ReLU(inplace=True)


def _convolution(in_channels: int, channels: int, size: int = 3, *, stride: int = 1) -> list[nn.Module]:
    # 16 channels per group, among the best choices of Wu and He; gcd, because groups must be of equal size.
    groups = math.gcd(channels, max(1, channels // 16))
    # No bias, since the normalisation would remove it.
    convolution = nn.Conv2d(in_channels, channels, size, stride=stride, padding=size // 2, bias=False)
    return [convolution, nn.GroupNorm(groups, channels)]


def _basic_block(in_channels: int, channels: int, stride: int) -> list[nn.Module]:
    branch = nn.Sequential(
        *_convolution(in_channels, channels, stride=stride),
        _rectifier(),
        *_convolution(channels, channels),
    )
    shortcut = None
    if in_channels != channels:
        shortcut = nn.Sequential(*_convolution(in_channels, channels, 1, stride=stride))
    return [_Residual(branch, shortcut), _rectifier()]


def _mlp(size: int) -> list[nn.Module]:
    return [nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size)]
