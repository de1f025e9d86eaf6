"""Forward and backward passes of classifiers: their number, for the cost table, and a check of all their logits.

Imports neither numpy nor torch, since every step reports its passes, and declarations of measures use the check.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from gfscore.networks.classifier import Classifier
    from gfscore.networks.outputs import Images, Logits, Run

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_counts: Counter[str] = Counter()
_uncounted: ContextVar[bool] = ContextVar("_uncounted", default=False)


# Numbers of passes


@contextmanager
def counted(classifier: Classifier) -> Iterator[Classifier]:
    """Yield a classifier with the same logits whose passes are counted.

    `forwards` counts the images of all completed forward passes, `backwards` those of all backward passes; gradients
    of several classes from one forward pass count separately.
    """
    add({"forwards": 0, "backwards": 0})
    if classifier.network is None:
        run = classifier.run
        assert run is not None  # without a network there is a function

        def counted_run(images: Images) -> Logits:
            logits = run(images)
            _counts["forwards"] += len(images)
            return logits

        yield replace(classifier, run=counted_run)
        return

    # A hook, since attacks call the network directly.
    hook = classifier.network.register_forward_hook(_record_pass)
    try:
        yield classifier
    finally:
        hook.remove()


def counts() -> dict[str, int]:
    """Counts of this process so far, by name; empty before the first use of `counted`."""
    return dict(_counts)


def counts_since(before: Mapping[str, int]) -> dict[str, int]:
    """Counts since `counts` returned `before`, by name."""
    return {name: number - before.get(name, 0) for name, number in _counts.items()}


def add(numbers: Mapping[str, int]) -> None:
    """Add counts of an earlier process, as `counts_since` returned them there."""
    _counts.update(numbers)


@contextmanager
def uncounted() -> Iterator[None]:
    """Neither count nor check the passes of a network, as while it is traced, when there are no numbers."""
    token = _uncounted.set(True)
    try:
        yield
    finally:
        _uncounted.reset(token)


def _record_pass(_network: nn.Module, inputs: tuple[Tensor, ...], logits: object) -> None:
    if _uncounted.get():
        return
    images = inputs[0].shape[0]
    _counts["forwards"] += images
    if not getattr(logits, "requires_grad", False):
        return

    def record_gradient(_gradient: Tensor) -> None:
        _counts["backwards"] += images

    logits.register_hook(record_gradient)  # type: ignore[attr-defined]


# NaN and infinite logits. Comparisons with NaN are false, so an image with NaN logits would count as robust in one
# measure and as misclassified in another.


@contextmanager
def watched(classifier: Classifier) -> Iterator[Classifier]:
    """Yield a classifier with a check of the logits of every forward pass.

    Raises
    ------
    InputError
        At the end, or in place of another exception, if a logit was NaN or +infinity. A logit of -infinity is allowed:
        it excludes a class.
    """
    largest = _LargestLogit()
    try:
        if classifier.network is None:
            assert classifier.run is not None  # without a network there is a function
            yield replace(classifier, run=largest.watched_run(classifier.run))
        else:
            # A hook, since attacks call the network directly.
            hook = classifier.network.register_forward_hook(largest.record_pass)
            try:
                yield classifier
            finally:
                hook.remove()
    # The exception is probably a consequence of the NaN.
    except Exception as error:
        if not largest.finite():
            raise _no_finite_logits(classifier) from error
        raise
    if not largest.finite():
        raise _no_finite_logits(classifier)


def refusing_nan(
    measure_batch: Callable[Concatenate[Classifier, Arguments], Result],
) -> Callable[Concatenate[Classifier, Arguments], Result]:
    """Decorator of a function whose first argument is a Classifier: runs it under `watched`."""

    @wraps(measure_batch)
    def refusing(classifier: Classifier, *arguments: Arguments.args, **settings: Arguments.kwargs) -> Result:
        with watched(classifier) as running:
            return measure_batch(running, *arguments, **settings)

    return refusing


class _LargestLogit:
    """Largest logit so far; NaN if there was one, since maxima propagate NaN."""

    def __init__(self) -> None:
        self._tensor: Tensor | None = None
        self._number = -math.inf

    def record_pass(self, _network: nn.Module, _inputs: object, logits: object) -> None:
        if _uncounted.get():
            return

        # A pass of a network has imported it before.
        import torch

        # Other outputs are refused by the caller.
        if not isinstance(logits, torch.Tensor) or logits.is_complex() or not logits.numel():
            return
        largest = logits.detach().amax()
        if self._tensor is None:
            # A tensor created in inference mode could not be modified outside of it.
            with torch.inference_mode(False):
                self._tensor = torch.full((), -torch.inf, device=logits.device)
        # In place and on the device, so that a GPU is synchronised only once, at the end.
        torch.maximum(self._tensor, largest, out=self._tensor)

    def watched_run(self, run: Run) -> Run:
        def running(images: Images) -> Logits:
            logits = run(images)
            if logits.size:
                largest = float(logits.max())
                # NaN stays, since every comparison with it is false.
                if math.isnan(largest) or largest > self._number:
                    self._number = largest
            return logits

        return running

    def finite(self) -> bool:
        largest = self._number if self._tensor is None else float(self._tensor)
        return largest < math.inf


def _no_finite_logits(classifier: Classifier) -> InputError:
    name = classifier.architecture or type(classifier.network).__name__
    return InputError(
        f"the classifier ({name}) returns NaN or infinite logits for images of this measure (with noise, an attack or "
        "a corruption), so no class can be predicted; look for a division by 0, such as by an image's standard "
        "deviation, a logarithm of 0 or an overflow in the model, and correct it (a small constant in the divisor), or "
        "exclude the model from this measure"
    )
