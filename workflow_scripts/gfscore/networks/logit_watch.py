"""Whether every pass of a measure gave numbers: of NaN and infinite logits no class follows.

NaN compares as false with everything, so that it would pass for a robust image in one measure and for a wrong one in
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier


@contextmanager
def watched(classifier: Classifier) -> Iterator[Classifier]:
    """Yield a Classifier whose logits are looked at in every pass, whoever makes it; they stay as they are.

    Raises InputError at the end, or in place of any exception in between, where a logit was NaN or +infinity. -infinity
    is a class that is ruled out.
    """
    largest = _Largest()
    if classifier.network is None:
        assert classifier.run is not None  # what has no network has a function
        running, hook = replace(classifier, run=largest.of_function(classifier.run)), None
    else:
        # Attacks call the network itself, so it is the one place that all passes go through.
        running, hook = classifier, classifier.network.register_forward_hook(largest.of_pass)
    try:
        yield running
    # Whatever it is, it may well come of what is no number, which says more.
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
    """Function like `measure_batch`, whose first argument is a classifier, that refuses as `watched` does."""

    @wraps(measure_batch)
    def refusing(classifier: Classifier, *given: Any, **settings: Any) -> Any:
        with watched(classifier) as running:
            return measure_batch(running, *given, **settings)

    return refusing


class _Largest:
    """Largest logit so far: NaN once there was one, since a maximum hands it on."""

    def __init__(self) -> None:
        self._value: Any = None

    def of_pass(self, _network: torch.nn.Module, _given: object, logits: Any) -> None:
        import torch

        # What is no tensor, or complex, whoever asked for it refuses.
        if not isinstance(logits, torch.Tensor) or logits.is_complex() or not logits.numel():
            return
        largest = logits.detach().amax()
        if self._value is None:
            # A tensor of inference mode could not be changed outside it.
            with torch.inference_mode(False):
                self._value = torch.full((), -torch.inf, device=logits.device)
        # In place and on the device: a GPU is waited for once, at the end.
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
        f"the classifier ({name}) gives logits that are NaN or infinite for images that this measure made of the data "
        "(by noise, an attack or a corruption): no class follows from them; look for a division by what can be 0, such "
        "as an image's own standard deviation, a logarithm or an overflow in the model, and mend it (a small constant "
        "in the divisor), or take the model out of this measure"
    )
