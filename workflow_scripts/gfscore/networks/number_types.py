"""Networks in other number types than float32: attacks follow gradients in float32, the network itself answers.

Whether something is an adversarial example, a distance or a targeted success is so decided by the network as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.outputs import FLOAT32, LabelledImages, Logits, prevailing_type
from gfscore.networks.wrappers import in_number_type

CLOSE = {"float64": 1e-4, "float16": 0.05, "bfloat16": 0.2, "uint8": 0.05}
"""Largest difference between the logits of a network and of its copy in float32, relative to the largest logit, by the
number type of the network. Rounding alone causes about 1e-3 in float16 and 1e-2 in bfloat16; a copy further away would
lead attacks astray."""

BATCH = 64
"""Images at a time that are compared."""


# Number type of a network


def weights_type(network: nn.Module) -> str:
    """Number type of most weights of a network, by their number; "float32" for one without."""
    sizes = []
    for value in _floating_values(network):
        sizes.append((type_name(value.dtype), value.numel()))
    return prevailing_type(sizes)


def in_float32_unless_other(network: nn.Module) -> nn.Module:
    """The network with all weights in float32, where most of them are; unchanged where most are of another type."""
    if weights_type(network) == FLOAT32:
        return network.float()
    return network


def taking_float32(network: nn.Module, images: Tensor) -> nn.Module:
    """Network of float32 images for one with weights in another number type.

    Parameters
    ----------
    network : nn.Module
    images : Tensor
        Images (n, C, H, W) float32 that the network is tried on. One that takes them as they are is returned unchanged.
    """
    if weights_type(network) == FLOAT32:
        return network
    dtype = next(_floating_values(network)).dtype
    try:
        with torch.no_grad():
            network(images.to(dtype))
    # The code of a model may raise anything; what fails in both number types is reported when the model is opened.
    except Exception:
        return network
    return in_number_type(network, type_name(dtype))


def _floating_values(network: nn.Module) -> Iterator[Tensor]:
    for value in chain(network.parameters(), network.buffers()):
        if value.is_floating_point():
            yield value


def type_name(dtype: torch.dtype) -> str:
    """Name of a number type without its package, "float32"."""
    return str(dtype).removeprefix("torch.")


# Networks with gradients in float32


class Confirmed(nn.Module):
    """The logits of one network and the gradients of another.

    Parameters
    ----------
    search : nn.Module
        From images (n, C, H, W) float32 to logits, differentiable.
    exact : nn.Module or callable
        The same function in the number type of the model; not differentiated.
    number_type : str
        That type, a key of CLOSE.
    made_by : str
        Library that made `search`, in words; empty for torch itself.
    searches_in : str
        Number type of `search`.
    """

    def __init__(
        self,
        search: nn.Module,
        exact: nn.Module | Callable[[Tensor], Tensor],
        number_type: str,
        *,
        made_by: str = "",
        searches_in: str = FLOAT32,
    ) -> None:
        super().__init__()
        self.search = search
        # A module moves to another device with this one.
        self.exact = exact
        self.answers_in = number_type
        self.made_by = made_by
        self.searches_in = searches_in
        self.confirms = True

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, K) float32 of images (n, C, H, W) float32."""
        if not self.confirms:
            return self.search(images)
        with torch.no_grad():
            answers = self.exact(images.detach())
        if not isinstance(answers, Tensor):
            return answers
        answers = answers.float()
        if not (torch.is_grad_enabled() and images.requires_grad):
            return answers
        searched = self.search(images).float()
        # The difference is exactly 0 and has the gradient of the search.
        return answers + (searched - searched.detach())


def confirmed(
    search: nn.Module,
    exact: nn.Module | Callable[[Tensor], Tensor],
    number_type: str,
    *,
    made_by: str = "",
    searches_in: str = FLOAT32,
) -> Confirmed:
    """Network in eval mode with the logits of `exact` and the gradients of `search`; parameters as of `Confirmed`."""
    network = Confirmed(search, exact, number_type, made_by=made_by, searches_in=searches_in)
    return network.eval()


def with_search_in_float32(
    network: nn.Module, images: Tensor, with_logits: Callable[[nn.Module], nn.Module]
) -> nn.Module:
    """Network of float32 images and logits for one whose weights may be of another number type.

    Parameters
    ----------
    network : nn.Module
        In eval mode, from images (n, C, H, W) to what it returns.
    images : Tensor
        Images (n, C, H, W) float32 that it is tried on.
    with_logits : callable
        Makes a network of logits from one that returns what `network` does.

    Returns
    -------
    nn.Module
        For weights in another type than float32, images are converted on their way into it; its answers are those of
        `network`, its gradients those of a copy in float32. Where its code does not run in float32, the gradients are
        its own.
    """
    number_type = weights_type(network)
    if number_type == FLOAT32:
        return with_logits(network)
    exact = with_logits(taking_float32(network, images))
    try:
        search = copy.deepcopy(network).float()
        with torch.no_grad():
            search(images)
    # The code of a model may raise anything, and that of a program may name the number type.
    except Exception:
        return confirmed(exact, exact, number_type, searches_in=number_type)
    return confirmed(with_logits(search), exact, number_type)


def number_type_of(network: nn.Module) -> str:
    """Number type in which a network of `confirmed` answers, "float32" for any other network."""
    modules = _confirmed_in(network)
    return modules[0].answers_in if modules else FLOAT32


@contextmanager
def search_alone(network: nn.Module) -> Iterator[None]:
    """Let networks of `confirmed` answer as their search does."""
    modules = _confirmed_in(network)
    for module in modules:
        module.confirms = False
    try:
        yield
    finally:
        for module in modules:
            module.confirms = True


def _confirmed_in(network: nn.Module | None) -> list[Confirmed]:
    if network is None:
        return []
    return [module for module in network.modules() if isinstance(module, Confirmed)]


# Agreement of both


def search_agreement(classifier: Classifier, images: LabelledImages, logits: Logits, *, where: object) -> str:
    """How far the search of a network in another number type is from its logits, in words.

    Parameters
    ----------
    classifier : Classifier
        Its network is one of `confirmed`.
    images : LabelledImages
    logits : ndarray
        Its logits (N, K) for them.
    where : object
        The model, for messages.

    Raises
    ------
    InputError
        Where a logit differs by more than CLOSE allows, relative to the largest.
    """
    number_type = classifier.number_type
    largest = float(np.abs(logits).max())
    difference = searched_logits(classifier, images).astype(np.float64) - logits
    distance = float(np.abs(difference).max()) / (largest or 1.0)
    module = _confirmed_in(classifier.network)[0]
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= CLOSE[number_type]:
        raise InputError(
            f"{where}: logits in {number_type} differ from those of the copy in {module.searches_in}, along whose "
            f"gradients attacks search, by {distance:.1e} of the largest logit, above {CLOSE[number_type]:g}; save the "
            "model in float32"
        )
    maker = f"by {module.made_by}; " if module.made_by else ""
    return f"{maker}searched in {module.searches_in}, within {distance:.0e} of the logits in {number_type}"


def number_words(classifier: Classifier) -> str:
    """In which number types a classifier answers and attacks search; empty where both are float32."""
    if classifier.number_type == FLOAT32:
        return ""
    if classifier.network is None:
        return f"numbers in {classifier.number_type}"
    module = _confirmed_in(classifier.network)[0]
    return f"numbers in {module.answers_in}, attacks search in {module.searches_in}"


def searched_logits(classifier: Classifier, images: LabelledImages) -> Logits:
    """Logits (N, K) of an image set by the search of a network alone."""
    assert classifier.network is not None  # only networks have a search
    with search_alone(classifier.network):
        return np.concatenate([classifier.logits(batch) for batch in images.batches(BATCH)])
