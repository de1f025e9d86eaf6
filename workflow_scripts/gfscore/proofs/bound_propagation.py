"""Proven robustness of small feed-forward networks by linear bounds on the logits over an l_inf ball.

For networks that are a sequence of convolutions, linear layers and ReLUs. A proof holds for every point of the ball, up
to float32 rounding; without a proof an image may still be robust.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.tensors import Module, Tensor


def certified(network: Module, images: Tensor, labels: Tensor, *, eps: float | Tensor) -> Tensor:
    """Whether the prediction is proven correct for all perturbations of l_inf norm at most `eps`, (n,) bool.

    Takes a torch module in eval mode that is a sequence (possibly nested) of zero-padded Conv2d, Linear, ReLU and
    Flatten; images (n, C, H, W) in [0, 1]; labels (n,) int64; `eps` a number or a tensor that broadcasts over the
    images. False means not proven. The first layers may be other maps without parameters, such as a normalisation.
    Raises InputError for any other layer, and if the image of a ball's ends under the first maps is not finite or in
    the wrong order. Source: Zhang et al. 2018 (CROWN), with the ball intersected with the pixel range [0, 1].
    # ASSUME: every output of the first maps is non-decreasing in every pixel; only the ends of the balls are checked.
    """
    import torch

    # ASSUME: float32 rounding of the bounds is below the slack that is subtracted.
    slack = 1e-5
    with torch.no_grad():
        first, layers = _layers(network)
        low, high = _ends(first, images, eps=eps)
        chain = _Chain(low, high, [])
        for layer in layers[:-1]:
            chain.extend(layer)
        chain.append(layers[-1])
        margins = _margin_coefficients(labels, layers[-1].out_features)
        return chain.lower(margins).amin(1) > slack


def certified_radii(
    network: Module, images: Tensor, labels: Tensor, *, largest: float, steps: int = 12
) -> NDArray[np.float64]:
    """Proven l_inf radius of each image, (n,) float64 in [0, `largest`]; 0 if nothing is proven.

    Found by bisection; each returned radius was proven by `certified`.
    """
    import torch

    proven = torch.zeros(len(images), dtype=torch.float64)
    low, high = torch.zeros_like(proven), torch.full_like(proven, float(largest))
    for step in range(steps + 1):
        eps = high if step == 0 else (low + high) / 2
        shaped = eps.to(images.device, images.dtype).reshape(-1, *[1] * (images.ndim - 1))
        holds = certified(network, images, labels, eps=shaped).cpu()
        proven = torch.where(holds, eps, proven)
        low, high = torch.where(holds, eps, low), torch.where(holds, high, eps)
    return proven.numpy()


def _ends(first, images, *, eps):
    # Bounds on the images of the balls under the first maps.
    low, high = (first((images + sign * eps).clamp(0, 1)) for sign in (-1, 1))
    # False for NaN.
    if not ((low <= high) & low.isfinite() & high.isfinite()).all():
        raise InputError(
            "the maps before the first layer give no bounds: they map a pixel range low to high to values that are not "
            "finite or not in this order; give maps that are non-decreasing in every pixel, finite images and eps >= 0"
        )
    return low, high


@dataclass
class _Chain:
    """Layers so far, with bounds on the input of every ReLU."""

    low: Tensor
    high: Tensor
    done: list[tuple[Module, tuple[Tensor, Tensor] | None]]

    def append(self, layer: Module) -> None:
        self.done.append((layer, None))

    def extend(self, layer: Module) -> None:
        from torch import nn

        if not isinstance(layer, nn.ReLU):
            self.append(layer)
            return
        shape = self._shapes()[-1]
        size = shape.numel()
        self.done.append((layer, self._input_bounds(shape, size)))

    def _input_bounds(self, shape, size):
        import torch

        if sum(not isinstance(layer, torch.nn.Flatten) for layer, _ in self.done) == 1:
            return self._interval()
        identity = torch.eye(size, device=self.low.device).reshape(1, size, *shape)
        identity = identity.expand(len(self.low), *identity.shape[1:])
        return self.lower(identity).reshape(-1, *shape), -self.lower(-identity).reshape(-1, *shape)

    def _interval(self):
        # For a single linear map, interval arithmetic is exact and far cheaper.
        centre, reach = (self.low + self.high) / 2, (self.high - self.low) / 2
        for layer, _ in self.done:
            centre, reach = layer(centre), _magnitude(layer, reach)
        return centre - reach, centre + reach

    def lower(self, coefficients: Tensor) -> Tensor:
        """Lower bound (n, S) of S linear functions of the last layer's output, coefficients (n, S, ...)."""
        shapes = self._shapes()
        constant = coefficients.new_zeros(coefficients.shape[:2])
        for index in range(len(self.done) - 1, -1, -1):
            layer, bounds = self.done[index]
            coefficients, added = _back(layer, coefficients, shapes[index], bounds)
            constant = constant + added
        centre, reach = ((self.low + self.high) / 2)[:, None], ((self.high - self.low) / 2)[:, None]
        return constant + (coefficients * centre - coefficients.abs() * reach).flatten(2).sum(2)

    def _shapes(self):
        import torch

        shapes, x = [], torch.zeros_like(self.low[:1])
        for layer, _ in self.done:
            shapes.append(x.shape[1:])
            x = layer(x)
        return [*shapes, x.shape[1:]]


def _magnitude(layer, reach):
    from torch import nn
    from torch.nn import functional

    if isinstance(layer, nn.Flatten):
        return layer(reach)
    if isinstance(layer, nn.Linear):
        return functional.linear(reach, layer.weight.abs())
    return functional.conv2d(reach, layer.weight.abs(), None, layer.stride, layer.padding)


def _back(layer, coefficients, shape, bounds):
    # Converts coefficients of the layer's output to those of its input (of `shape`), and a term of the constant.
    from torch import nn
    from torch.nn import functional

    n, functions = coefficients.shape[:2]
    if isinstance(layer, nn.Flatten):
        return coefficients.reshape(n, functions, *shape), 0
    if isinstance(layer, nn.ReLU):
        return _back_through_relu(coefficients, *bounds)
    if isinstance(layer, nn.Linear):
        # A linear layer maps every row of an input with more dimensions.
        added = 0 if layer.bias is None else (coefficients @ layer.bias).reshape(n, functions, -1).sum(2)
        return coefficients @ layer.weight, added
    added = 0 if layer.bias is None else coefficients.sum((3, 4)) @ layer.bias
    sides = zip(shape[1:], coefficients.shape[3:], layer.stride, layer.padding, layer.kernel_size, strict=True)
    lost = [side - ((out - 1) * stride - 2 * pad + kernel) for side, out, stride, pad, kernel in sides]
    flat = coefficients.reshape(n * functions, *coefficients.shape[2:])
    how = {"stride": layer.stride, "padding": layer.padding, "output_padding": lost}
    return functional.conv_transpose2d(flat, layer.weight, **how).reshape(n, functions, *shape), added


def _back_through_relu(coefficients, low, high):
    import torch

    low, high = low[:, None], high[:, None]
    unstable = (low < 0) & (high > 0)
    upper_slope = torch.where(unstable, high / (high - low).clamp(min=1e-12), (low >= 0).to(low.dtype))
    # Lower bound: the line through 0 with the smaller area to the ReLU.
    lower_slope = torch.where(unstable, (high > -low).to(low.dtype), upper_slope)
    negative = coefficients.clamp(max=0)
    added = (negative * torch.where(unstable, -upper_slope * low, 0)).flatten(2).sum(2)
    return coefficients.clamp(min=0) * lower_slope + negative * upper_slope, added


def _margin_coefficients(labels, classes):
    # z_y - z_j for every other class j, (n, K - 1, K).
    import torch

    rows = torch.arange(classes, device=labels.device)
    others = torch.stack([rows[rows != label] for label in labels])
    own = torch.nn.functional.one_hot(labels, classes)[:, None]
    return (own - torch.nn.functional.one_hot(others, classes)).float()


def _layers(network):
    from torch import nn

    opened = _opened(network)
    start = next((index for index, layer in enumerate(opened) if isinstance(layer, _known())), len(opened))
    layers = opened[start:]
    learned = [layer for layer in opened[:start] if any(True for _ in layer.parameters())]
    for layer in [*learned, *layers]:
        if not _has_bounds(layer):
            raise InputError(
                f"there are no bounds for {layer}; give a sequence of linear layers, ReLUs and convolutions with "
                "numeric zero padding, without groups or dilation"
            )
    if not layers or not isinstance(layers[-1], nn.Linear):
        raise InputError("the network must end with a linear layer that returns the logits; give another network")
    return nn.Sequential(*opened[:start]), layers


def _known():
    from torch import nn

    return nn.Conv2d, nn.Linear, nn.ReLU, nn.Flatten


def _has_bounds(layer):
    from torch import nn

    # A subclass may compute something else.
    if all(type(layer).forward is not kind.forward for kind in _known()):
        return False
    if not isinstance(layer, nn.Conv2d):
        return True
    plain = (layer.groups, layer.dilation, layer.padding_mode) == (1, (1, 1), "zeros")
    return plain and not isinstance(layer.padding, str)


def _opened(module):
    from torch import nn

    # A subclass of Sequential may be a residual block.
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
        return [part for child in module for part in _opened(child)]
    return [module]
