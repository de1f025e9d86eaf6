"""How many images a job passed through the classifier: counts of its process, as its processor time is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from gfscore.networks.classifier import Classifier

_made: dict[str, int] = {}


@contextmanager
def counted(classifier: Classifier, *, compiled: bool = False) -> Iterator[Classifier]:
    """Yield a Classifier of which every pass is counted, whoever makes it; its logits stay as they are.

    `forwards` counts the images of every pass that came to its end, `backwards` an image once for every time that its
    logits were differentiated: where one pass serves the gradients of several classes, once for each. `compiled` says
    that the network will be given to torch.compile.
    """
    _add({"forwards": 0, "backwards": 0})
    if classifier.network is None:
        yield replace(classifier, run=_counting(classifier.run))
        return
    note = _note
    if compiled:
        import torch

        # Within the graph, a number that changes with every pass would have it compiled anew.
        note = torch.compiler.disable(note)
    # Attacks call the network itself, so it is the one place that all passes go through.
    hook = classifier.network.register_forward_hook(note)
    try:
        yield classifier
    finally:
        hook.remove()


def made() -> dict[str, int]:
    """What was counted in this process so far, number by name; empty where nothing ever was."""
    return dict(_made)


def made_since(before: Mapping[str, int]) -> dict[str, int]:
    """The same since `made` returned `before`."""
    return {name: number - before.get(name, 0) for name, number in _made.items()}


def add_kept(numbers: Mapping[str, int]) -> None:
    """Count passes that an earlier process made, as `made_since` returned them there."""
    _add(numbers)


def _add(numbers):
    for name, number in numbers.items():
        _made[name] = _made.get(name, 0) + number


def _counting(run):
    def counting(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits = run(images)
        _made["forwards"] += len(images)
        return logits

    return counting


def _note(_network, given, logits):
    images = given[0].shape[0]
    _made["forwards"] += images
    # What is no tensor, whoever asked for it refuses.
    if getattr(logits, "requires_grad", False):

        def note(_gradient: torch.Tensor) -> None:
            _made["backwards"] += images

        logits.register_hook(note)
