"""A network in the form that attacks of public libraries take, so that they leave no trace in it or in torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gfscore.attacks.search import no_gradient

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


@contextmanager
def as_library_expects(network: Module, *, seed: int) -> Iterator[Any]:
    """Give the network as a module whose attribute `images` counts the images passed through it.

    The libraries call backward(), which would leave gradients in the parameters, and draw from torch's global
    generator: meanwhile no parameter takes gradients, and the generator starts at `seed`. Both are restored. Raises
    InputError where a library asks for gradients that the network does not have.
    """
    import torch

    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        # Of one GPU only: by default the states of all of them are copied.
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield _counted(network)
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def _without_overflow(gradient):
    return gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def _counted(network):
    import torch

    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.images = network, 0

        def forward(self, x: Tensor) -> Tensor:
            self.images += len(x)
            logits = self.network(x).float()
            if x.requires_grad and torch.is_grad_enabled():
                # No weight takes gradients here, so that the logits do only along the image.
                if not logits.requires_grad:
                    raise no_gradient()
                # As in gfscore.attacks.search: what overflowed leads nowhere, and must not spread to the pixels.
                x.register_hook(_without_overflow)
            return logits

    return Counted().eval()
