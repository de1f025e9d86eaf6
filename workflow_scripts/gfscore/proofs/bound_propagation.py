"""Proven robustness of small feed-forward networks by linear bounds on the logits over an l_inf ball.

For networks that are a sequence of convolutions, linear layers and ReLUs. A proof holds for every point of the ball, up
to float32 rounding; without a proof an image may still be robust.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gfscore.core.errors import InputError

LAYERS = (nn.Conv2d, nn.Linear, nn.ReLU, nn.Flatten)
"""Layers that bounds are propagated through."""

SLACK = 1e-5
"""Subtracted from the bounds on margins.

# ASSUME: float32 rounding of the bounds is below it.
"""

TINY = 1e-12
"""Width of an interval that replaces a narrower one before it divides."""

Interval = tuple[Tensor, Tensor]
"""Lower and upper bounds of the same shape."""


def certified(network: nn.Module, images: Tensor, labels: Tensor, *, eps: float | Tensor) -> Tensor:
    """Whether the prediction is proven correct for all perturbations of l_inf norm at most `eps`.

    # ASSUME: every output of the first maps is non-decreasing in every pixel; only the ends of the balls are checked.

    Parameters
    ----------
    network : Module
        In eval mode: a sequence (possibly nested) of zero-padded Conv2d, Linear, ReLU and Flatten. The first layers may
        be other maps without parameters, such as a normalisation.
    images : Tensor
        (n, C, H, W) in [0, 1].
    labels : Tensor
        (n,) int64.
    eps : float or Tensor
        Radius; a tensor broadcasts over the images.

    Returns
    -------
    Tensor
        (n,) bool; False means not proven.

    Raises
    ------
    InputError
        For any other layer, and if the image of a ball's ends under the first maps is not finite or in the wrong order.

    References
    ----------
    Zhang et al. 2018 (CROWN), with the ball intersected with the pixel range [0, 1].
    """
    with torch.no_grad():
        first, layers = _split(network)
        low, high = _ends(first, images, eps=eps)
        chain = _Chain(low, high)
        for layer in layers:
            chain.append(layer)
        last = layers[-1]
        assert isinstance(last, nn.Linear)
        margins = chain.lower(_margin_coefficients(labels, last.out_features))
        return margins.amin(1) > SLACK


def certified_radii(
    network: nn.Module, images: Tensor, labels: Tensor, *, largest: float, steps: int = 12
) -> NDArray[np.float64]:
    """Proven l_inf radius of each image, found by bisection; each returned radius was proven by `certified`.

    Parameters
    ----------
    network, images, labels
        As of `certified`.
    largest : float
        Largest radius that is tried.
    steps : int
        Halvings.

    Returns
    -------
    ndarray
        (n,) float64 in [0, `largest`]; 0 if nothing is proven.
    """
    proven = torch.zeros(len(images), dtype=torch.float64)
    low = torch.zeros_like(proven)
    high = torch.full_like(proven, float(largest))
    for step in range(steps + 1):
        eps = high if step == 0 else (low + high) / 2
        image_eps = eps.to(images.device, images.dtype).reshape(-1, *[1] * (images.ndim - 1))
        holds = certified(network, images, labels, eps=image_eps).cpu()
        proven = torch.where(holds, eps, proven)
        low = torch.where(holds, eps, low)
        high = torch.where(holds, high, eps)
    return proven.numpy()


def _ends(first: nn.Module, images: Tensor, *, eps: float | Tensor) -> Interval:
    # Bounds on the images of the balls under the first maps.
    low = first((images - eps).clamp(0, 1))
    high = first((images + eps).clamp(0, 1))
    # False for NaN.
    in_order = (low <= high) & low.isfinite() & high.isfinite()
    if not in_order.all():
        raise InputError(
            "the maps before the first layer give no bounds: they map a pixel range low to high to values that are not "
            "finite or not in this order; give maps that are non-decreasing in every pixel, finite images and eps >= 0"
        )
    return low, high


@dataclass
class _Chain:
    # The layers of a network, with bounds on the input of every ReLU, for inputs between low and high.
    low: Tensor
    high: Tensor
    layers: list[nn.Module] = field(default_factory=list)
    relu_bounds: list[Interval | None] = field(default_factory=list)

    @property
    def centre(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def reach(self) -> Tensor:
        return (self.high - self.low) / 2

    def append(self, layer: nn.Module) -> None:
        bounds = self._output_bounds() if isinstance(layer, nn.ReLU) else None
        self.layers.append(layer)
        self.relu_bounds.append(bounds)

    def lower(self, coefficients: Tensor) -> Tensor:
        # Lower bound (n, S) of S linear functions of the last layer's output, coefficients (n, S, ...).
        shapes = self._input_shapes()
        constant = coefficients.new_zeros(coefficients.shape[:2])
        for index in reversed(range(len(self.layers))):
            coefficients, added = _back(self.layers[index], coefficients, shapes[index], self.relu_bounds[index])
            constant = constant + added
        centre = self.centre[:, None]
        reach = self.reach[:, None]
        return constant + (coefficients * centre - coefficients.abs() * reach).flatten(2).sum(2)

    def _output_bounds(self) -> Interval:
        maps = [layer for layer in self.layers if not isinstance(layer, nn.Flatten)]
        if len(maps) == 1:
            return self._interval()
        shape = self._input_shapes()[-1]
        size = shape.numel()
        identity = torch.eye(size, device=self.low.device).reshape(1, size, *shape)
        identity = identity.expand(len(self.low), *identity.shape[1:])
        low = self.lower(identity).reshape(-1, *shape)
        high = -self.lower(-identity).reshape(-1, *shape)
        return low, high

    def _interval(self) -> Interval:
        # For a single linear map, interval arithmetic is exact and far cheaper.
        centre, reach = self.centre, self.reach
        for layer in self.layers:
            centre = layer(centre)
            reach = _magnitude(layer, reach)
        return centre - reach, centre + reach

    def _input_shapes(self) -> list[torch.Size]:
        # Of every layer, and of the one that would follow.
        x = torch.zeros_like(self.low[:1])
        shapes = [x.shape[1:]]
        for layer in self.layers:
            x = layer(x)
            shapes.append(x.shape[1:])
        return shapes


def _magnitude(layer: nn.Module, reach: Tensor) -> Tensor:
    if isinstance(layer, nn.Linear):
        return functional.linear(reach, layer.weight.abs())
    if isinstance(layer, nn.Conv2d):
        return functional.conv2d(reach, layer.weight.abs(), None, layer.stride, layer.padding)
    return layer(reach)


def _back(
    layer: nn.Module, coefficients: Tensor, shape: torch.Size, relu_bounds: Interval | None
) -> tuple[Tensor, Tensor | int]:
    # Converts coefficients of the layer's output to those of its input (of `shape`), and a term of the constant.
    n, functions = coefficients.shape[:2]
    if isinstance(layer, nn.ReLU):
        assert relu_bounds is not None
        return _back_through_relu(coefficients, *relu_bounds)
    if isinstance(layer, nn.Linear):
        # A linear layer maps every row of an input with more dimensions.
        added = 0 if layer.bias is None else (coefficients @ layer.bias).reshape(n, functions, -1).sum(2)
        return coefficients @ layer.weight, added
    if isinstance(layer, nn.Conv2d):
        return _back_through_convolution(layer, coefficients, shape)
    return coefficients.reshape(n, functions, *shape), 0


def _back_through_convolution(layer: nn.Conv2d, coefficients: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor | int]:
    n, functions = coefficients.shape[:2]
    padding = layer.padding
    assert not isinstance(padding, str)
    added = 0 if layer.bias is None else coefficients.sum((3, 4)) @ layer.bias
    # Pixels at the far edges that no step of the kernel reaches.
    unreached = []
    for axis in range(2):
        steps = coefficients.shape[3 + axis] - 1
        reached = steps * layer.stride[axis] - 2 * padding[axis] + layer.kernel_size[axis]
        unreached.append(shape[1 + axis] - reached)
    flat = coefficients.reshape(n * functions, *coefficients.shape[2:])
    flat = functional.conv_transpose2d(
        flat, layer.weight, stride=layer.stride, padding=padding, output_padding=unreached
    )
    return flat.reshape(n, functions, *shape), added


def _back_through_relu(coefficients: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    low, high = low[:, None], high[:, None]
    unstable = (low < 0) & (high > 0)
    active = (low >= 0).to(low.dtype)
    upper_slope = torch.where(unstable, high / (high - low).clamp(min=TINY), active)
    # Lower bound: the line through 0 with the smaller area to the ReLU.
    lower_slope = torch.where(unstable, (high > -low).to(low.dtype), upper_slope)
    positive = coefficients.clamp(min=0)
    negative = coefficients.clamp(max=0)
    intercept = torch.where(unstable, -upper_slope * low, 0)
    added = (negative * intercept).flatten(2).sum(2)
    return positive * lower_slope + negative * upper_slope, added


def _margin_coefficients(labels: Tensor, classes: int) -> Tensor:
    # z_y - z_j for every other class j, (n, K - 1, K).
    every_class = torch.arange(classes, device=labels.device)
    rivals = torch.stack([every_class[every_class != label] for label in labels])
    label_rows = functional.one_hot(labels, classes)[:, None]
    return (label_rows - functional.one_hot(rivals, classes)).float()


def _split(network: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    # The first maps, and the layers that bounds are propagated through.
    flat = _flattened(network)
    start = 0
    while start < len(flat) and not isinstance(flat[start], LAYERS):
        start += 1
    first, layers = flat[:start], flat[start:]
    learned = [layer for layer in first if next(layer.parameters(), None) is not None]
    _require_bounds([*learned, *layers])
    if not layers or not isinstance(layers[-1], nn.Linear):
        raise InputError("the network must end with a linear layer that returns the logits; give another network")
    return nn.Sequential(*first), layers


def _flattened(module: nn.Module) -> list[nn.Module]:
    # A subclass of Sequential may be a residual block.
    if not isinstance(module, nn.Sequential) or type(module).forward is not nn.Sequential.forward:
        return [module]
    layers = []
    for child in module:
        layers.extend(_flattened(child))
    return layers


def _require_bounds(layers: Sequence[nn.Module]) -> None:
    for layer in layers:
        if not _has_bounds(layer):
            raise InputError(
                f"there are no bounds for {layer}; give a sequence of linear layers, ReLUs and convolutions with "
                "numeric zero padding, without groups or dilation"
            )


def _has_bounds(layer: nn.Module) -> bool:
    # A subclass may compute something else.
    if all(type(layer).forward is not kind.forward for kind in LAYERS):
        return False
    if not isinstance(layer, nn.Conv2d):
        return True
    if layer.groups != 1 or layer.dilation != (1, 1) or layer.padding_mode != "zeros":
        return False
    return not isinstance(layer.padding, str)
