"""Arithmetic of torch: reproducible float32, faster arithmetic for logits and for searches, and its deviation."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.outputs import Logits
from gfscore.networks.wrappers import wrap
from gfscore.statistics.margins import ACTIVATIONS, predictions, scores

FULL, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
"""Precisions: tf32 rounds factors to 10 bits on a GPU, bfloat16 rounds numbers to 8 bits."""

TF32_CAPABILITY = 8
"""Least compute capability of a GPU with TF32."""

Value = TypeVar("Value")

DRIFT_SAMPLES = 256
"""Number of samples that are computed in float32 too, spread over all."""


@contextmanager
def reproducible_arithmetic(*, threads: int = 1) -> Iterator[None]:
    """Run torch in plain float32 with deterministic kernels and a fixed number of threads; restore the settings after.

    The number of threads changes the order of sums, and training amplifies the differences; for small networks one
    thread is also the fastest. TensorFloat-32, a GPU's default for convolutions, has only 10 bits of mantissa. The
    environment variable for deterministic matrix products on a GPU remains set.
    """
    # Read at the first product on a GPU; without it cuBLAS may sum in a different order at every run.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    deterministic = cast(Any, torch.utils.deterministic)
    threads_before = torch.get_num_threads()
    mode_before = torch.get_deterministic_debug_mode()
    fill_before = deterministic.fill_uninitialized_memory

    torch.set_num_threads(threads)
    # Only a warning, since some GPU kernels have no deterministic version. torch.use_deterministic_algorithms does the
    # same, but imports the compiler, which takes more than a second.
    torch.set_deterministic_debug_mode("warn")
    # Deterministic mode also fills new memory with NaN, which costs a tenth of a forward pass.
    deterministic.fill_uninitialized_memory = False
    try:
        with tensor_float(allowed=False):
            yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_deterministic_debug_mode(mode_before)
        deterministic.fill_uninitialized_memory = fill_before


@contextmanager
def tensor_float(allowed: bool) -> Iterator[None]:
    """Allow or forbid TensorFloat-32 in products and convolutions on a GPU; restore the settings afterwards.

    The code of a model may have allowed it for the whole process, or bfloat16 in products on a processor.
    """
    convolutions_before = _readable(lambda: torch.backends.cudnn.allow_tf32)
    products_before = _readable(torch.get_float32_matmul_precision)
    operations = _operations()
    before = [operation.fp32_precision for operation in operations]

    torch.backends.cudnn.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    for operation in operations:
        operation.fp32_precision = "tf32" if allowed else "ieee"
    try:
        yield
    finally:
        if convolutions_before is not None:
            torch.backends.cudnn.allow_tf32 = convolutions_before
        if products_before is not None:
            torch.set_float32_matmul_precision(products_before)
        for operation, precision in zip(operations, before, strict=True):
            operation.fp32_precision = precision


def _readable(read: Callable[[], Value]) -> Value | None:
    # torch refuses to read a setting for all operations where that of a single one says otherwise.
    try:
        return read()
    except RuntimeError:
        return None


def _operations() -> list[Any]:
    # Those whose precision torch sets one by one, from 2.9 on.
    gpu, processor = cast(Any, torch.backends.cudnn), cast(Any, torch.backends.mkldnn)
    if not hasattr(gpu, "conv"):
        return []
    return [gpu.conv, gpu.rnn, torch.backends.cuda.matmul, processor.conv, processor.rnn, processor.matmul]


# Logits


@contextmanager
def faster(classifier: Classifier, *, precision: str, device: str) -> Iterator[None]:
    """Run a classifier in another precision within the block; its network is restored afterwards.

    Parameters
    ----------
    classifier : Classifier
        Its network is on the device; one without a network runs unchanged.
    precision : str
        "float32", "tf32" or "bfloat16".
    device : str
        "cpu" or "cuda".

    Raises
    ------
    InputError
        For tf32 without a GPU.
    """
    if classifier.network is None or precision == FULL:
        yield
        return
    if precision == TF32 and device == "cpu":
        raise InputError("inference: precision: tf32 exists on CUDA devices only; choose float32 or bfloat16")
    try:
        # The memory layout that matrix units use directly; in float32 it would only change the rounding.
        _set_layout(classifier.network, torch.channels_last)
        bfloat16 = torch.autocast(device, dtype=torch.bfloat16, enabled=precision == BFLOAT16)
        with tensor_float(precision == TF32), bfloat16:
            yield
    finally:
        _set_layout(classifier.network, torch.contiguous_format)


def _set_layout(network: nn.Module, layout: torch.memory_format) -> None:
    network.to(memory_format=layout)  # type: ignore[call-overload]


def drift(exact: Logits, faster_logits: Logits, labels: NDArray[np.integer]) -> dict[str, str]:
    """Deviation of logits from those in float32, as texts for the identity of a logits file.

    Parameters
    ----------
    exact, faster_logits : ndarray
        Logits (m, K) in float32 and in the faster arithmetic.
    labels : ndarray of int
        True classes (m,).

    Returns
    -------
    dict of str to str
        Number of samples, largest difference of a logit, share of changed predictions, and largest difference of the
        attack-free score at T = 1 for each activation.
    """
    changed = predictions(exact, labels) != predictions(faster_logits, labels)
    values = {
        "drift_samples": len(labels),
        "drift_logit": np.abs(np.subtract(exact, faster_logits, dtype=np.float64)).max(),
        "drift_predictions": changed.mean(),
    }
    for activation in ACTIVATIONS:
        exact_scores = scores(exact, labels, activation=activation)
        faster_scores = scores(faster_logits, labels, activation=activation)
        values[f"drift_great_{activation}"] = np.abs(exact_scores - faster_scores).max()
    return {name: f"{value:.6g}" for name, value in values.items()}


# Searches of attacks, and votes of noisy copies


def search_precision(setting: str, classifier: Classifier, *, device: str) -> str:
    """Arithmetic in which attacks on a classifier search.

    Parameters
    ----------
    setting : str
        `inference: search`: "auto", "float32", "tf32" or "bfloat16".
    classifier : Classifier
        One in another number type than float32 answers in that type and searches in float32, whatever the setting.
    device : str
        Device of its network, "cpu" or "cuda".

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
    remedy = (
        "write search: auto, which takes TF32 where there is some, or device: cuda beside it on a machine with a GPU "
        "that has TF32"
    )
    require_tf32(setting, device, where="inference: search", remedy=remedy)
    return setting


def require_tf32(precision: str, device: str, *, where: str, remedy: str) -> None:
    """Raise InputError, which names the setting `where`, for tf32 on a device ("cpu" or "cuda") without it."""
    if precision == TF32 and not _has_tf32(device):
        raise InputError(f"{where}: tf32, but this model runs on a device without TF32 ({device}); {remedy}")


def _has_tf32(device: str) -> bool:
    if device == "cpu" or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability()[0] >= TF32_CAPABILITY


@contextmanager
def network_in(network: nn.Module, precision: str) -> Iterator[nn.Module]:
    """Yield a network with the same weights whose passes are in another precision, with logits in float32.

    Parameters
    ----------
    network : torch.nn.Module
        From images (n, C, H, W) float32 to logits (n, K).
    precision : str
        "float32", "tf32" or "bfloat16". In bfloat16 are only the passes of the network, forward and backward; what else
        is computed stays in float32. TF32 holds for everything until the context ends.
    """
    if precision != BFLOAT16:
        with tensor_float(precision == TF32):
            yield network
        return

    def in_bfloat16(network: nn.Module, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, dtype=torch.bfloat16):
            logits: Tensor = network(images)
        return logits.float()

    yield wrap(network, in_bfloat16)
