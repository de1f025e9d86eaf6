"""Networks as graphs of operators that have bounds."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from gfscore.core.errors import InputError
from gfscore.networks.devices import device_of_weights
from gfscore.networks.number_types import type_name
from gfscore.networks.outputs import first_line
from gfscore.networks.passes import uncounted
from gfscore.networks.precision import tensor_float
from gfscore.proofs.checking.plain_network import PlainNode, digest_of
from gfscore.proofs.checking.rounding import FLOAT32
from gfscore.proofs.operators import READERS
from gfscore.proofs.operators.declaration import Activation, Affine, Builder, Call, Node, Plain, Shape, Symbol
from gfscore.proofs.operators.elementwise import Sum

FEWEST_IMAGES, MOST_IMAGES = 4, 32
"""Images on which a network and its graph are compared."""

NUMBERS = 20_000_000
"""Numbers of all tensors of a graph for all images of a comparison, beyond which there are fewer images."""

EVERY_ALONE = 4
"""Of these images, the first of every so many is also given to the network by itself."""

SPREAD_TOLERANCE = 1e-4
"""Largest difference between logits of a network and of its graph, against the spread of a logit over the images."""

ROUNDING_TOLERANCE = 32
"""Largest such difference against rounding errors in float32, which a device's algorithms may enlarge."""

READING_NUMBERS = (Tensor.numpy, Tensor.__array__, Tensor.__dlpack__)
"""Functions that hand the numbers of a tensor to another library."""


@dataclass(frozen=True)
class Graph:
    """A network as operators in the order in which they are computed; the last one gives the logits.

    Attributes
    ----------
    nodes : tuple of Node
        The first is the image; shapes are those for a batch of one.
    """

    nodes: tuple[Node, ...]

    @property
    def image_shape(self) -> Shape:
        """(C, H, W)."""
        return self.nodes[0].shape[1:]

    @property
    def classes(self) -> int:
        """Number of logits."""
        return self.nodes[-1].shape[-1]

    def logits(self, images: Tensor) -> Tensor:
        """Logits (n, K) of images (n, C, H, W), in their number type; differentiable."""
        values = [images[:, None]]
        for node in self.nodes[1:]:
            assert isinstance(node.operator, Affine | Activation)
            inputs = [values[index] for index in node.inputs]
            values.append(node.operator.forward(*inputs))
        return values[-1].reshape(len(images), -1)

    def plain(self) -> list[PlainNode]:
        """The operators as names and numbers, for the checker."""
        result = []
        for node in self.nodes:
            plain = node.operator.plain() if node.operator else Plain("image")
            result.append(PlainNode(plain.kind, plain.arrays, plain.numbers, node.inputs, node.shape))
        return result

    @cached_property
    def digest(self) -> str:
        """SHA-256 of operators and weights."""
        return digest_of(self.plain())


def graph_of(network: nn.Module, image_shape: Shape) -> Graph:
    """Graph of a network, as torch traces it for one image.

    Parameters
    ----------
    network : Module
        From images (n, C, H, W) in [0, 1] to logits (n, K), in eval mode, with weights of float32 or smaller types.
    image_shape : tuple of int
        (C, H, W).

    Returns
    -------
    Graph
        The same function in real arithmetic, with the network's weights.

    Raises
    ------
    InputError
        For an operator without bounds, which it names, for one that does not compute in float32, for a network that
        cannot be traced, as one is whose steps depend on the values of pixels, and for one that answers otherwise than
        its graph.
    """
    pixels = torch.Size(image_shape).numel()
    image = torch.linspace(0, 1, pixels).reshape(1, *image_shape)
    graph = _read(network, image)

    # What a tracer does not see, such as steps of another thread, becomes a constant: of one image, and not of another.
    other_image = _varied_images(image_shape, 1)
    same = graph.digest == _read(network, other_image).digest and _same_function(network, graph, image)
    if not same:
        raise InputError(
            "there are no bounds for this network: traced for one image, it answers otherwise on some; make it compute "
            "the same function in eval mode every time, in batches too, by steps that do not depend on the values of "
            "pixels"
        )
    return graph


def _read(network: nn.Module, image: Tensor) -> Graph:
    def forward(images: Tensor) -> Tensor:
        # With the hooks of the network, which may change its logits, but for those that count passes.
        with uncounted():
            return network(images)

    steps = traced(forward, image.to(device_of_weights(network)))
    return Graph(tuple(nodes_of(steps, tuple(image.shape))))


def _same_function(network: nn.Module, graph: Graph, traced_image: Tensor) -> bool:
    # Whether a network answers as its graph, up to rounding, for images in a batch and for some of them alone.
    numbers = sum(torch.Size(node.shape).numel() for node in graph.nodes)
    count = min(max(NUMBERS // numbers, FEWEST_IMAGES), MOST_IMAGES)
    images = torch.cat([traced_image, _varied_images(graph.image_shape, count - 1)])
    device = device_of_weights(network)

    with torch.no_grad(), tensor_float(allowed=False):
        expected = graph.logits(images.double())
        rounded = graph.logits(images).double()
        logits_alone = [network(image[None].to(device)) for image in images[::EVERY_ALONE]]
        try:
            logits = network(images.to(device))
        except Exception:  # of a network that takes one image at a time
            logits = torch.cat([network(image[None].to(device)) for image in images])

    # Each logit against its own size, as another may be larger by far.
    spread = expected.amax(0) - expected.amin(0)
    rounding = (rounded - expected).abs().amax(0) + FLOAT32.unit * expected.abs().amax(0)
    tolerance = SPREAD_TOLERANCE * spread + ROUNDING_TOLERANCE * rounding
    for values, wanted in ((logits, expected), (torch.cat(logits_alone), expected[::EVERY_ALONE])):
        rows = values.double().cpu().reshape(len(values), -1)
        if rows.shape != wanted.shape or not ((rows - wanted).abs() <= tolerance).all():
            return False
    return True


def _varied_images(shape: Shape, count: int) -> Tensor:
    # From dark to bright, by turns with any pixels and with pixels of 0 and 1 alone.
    noise = torch.rand(count, *shape, generator=torch.Generator().manual_seed(0))
    brightness = torch.linspace(0, 1, count).reshape(-1, 1, 1, 1)
    images = noise.lerp(brightness, 0.5)
    images[1::2] = (noise < brightness)[1::2].to(noise)
    return images


class _NumbersUnread(TorchFunctionMode):
    """Keeps numbers of traced tensors from other libraries, for which torch would hand out any memory."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in READING_NUMBERS and torch._is_functional_tensor(args[0]):
            raise TypeError(f"it calls {function.__name__} of a tensor")
        return function(*args, **(kwargs or {}))


def traced(forward: Callable[..., Tensor], *arguments: Tensor) -> fx.GraphModule:
    """Steps of a network as torch traces them for an image, the first argument, and perhaps its weights.

    Raises
    ------
    InputError
        For a network that cannot be traced.
    """
    try:
        with torch.no_grad(), _NumbersUnread():
            return make_fx(functionalize(forward, remove="mutations"))(*arguments)
    except Exception as error:
        raise InputError(
            f"there are no bounds for this network: torch cannot trace it ({first_line(error)}); give a network whose "
            "steps do not depend on the values of pixels"
        ) from error


def nodes_of(steps: fx.GraphModule, shape: Shape, weights: Sequence[Tensor] = ()) -> list[Node]:
    """Operators of a traced network for images of a shape; further arguments of the trace are weights."""
    builder = Builder([Node(None, (), shape)])
    values: dict[fx.Node, Any] = {}
    arguments: list[Any] = [Symbol(0, shape), *weights]
    for step in steps.graph.nodes:
        if step.op == "placeholder":
            values[step] = arguments[len(values)]
        elif step.op == "get_attr":
            values[step] = getattr(steps, step.target).detach().cpu()
        elif step.op == "output":
            logits = fx.map_arg(step.args[0], lambda node: values[node])
        else:
            values[step] = _value(builder, step, values)
    if not isinstance(logits, Symbol):
        raise InputError("there are no bounds for this network: what it returns does not depend on the image")
    # The image or an earlier tensor may be what it returns.
    if logits.node != len(builder.nodes) - 1:
        builder.add(Sum((1.0,)), [logits], logits.shape)
    return builder.nodes


def _value(builder: Builder, step: fx.Node, values: dict[fx.Node, Any]) -> Any:
    # A tensor where nothing depends on the image, else what the graph has for it.
    target: Any = step.target
    arguments: Any = fx.map_arg(step.args, lambda node: values[node])
    keywords: Any = fx.map_arg(step.kwargs, lambda node: values[node])
    # Weights were brought to the CPU, so what the network makes on its device is made there too.
    if "device" in keywords:
        keywords = keywords | {"device": "cpu"}
    name = str(target).removeprefix("aten.").split(".")[0]
    if torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
        raise InputError(
            f"there are no bounds for the operator {name}, which draws random numbers; make the network compute the "
            "same function in eval mode every time"
        )
    symbolic = any(isinstance(values[node], Symbol | list) for node in step.all_input_nodes)
    if not symbolic:
        return _without_unwritten(name, target(*arguments, **keywords))
    if target is operator.getitem:
        value, index = arguments
        if isinstance(value, list):
            return value[index]
        # Of several outputs, the others (indices of the largest numbers, means of batches) have no bounds.
        return value if index == 0 else None

    if target not in READERS:
        raise InputError(
            f"there are no bounds for the operator {name}; replace it by one of those in docs/proven.md, or leave this "
            "model out of the measure `proven` and of certified training"
        )
    output = step.meta["val"]
    if isinstance(output, tuple | list):
        output = output[0]
    # Every argument by its name, with the defaults of torch.
    arguments_by_name = {}
    for position, argument in enumerate(target._schema.arguments):
        if position < len(arguments):
            arguments_by_name[argument.name] = arguments[position]
        else:
            arguments_by_name[argument.name] = keywords.get(argument.name, argument.default_value)
    result = READERS[target].read(builder, Call(name, arguments_by_name, tuple(output.shape), target))
    if not isinstance(result, Tensor) and output.dtype != torch.float32:
        # Numbers of Python would be rounded otherwise.
        raise InputError(
            f"there are no bounds for this network: its operator {name} computes in {type_name(output.dtype)}; make it "
            "compute in float32, with buffers and constants of float32"
        )
    return _without_unwritten(name, result)


def _without_unwritten(name: str, value: Any) -> Any:
    # New memory holds any numbers. With NaN in their place, logits that depend on them are not those of the network.
    if name.startswith(("empty", "new_empty")) and value.is_floating_point():
        return torch.full_like(value, torch.nan)
    return value
