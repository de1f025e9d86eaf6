"""Certified training: the loss at the least margins that bounds allow in boxes around images.

The bounds are those of `gfscore.proofs` in float32, differentiable in the weights and without their rounding errors: a
training claims nothing, and what its network can be proven to withstand is measured afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, fx
from torch.func import functional_call
from torch.nn import Module

from gfscore.attacks.gradient_ascent import cross_entropy
from gfscore.proofs.graph import Graph, nodes_of, traced
from gfscore.proofs.operators.declaration import Activation, Affine, Shape
from gfscore.proofs.operators.relu import Relu
from gfscore.training.objectives import EpochEnd, Objective

SMALLEST_WIDTH = 1e-12
"""Of an interval that is divided by."""


@dataclass(frozen=True)
class Box:
    """Values between `low` and `high`, tensors (n, ...) of one shape."""

    low: Tensor
    high: Tensor

    @classmethod
    def around(cls, images: Tensor, eps: float) -> Box:
        """Box of the pixels in [0, 1] at most eps away from images (n, C, H, W)."""
        return cls((images - eps).clamp(0, 1), (images + eps).clamp(0, 1))

    @property
    def centre(self) -> Tensor:
        """Middle of each interval."""
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Tensor:
        """Half the width of each interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class TracedNetwork:
    """The steps of a network as torch traced them, with its weights as arguments."""

    steps: fx.GraphModule
    shape: Shape

    @classmethod
    def of(cls, network: Module, images: Tensor) -> TracedNetwork:
        """Trace a network for images of a shape; InputError where torch cannot."""
        # On the CPU, wherever the network is: `graph` puts the present weights in the place of these.
        names = [name for name, _ in network.named_parameters()]
        weights = [weight.detach().cpu() for weight in network.parameters()]
        buffers = {name: buffer.cpu() for name, buffer in network.named_buffers()}
        image = images[:1].detach().cpu()

        def forward(image: Tensor, *values: Tensor) -> Tensor:
            return functional_call(network, {**buffers, **dict(zip(names, values, strict=True))}, image)

        return cls(traced(forward, image, *weights), tuple(image.shape))

    def graph(self, network: Module) -> Graph:
        """Operators with the present weights; InputError for one without bounds, which it names."""
        return Graph(tuple(nodes_of(self.steps, self.shape, list(network.parameters()))))


def interval_bounds(graph: Graph, box: Box) -> list[Box]:
    """Bounds on the outputs of every operator for all images of a box, by interval arithmetic.

    Parameters
    ----------
    graph : Graph
        With differentiable weights.
    box : Box
        Pixels (n, C, H, W).

    Returns
    -------
    list of Box
        By node, (n, *shape of the node).

    References
    ----------
    Gowal et al. 2018, equations 4 to 6.
    """
    bounds = [Box(box.low[:, None], box.high[:, None])]
    for node in graph.nodes[1:]:
        inputs = [bounds[index] for index in node.inputs]
        if isinstance(node.operator, Activation):
            (values,) = inputs
            bounds.append(Box(node.operator.forward(values.low), node.operator.forward(values.high)))
            continue
        assert isinstance(node.operator, Affine)
        magnitudes = node.operator.absolute()
        centre = node.operator.forward(*[values.centre for values in inputs])
        radius = magnitudes.forward(*[values.radius for values in inputs])
        if magnitudes.bias is not None:
            radius = radius - magnitudes.bias.to(radius)
        bounds.append(Box(centre - radius, centre + radius))
    return bounds


def least_margins(graph: Graph, bounds: list[Box], labels: Tensor, *, through_relus: bool = False) -> Tensor:
    """Lower bounds of the margins z_y - z_j in a box: a linear bound is carried back from the logits.

    Parameters
    ----------
    graph : Graph
        With differentiable weights.
    bounds : list of Box
        Bounds of every node, by `interval_bounds`.
    labels : Tensor
        (n,) int64.
    through_relus : bool
        Whether to carry the bound through ReLUs by two lines around each, down to the pixels (CROWN-IBP); else only
        through affine operators, down to the intervals of activations (IBP).

    Returns
    -------
    Tensor
        (n, K), 0 for j = y.

    References
    ----------
    Gowal et al. 2018, section 3 (the last layer is merged with the margins); Zhang et al. 2020, sections 3.2 and 3.3,
    with the lines of Zhang et al. 2018.
    """
    count, classes = len(labels), graph.classes
    identity = torch.eye(classes, device=labels.device)
    rows = identity[labels][:, None] - identity
    lower = torch.zeros(count, classes, device=labels.device)
    # Coefficients (n * K, *shape) of nodes, the last of which comes next.
    coefficients = {len(graph.nodes) - 1: rows.reshape(count * classes, *graph.nodes[-1].shape)}
    while coefficients:
        index = max(coefficients)
        node = graph.nodes[index]
        rows = coefficients.pop(index)
        by_sample = rows.reshape(count, classes, *node.shape)
        if isinstance(node.operator, Affine):
            terms = rows * node.operator.bias.to(rows) if node.operator.bias is not None else torch.zeros_like(rows)
            inputs = node.operator.transpose(rows)
        elif through_relus and isinstance(node.operator, Relu):
            carried, terms = _through_relu(by_sample, bounds[node.inputs[0]])
            inputs = (carried.reshape(rows.shape),)
        else:
            box = bounds[index]
            terms = by_sample * box.centre[:, None] - by_sample.abs() * box.radius[:, None]
            inputs = ()
        lower = lower + terms.reshape(count, classes, -1).sum(2)
        for source, added in zip(node.inputs, inputs, strict=False):
            coefficients[source] = coefficients[source] + added if source in coefficients else added
    return lower


def _through_relu(rows: Tensor, box: Box) -> tuple[Tensor, Tensor]:
    # Linear functions of outputs as functions of inputs in a box (n, ...): coefficients (n, K, ...), and added
    # constants.
    below = (-box.low).clamp(min=0)[:, None]
    above = box.high.clamp(min=0)[:, None]
    chord = above / (above + below).clamp(min=SMALLEST_WIDTH)
    # The lower line of the smaller area: 0 or the input.
    lower = (above > below).to(rows)
    positive, negative = rows.clamp(min=0), rows.clamp(max=0)
    return positive * lower + negative * chord, negative * chord * below


@dataclass(frozen=True)
class Schedule:
    """Growth of the radius over a training of so many epochs.

    Attributes
    ----------
    epochs : int
    warmup : float
        Share of the epochs before it grows.
    ramp : float
        Share of the epochs in which it grows linearly.
    """

    epochs: int
    warmup: float
    ramp: float

    def growth(self, finished: int) -> float:
        """Share of the full radius after so many epochs, 0 to 1."""
        since_warmup = finished - self.warmup * self.epochs
        if self.ramp == 0:
            return float(since_warmup >= 0)
        return min(max(since_warmup / (self.ramp * self.epochs), 0.0), 1.0)


Margins = Callable[[Graph, Module, Tensor, Tensor, float], Tensor]
"""Lower bounds (n, K) of margins for a graph, its network, images, labels and the share of the full radius."""


def certified_objective(schedule: Schedule, margins: Margins, *, kappa: float) -> Objective:
    """Cross-entropy at the least margins, mixed with clean cross-entropy while the radius grows.

    Parameters
    ----------
    schedule : Schedule
        Growth g of the radius, from 0 to 1.
    margins : callable
        What the method bounds.
    kappa : float
        Weight of the clean cross-entropy at the full radius; on the way it is 1 - (1 - kappa) g.
    """
    epochs = torch.zeros(1, dtype=torch.int64)
    steps: TracedNetwork | None = None

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        nonlocal steps
        if steps is None:
            steps = TracedNetwork.of(network, images)
        growth = schedule.growth(int(epochs))
        graph = steps.graph(network)
        if growth == 0:
            return cross_entropy(network(images), labels).mean()
        lower = margins(graph, network, images, labels, growth)
        # log sum_j exp(z_j - z_y) is the cross-entropy.
        worst = torch.logsumexp(-lower, dim=1).mean()
        weight = 1 - (1 - kappa) * growth
        if weight == 0:
            return worst
        return weight * cross_entropy(network(images), labels).mean() + (1 - weight) * worst

    def count(end: EpochEnd) -> None:
        epochs.fill_(end.epochs)

    return Objective(loss, {"epochs": epochs}, after_epoch=count)
