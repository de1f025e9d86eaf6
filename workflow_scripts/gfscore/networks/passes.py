"""Counts of the forward and backward passes of a process, in images, for the cost table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from gfscore.networks.classifier import Classifier

_made: Counter[str] = Counter()


@contextmanager
def counted(classifier: Classifier, *, compiled: bool = False) -> Iterator[Classifier]:
    """Yield a Classifier with the same logits whose passes are counted.

    `forwards` counts the images of all completed forward passes, `backwards` those of all backward passes; gradients
    of several classes from one forward pass count separately. `compiled`: whether the network will be compiled by
    torch.compile.
    """
    add_kept({"forwards": 0, "backwards": 0})
    if classifier.network is None:
        yield replace(classifier, run=_counting(classifier.run))
        return
    record = _record
    if compiled:
        import torch

        # A number that changes with every pass would cause recompilation.
        record = torch.compiler.disable(record)
    # A hook, since attacks call the network directly.
    hook = classifier.network.register_forward_hook(record)
    try:
        yield classifier
    finally:
        hook.remove()


def made() -> dict[str, int]:
    """Counts of this process so far, by name; empty before the first use of `counted`."""
    return dict(_made)


def made_since(before: Mapping[str, int]) -> dict[str, int]:
    """Counts since `made` returned `before`, by name."""
    return {name: number - before.get(name, 0) for name, number in _made.items()}


def add_kept(numbers: Mapping[str, int]) -> None:
    """Add counts of an earlier process, as `made_since` returned them there."""
    _made.update(numbers)


def _counting(run):
    def counting(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits = run(images)
        _made["forwards"] += len(images)
        return logits

    return counting


def _record(_network, inputs, logits):
    images = inputs[0].shape[0]
    _made["forwards"] += images
    if getattr(logits, "requires_grad", False):

        def record(_gradient: torch.Tensor) -> None:
            _made["backwards"] += images

        logits.register_hook(record)
