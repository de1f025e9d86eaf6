"""Networks in other number types than float32: logits are their own, attacks follow gradients of a copy in float32.

So the network as it is decides what is an adversarial example, how far it is away, and whether its target is reached.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.batches import in_batches
from gfscore.networks.classifier import Classifier
from gfscore.networks.outputs import FLOAT32, LabelledImages, Logits, prevailing_type
from gfscore.networks.precision import tensor_float
from gfscore.networks.wrappers import in_number_type

CLOSE = {"float64": 1e-4, "float16": 0.05, "bfloat16": 0.2, "uint8": 0.05}
"""Largest difference between the logits of a network and of its copy in float32, relative to the largest logit, by the
number type of the network. Rounding alone causes about 1e-3 in float16 and 1e-2 in bfloat16; a copy further away would
lead attacks astray."""

BATCH = 64
"""Images at a time that are compared."""


# Number type of a network


def weights_type(network: nn.Module) -> str:
    """Number type of most numbers in a network's weights and buffers; "float32" for a network without."""
    sizes = []
    for value in _floating_values(network):
        sizes.append((type_name(value.dtype), value.numel()))
    return prevailing_type(sizes)


def all_in_float32_where_most(network: nn.Module) -> nn.Module:
    """The network with all weights in float32, where most of them are; unchanged where most are of another type."""
    if weights_type(network) == FLOAT32:
        return network.float()
    return network


def with_float32_images(network: nn.Module, images: Tensor) -> nn.Module:
    """Network of float32 images for one with weights in another number type.

    Parameters
    ----------
    network : nn.Module
        One with most weights in float32 is returned unchanged.
    images : Tensor
        Images (n, C, H, W) float32 that the network is tried on.

    Returns
    -------
    nn.Module
        Images are converted on their way into the network, to the type of its first weight, with which it is taken to
        begin. Where the network fails on such images, it is returned unchanged: its code may convert float32 images.
    """
    if weights_type(network) == FLOAT32:
        return network
    dtype = next(_floating_values(network)).dtype
    try:
        with torch.no_grad():
            network(images.to(dtype))
    # The code of a model may raise anything; one that fails on float32 images too is refused when it is opened.
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


class NetworkWithSearch(nn.Module):
    """The logits of a network with the gradients of a copy of it, by which attacks search; in eval mode.

    Parameters
    ----------
    search : nn.Module
        The copy: from images (n, C, H, W) float32 to logits, differentiable.
    exact : nn.Module or callable
        The network in its own number type; not differentiated.
    number_type : str
        Number type of `exact`, a key of CLOSE.
    converter : str
        Library that made `search`, in words; empty for torch itself.
    search_type : str
        Number type of `search`.
    """

    def __init__(
        self,
        search: nn.Module,
        exact: nn.Module | Callable[[Tensor], Tensor],
        number_type: str,
        *,
        converter: str = "",
        search_type: str = FLOAT32,
    ) -> None:
        super().__init__()
        self.search = search
        # A module moves to another device with this one.
        self.exact = exact
        self.number_type = number_type
        self.converter = converter
        self.search_type = search_type
        self.search_alone = False
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, K) float32 of images (n, C, H, W) float32.

        What is not a tensor is returned as it is, so that opening the network can refuse it.
        """
        if self.search_alone:
            return self.search(images)
        with torch.no_grad():
            logits = self.exact(images.detach())
        if not isinstance(logits, Tensor):
            return logits
        logits = logits.float()
        if not (torch.is_grad_enabled() and images.requires_grad):
            return logits
        searched = self.search(images).float()
        # Exactly 0, with the gradient of the search; also where the search is infinite, whose difference would be NaN.
        zeros = (searched - searched.detach()).nan_to_num()
        return logits + zeros


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
        Where most weights are of another type than float32, images are converted on their way into the network; logits
        are its own, gradients those of a copy in float32, or its own where its code does not run in float32.
    """
    number_type = weights_type(network)
    if number_type == FLOAT32:
        return with_logits(network)
    exact = with_logits(with_float32_images(network, images))
    try:
        search = copy.deepcopy(network).float()
        with torch.no_grad():
            search(images)
    # The code of a model may raise anything, and the code of a program may name the number type.
    except Exception:
        return NetworkWithSearch(exact, exact, number_type, search_type=number_type)
    return NetworkWithSearch(with_logits(search), exact, number_type)


def number_type_of(network: nn.Module) -> str:
    """Number type of the logits of a network with a search, "float32" for any other network."""
    modules = _networks_with_search(network)
    return modules[0].number_type if modules else FLOAT32


@contextmanager
def search_alone(network: nn.Module) -> Iterator[None]:
    """Let every `NetworkWithSearch` in a network return the logits of its search."""
    modules = _networks_with_search(network)
    for module in modules:
        module.search_alone = True
    try:
        yield
    finally:
        for module in modules:
            module.search_alone = False


def _networks_with_search(network: nn.Module | None) -> list[NetworkWithSearch]:
    if network is None:
        return []
    return [module for module in network.modules() if isinstance(module, NetworkWithSearch)]


# Agreement of network and search


def search_agreement(classifier: Classifier, searched: Logits, logits: Logits, *, where: object) -> str:
    """Difference between the float32 copy that attacks search with and the logits of a network, in words.

    Parameters
    ----------
    classifier : Classifier
        Its network has a search.
    searched, logits : ndarray
        Logits (N, K) of the same images by the search alone, and by the network as it is.
    where : object
        The model, for messages.

    Raises
    ------
    InputError
        Where a logit differs by more than CLOSE allows, relative to the largest.
    """
    number_type = classifier.number_type
    largest = float(np.abs(logits).max())
    difference = searched.astype(np.float64) - logits
    distance = float(np.abs(difference).max()) / (largest or 1.0)
    module = _networks_with_search(classifier.network)[0]
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= CLOSE[number_type]:
        raise InputError(
            f"{where}: logits in {number_type} differ from those of the copy in {module.search_type}, along whose "
            f"gradients attacks search, by {distance:.1e} of the largest logit, above {CLOSE[number_type]:g}; save the "
            "model in float32"
        )
    maker = f"by {module.converter}; " if module.converter else ""
    return f"{maker}searched in {module.search_type}, within {distance:.0e} of the logits in {number_type}"


def number_words(classifier: Classifier) -> str:
    """Number types of a classifier's logits and of the search of attacks, in words; empty where both are float32."""
    if classifier.number_type == FLOAT32:
        return ""
    if classifier.network is None:
        return f"numbers in {classifier.number_type}"
    module = _networks_with_search(classifier.network)[0]
    return f"numbers in {module.number_type}, attacks search in {module.search_type}"


def searched_logits(classifier: Classifier, images: LabelledImages) -> Logits:
    """Logits (N, K) of an image set by the search of a network alone."""
    assert classifier.network is not None  # only networks have a search
    logits = []
    size = BATCH
    with search_alone(classifier.network), tensor_float(allowed=False):
        for batch in images.batches(BATCH):
            blocks, size = in_batches(classifier.logits, batch, size)
            logits += blocks
    return np.concatenate(logits)
