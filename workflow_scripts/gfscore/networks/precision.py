"""Faster arithmetic than float32 for logits, and how far its results are from float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.statistics.margins import ACTIVATIONS, predictions, scores

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

FULL = "float32"
PRECISIONS = (FULL, "tf32", "bfloat16")
"""Arithmetic by name: tf32 rounds the factors of products to 10 bits on a GPU, bfloat16 most numbers to 8 bits."""

DRIFT_SAMPLES = 256


@contextmanager
def faster(classifier: Classifier, *, precision: str, compiled: bool, device: str) -> Iterator[Classifier]:
    """Yield the classifier to run: in the named precision, and compiled by torch.compile where asked for.

    Takes a Classifier whose network is on the device ("cpu" or "cuda"); one without a network is yielded as
    it is. The network is left as it was. Raises InputError for an unknown precision, and for tf32 without a GPU.
    """
    import torch

    if precision not in PRECISIONS:
        raise InputError(unknown("precision", precision, PRECISIONS))
    if classifier.network is None or (precision == FULL and not compiled):
        yield classifier
        return
    if precision == "tf32" and device == "cpu":
        raise InputError("inference: precision: tf32 exists on CUDA devices only; choose float32 or bfloat16")
    own: Any = classifier.network
    network: Any = torch.compile(own) if compiled else own
    # The layout that matrix units multiply without rearranging; in float32 it would only change the rounding.
    layouts = {True: torch.channels_last, False: torch.contiguous_format}
    try:
        own.to(memory_format=layouts[precision != FULL])
        with (
            tensor_float(precision == "tf32"),
            torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"),
        ):
            yield replace(classifier, network=network)
    finally:
        own.to(memory_format=torch.contiguous_format)


@contextmanager
def tensor_float(allowed: bool) -> Iterator[None]:
    """Allow or forbid TensorFloat-32 in products and convolutions on a GPU; restore what was set."""
    import torch

    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def drift_rows(n: int) -> NDArray[np.int64]:
    """Rows of the samples that are computed twice, (m,) ascending, m <= DRIFT_SAMPLES, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, DRIFT_SAMPLES).astype(np.int64))


def drift(
    exact: NDArray[np.float32], faster_logits: NDArray[np.float32], labels: NDArray[np.integer]
) -> dict[str, str]:
    """How far logits (m, K) are from those in float32, as text for a logits file's identity.

    Number of samples, largest difference of a logit, of the attack-free score at T = 1 by activation, and the share of
    predictions that changed; `labels` (m,).
    """
    pair = (exact, faster_logits)
    found = {
        "drift_samples": len(labels),
        "drift_logit": np.abs(np.subtract(*pair, dtype=np.float64)).max(),
        "drift_predictions": np.not_equal(*(predictions(logits, labels) for logits in pair)).mean(),
    }
    for activation in ACTIVATIONS:
        values = (scores(logits, labels, activation=activation) for logits in pair)
        found[f"drift_great_{activation}"] = np.abs(np.subtract(*values)).max()
    return {name: f"{value:.6g}" for name, value in found.items()}
