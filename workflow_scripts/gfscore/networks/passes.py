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
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import torch

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


# Detection of NaN and infinite logits in the forward passes of a measure. Comparisons with NaN are false, so an
# image with NaN logits would count as robust in one measure and as misclassified in another.


@contextmanager
def watched(classifier: Classifier) -> Iterator[Classifier]:
    """Yield the Classifier with a check of the logits of every forward pass.

    Raises InputError at the end, or in place of another exception, if a logit was NaN or +infinity. A logit of
    -infinity is allowed: it excludes a class.
    """
    largest = _Largest()
    if classifier.network is None:
        assert classifier.run is not None  # without a network there is a function
        running, hook = replace(classifier, run=largest.of_function(classifier.run)), None
    else:
        # A hook, since attacks call the network directly.
        running, hook = classifier, classifier.network.register_forward_hook(largest.of_pass)
    try:
        yield running
    # The exception is probably a consequence of the NaN.
    except Exception as error:
        if not largest.finite():
            raise _refused(classifier) from error
        raise
    finally:
        if hook is not None:
            hook.remove()
    if not largest.finite():
        raise _refused(classifier)


def refusing_nan(measure_batch: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function whose first argument is a Classifier: runs it under `watched`."""

    @wraps(measure_batch)
    def refusing(classifier: Classifier, *arguments: Any, **settings: Any) -> Any:
        with watched(classifier) as running:
            return measure_batch(running, *arguments, **settings)

    return refusing


class _Largest:
    """Largest logit so far; NaN if there was one, since maxima propagate NaN."""

    def __init__(self) -> None:
        self._value: Any = None

    def of_pass(self, _network: torch.nn.Module, _inputs: object, logits: Any) -> None:
        import torch

        # Other outputs are refused by the caller.
        if not isinstance(logits, torch.Tensor) or logits.is_complex() or not logits.numel():
            return
        largest = logits.detach().amax()
        if self._value is None:
            # A tensor created in inference mode could not be modified outside of it.
            with torch.inference_mode(False):
                self._value = torch.full((), -torch.inf, device=logits.device)
        # In place and on the device, so that a GPU is synchronised only once, at the end.
        torch.maximum(self._value, largest, out=self._value)

    def of_function(
        self, run: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    ) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        def running(images: NDArray[np.float32]) -> NDArray[np.float32]:
            logits = run(images)
            if np.size(logits):
                self._value = np.maximum(-np.inf if self._value is None else self._value, np.max(logits))
            return logits

        return running

    def finite(self) -> bool:
        return self._value is None or float(self._value) < np.inf


def _refused(classifier):
    name = classifier.architecture or type(classifier.network).__name__
    return InputError(
        f"the classifier ({name}) returns NaN or infinite logits for images of this measure (with noise, an attack or "
        "a corruption), so no class can be predicted; look for a division by 0, such as by an image's standard "
        "deviation, a logarithm of 0 or an overflow in the model, and correct it (a small constant in the divisor), or "
        "exclude the model from this measure"
    )
