"""Networks in other number types than float32: attacks follow gradients in float32, the network itself answers.

What counts (an adversarial example, a distance, a targeted success) is so decided by the network as it is.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.errors import InputError
from gfscore.networks.outputs import FLOAT32
from gfscore.networks.wrappers import given_pixels

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from gfscore.networks.classifier import Classifier

CLOSE = {"float64": 1e-4, "float16": 0.05, "bfloat16": 0.2, "uint8": 0.05}
"""Largest difference between the logits of a network and of its copy in float32, relative to the largest logit, by the
number type of the network. Rounding alone causes about 1e-3 in float16 and 1e-2 in bfloat16; a copy further away would
lead attacks astray."""

COMPARED = 64
"""Images at a time that are compared."""


def number_type_of(network: torch.nn.Module) -> str:
    """Number type in which a network of `confirmed` answers, "float32" for any other network."""
    for module in _confirmed_in(network):
        return module.answers_in
    return FLOAT32


def weights_type(network: torch.nn.Module) -> str:
    """Number type of most weights of a network, by their number; "float32" for one without."""
    counts: Counter[str] = Counter()
    for value in chain(network.parameters(), network.buffers()):
        if value.is_floating_point():
            counts[str(value.dtype).removeprefix("torch.")] += value.numel()
    return counts.most_common(1)[0][0] if counts else FLOAT32


def in_float32_unless_other(network: torch.nn.Module) -> torch.nn.Module:
    """The network with all weights in float32, where most of them are; unchanged where most are of another type."""
    return network.float() if weights_type(network) == FLOAT32 else network


def taking_float32(network: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """Network that converts float32 images to the number type of its weights, where it does not take them as they are.

    `images` (n, C, H, W) float32 are shown to it to find that out.
    """
    if weights_type(network) == FLOAT32:
        return network
    values = [value for value in chain(network.parameters(), network.buffers()) if value.is_floating_point()]
    dtype = values[0].dtype
    try:
        _show(network, images.to(dtype))
    # The code of a model may raise anything; what fails either way is reported by whoever opens it.
    except Exception:
        return network
    return given_pixels(network, str(dtype).removeprefix("torch."))


def with_search_in_float32(
    network: torch.nn.Module,
    images: torch.Tensor,
    with_logits: Callable[[torch.nn.Module], torch.nn.Module] = lambda network: network,
) -> torch.nn.Module:
    """Network of float32 images and logits for one whose weights may be of another number type.

    Parameters
    ----------
    network : torch.nn.Module
        In eval mode, from images (n, C, H, W) to what it returns.
    images : Tensor
        Images (n, C, H, W) float32 that it is tried on.
    with_logits : callable
        Gives a network that returns logits for one that returns what `network` does.

    Returns
    -------
    torch.nn.Module
        For weights in another type than float32, images are converted on their way into it; its answers are those of
        `network`, its gradients those of a copy in float32. Where its code does not run in float32, the gradients are
        its own.
    """
    kind = weights_type(network)
    if kind == FLOAT32:
        return with_logits(network)
    exact = with_logits(taking_float32(network, images))
    try:
        search: Any = copy.deepcopy(network).float()
        _show(search, images)
    # The code of a model may raise anything, and that of a program may name the number type.
    except Exception:
        return confirmed(exact, exact, kind, searches_in=kind)
    return confirmed(with_logits(search), exact, kind)


def confirmed(
    search: torch.nn.Module,
    exact: torch.nn.Module | Callable[[torch.Tensor], torch.Tensor],
    number_type: str,
    *,
    made_by: str = "",
    searches_in: str = FLOAT32,
) -> torch.nn.Module:
    """Torch module with the logits of `exact` and the gradients of `search`.

    Parameters
    ----------
    search : torch.nn.Module
        From images (n, C, H, W) float32 to logits, differentiable.
    exact : torch.nn.Module or callable
        The same function in the number type of the model; not differentiated.
    number_type : str
        That type, a key of CLOSE.
    made_by : str
        Library that made `search`, in words; empty for torch itself.
    searches_in : str
        Number type of `search`.

    Returns
    -------
    torch.nn.Module
        Its logits are float32.
    """
    import torch

    class Confirmed(torch.nn.Module):
        answers_in = number_type

        def __init__(self) -> None:
            super().__init__()
            self.search = search
            # A module moves to another device with this one.
            self.exact = exact
            self.made_by = made_by
            self.searches_in = searches_in
            self.confirms = True

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if not self.confirms:
                return self.search(images)
            with torch.no_grad():
                answers = self.exact(images.detach())
            if not isinstance(answers, torch.Tensor):
                return answers
            answers = answers.float()
            if not (torch.is_grad_enabled() and images.requires_grad):
                return answers
            searched = self.search(images).float()
            # The difference is exactly 0 and has the gradient of the search.
            return answers + (searched - searched.detach())

    return Confirmed().eval()


@contextmanager
def search_alone(network: torch.nn.Module) -> Iterator[None]:
    """Have networks of `confirmed` answer as their search does."""
    modules = list(_confirmed_in(network))
    for module in modules:
        module.confirms = False
    try:
        yield
    finally:
        for module in modules:
            module.confirms = True


def search_agreement(classifier: Classifier, images: Any, logits: NDArray[np.float32], *, where: object) -> str:
    """How far the search of a network in another number type is from its logits (N, K), in words.

    Raises InputError, naming `where`, where a logit differs by more than CLOSE allows, relative to the largest.
    """
    kind = classifier.number_type
    largest = float(np.abs(logits).max())
    difference = searched_logits(classifier, images).astype(np.float64) - logits
    distance = float(np.abs(difference).max()) / (largest or 1.0)
    network: Any = classifier.network
    module = next(_confirmed_in(network))
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= CLOSE[kind]:
        raise InputError(
            f"{where}: logits in {kind} differ from those of the copy in {module.searches_in}, along whose gradients "
            f"attacks search, by {distance:.1e} of the largest logit, above {CLOSE[kind]:g}; save the model in float32"
        )
    maker = f"by {module.made_by}; " if module.made_by else ""
    return f"{maker}searched in {module.searches_in}, within {distance:.0e} of the logits in {kind}"


def number_words(classifier: Classifier) -> str:
    """In which number types a classifier answers and attacks search; empty where both are float32."""
    if classifier.number_type == FLOAT32:
        return ""
    if classifier.network is None:
        return f"numbers in {classifier.number_type}"
    module = next(_confirmed_in(classifier.network))
    return f"numbers in {module.answers_in}, attacks search in {module.searches_in}"


def searched_logits(classifier: Classifier, images: Any) -> NDArray[np.float32]:
    """Logits (N, K) of an image set by the search of a network alone."""
    network: Any = classifier.network
    with search_alone(network):
        return np.concatenate([classifier.logits(batch) for batch in images.batches(COMPARED)])


def _confirmed_in(network: torch.nn.Module) -> Iterator[Any]:
    for module in network.modules():
        if isinstance(getattr(module, "answers_in", None), str):
            yield module


def _show(network: torch.nn.Module, images: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        network(images)
