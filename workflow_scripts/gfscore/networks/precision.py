"""Arithmetic faster than float32 for logits, and its deviation from float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.margins import ACTIVATIONS, predictions, scores

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

FULL = "float32"
"""Other precisions are tf32, which rounds factors to 10 bits on a GPU, and bfloat16, which rounds numbers to 8 bits."""

DRIFT_SAMPLES = 256
"""Number of samples that are computed in float32 too, spread over all."""


@contextmanager
def faster(classifier: Classifier, *, precision: str, compiled: bool, device: str) -> Iterator[Classifier]:
    """Yield the classifier in a given precision, and compiled by torch.compile if `compiled`.

    Takes a Classifier whose network is on the device ("cpu" or "cuda"); one without a network is yielded unchanged. The
    network is restored afterwards. Raises InputError for tf32 without a GPU.
    """
    import torch

    if classifier.network is None or (precision == FULL and not compiled):
        yield classifier
        return
    if precision == "tf32" and device == "cpu":
        raise InputError("inference: precision: tf32 exists on CUDA devices only; choose float32 or bfloat16")
    original: Any = classifier.network
    network: Any = torch.compile(original) if compiled else original
    # The memory layout that matrix units use directly; in float32 it would only change the rounding.
    layouts = {True: torch.channels_last, False: torch.contiguous_format}
    try:
        original.to(memory_format=layouts[precision != FULL])
        with (
            tensor_float(precision == "tf32"),
            torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"),
        ):
            yield replace(classifier, network=network)
    finally:
        original.to(memory_format=torch.contiguous_format)


@contextmanager
def tensor_float(allowed: bool) -> Iterator[None]:
    """Allow or forbid TensorFloat-32 in products and convolutions on a GPU; restore the settings afterwards."""
    import torch

    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def drift(
    exact: NDArray[np.float32], faster_logits: NDArray[np.float32], labels: NDArray[np.integer]
) -> dict[str, str]:
    """Deviation of logits (m, K) from the `exact` ones in float32, as texts for the identity of a logits file.

    Number of samples, largest difference of a logit, share of changed predictions, and largest difference of the
    attack-free score at T = 1 for each activation; `labels` (m,).
    """
    pair = (exact, faster_logits)
    values = {
        "drift_samples": len(labels),
        "drift_logit": np.abs(np.subtract(*pair, dtype=np.float64)).max(),
        "drift_predictions": np.not_equal(*(predictions(logits, labels) for logits in pair)).mean(),
    }
    for activation in ACTIVATIONS:
        great = (scores(logits, labels, activation=activation) for logits in pair)
        values[f"drift_great_{activation}"] = np.abs(np.subtract(*great)).max()
    return {name: f"{value:.6g}" for name, value in values.items()}
