"""Arithmetic faster than float32 for logits, and its deviation from float32."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.wrappers import around
from gfscore.statistics.margins import ACTIVATIONS, predictions, scores

if TYPE_CHECKING:
    import torch

FULL, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
"""Precisions: tf32 rounds factors to 10 bits on a GPU, bfloat16 rounds numbers to 8 bits."""

TF32_CAPABILITY = 8
"""Least compute capability of a GPU with TF32."""

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


def search_precision(setting: str, classifier: Classifier, *, device: str) -> str:
    """Arithmetic in which attacks on a classifier search.

    Parameters
    ----------
    setting : str
        `inference: search`: "auto", "float32", "tf32" or "bfloat16".
    classifier : Classifier
        One in another number type than float32 answers in that type and searches in float32, whatever the setting.
    device : str
        Where its network is, "cpu" or "cuda".

    Returns
    -------
    str
        "float32", "tf32" or "bfloat16"; for "auto" tf32 on a GPU that has it, else float32.

    Raises
    ------
    InputError
        For tf32 where the network runs on a device that does not have it.
    """
    if classifier.network is None or classifier.number_type != FULL:
        return FULL
    if setting == "auto":
        return TF32 if _has_tf32(device) else FULL
    if setting == TF32 and not _has_tf32(device):
        raise InputError(
            f"inference: search: tf32, but this model runs on a device without TF32 ({device}); write search: auto, "
            "which takes TF32 where there is some, or device: cuda beside it on a machine with a GPU that has TF32"
        )
    return setting


def _has_tf32(device: str) -> bool:
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability()[0] >= TF32_CAPABILITY


@contextmanager
def search_arithmetic(network: torch.nn.Module, precision: str) -> Iterator[torch.nn.Module]:
    """Yield a network with the same weights whose passes are in a given precision, with logits in float32.

    Parameters
    ----------
    network : torch.nn.Module
        From images (n, C, H, W) float32 to logits (n, K).
    precision : str
        "float32", "tf32" or "bfloat16". Only its own passes, forward and backward, are in bfloat16; what an attack
        computes beside them stays in float32. TF32 holds for everything until the context ends.
    """
    if precision != BFLOAT16:
        with tensor_float(precision == TF32):
            yield network
        return
    import torch

    def in_bfloat16(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(images.device.type, dtype=torch.bfloat16):
            logits: torch.Tensor = network(images)
        return logits.float()

    yield around(network, in_bfloat16)


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


@contextmanager
def reproducible_arithmetic(*, threads: int = 1) -> Iterator[None]:
    """Run torch in plain float32 with deterministic kernels and a fixed number of threads; restore the settings after.

    The number of threads changes the order of sums, and training amplifies the differences; for small networks one
    thread is also the fastest. TensorFloat-32, a GPU's default for convolutions, has only 10 bits of mantissa. The
    environment variable for deterministic matrix products on a GPU remains set.
    """
    import torch

    # Read at the first product on a GPU; without it cuBLAS may sum in a different order at every run.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    filling: Any = torch.utils.deterministic
    before = torch.get_num_threads(), torch.get_deterministic_debug_mode(), filling.fill_uninitialized_memory
    torch.set_num_threads(threads)
    # Only a warning, since some GPU kernels have no deterministic version. torch.use_deterministic_algorithms does the
    # same, but imports the compiler, which takes more than a second.
    torch.set_deterministic_debug_mode("warn")
    # Deterministic mode also fills new memory with NaN, which costs a tenth of a forward pass.
    filling.fill_uninitialized_memory = False
    try:
        with tensor_float(allowed=False):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_deterministic_debug_mode(before[1])
        filling.fill_uninitialized_memory = before[2]
