"""Inference: logits of the images of a dataset, in reproducible arithmetic."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.batch_invariance import SAMPLES, require_invariant, spread_over
from gfscore.networks.batch_size import fitting_batch_size
from gfscore.networks.classifier import FLOAT32, Classifier, from_network
from gfscore.networks.gpus import hold_gpu, lift_limit
from gfscore.networks.number_types import COMPARED, rounds_finely, search_agreement, searched_logits
from gfscore.networks.precision import DRIFT_SAMPLES, FULL, drift, faster, tensor_float

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")

AHEAD = 2
"""Number of chunks of images that are loaded in advance."""

LOADED = 1 << 21
"""Smallest size of a chunk in bytes: handing over tiny ones between threads costs as much as the forward passes."""


def extract_logits(
    classifier: Classifier | torch.nn.Module,
    images: Any,
    *,
    batch_size: int | None = None,
    device: str,
    threads: int = 1,
    precision: str = FULL,
    compiled: bool = False,
    where: str | None = None,
) -> tuple[NDArray[np.str_], NDArray[np.int32], NDArray[np.float32]]:
    """Logits of all samples of an image set: `(sample_id (N,) str, labels (N,) int32, logits (N, K) float32)`.

    `classifier` is a Classifier, or a torch module from (n, C, H, W) float32 in [0, 1] to (n, K), which is set to eval
    mode; `images` an ImageSet; `batch_size` the images per forward pass, by default chosen by `fitting_batch_size`;
    `device` "cpu", "cuda" or "auto" (see `device_of`); `precision` and `compiled` as in gfscore.networks.precision.
    When memory runs out, the batch size is halved, down to single images. Non-finite logits are returned, since
    score_models refuses them. Raises InputError, naming the classifier as `where` (by default its architecture), for
    output that is not one row of logits per image, and for logits that are random or depend on the batch (see
    gfscore.networks.batch_invariance).
    """
    import torch

    if not isinstance(classifier, Classifier):
        classifier = from_network(classifier)
    where = where or f"the classifier ({classifier.architecture or type(classifier.network).__name__})"
    device = device_of(classifier, device)
    move_to(classifier, device, where=where)
    how: dict[str, Any] = {"precision": precision, "compiled": compiled, "device": device}
    with reproducible_arithmetic(threads=threads), faster(classifier, **how) as running, torch.inference_mode():
        try:
            size = batch_size or fitting_batch_size(classifier, images.image_shape, device)
        except Exception as error:
            refuse_small_gpu(error, where=where)
            raise
        loaded = size * max(1, LOADED // (size * 4 * math.prod(images.image_shape)))
        blocks: list[NDArray[np.float32]] = []
        classes: list[int] = []

        def run(part: NDArray[np.float32]) -> NDArray[np.float32]:
            logits = running.logits(part, device=device)
            _require_rows(logits, len(part), classes[0] if classes else None, where)
            classes.append(logits.shape[1])
            return logits

        start = 0
        twice, plain = spread_over(len(images), SAMPLES), _is_plain(classifier, precision, compiled)
        for batch in made_ahead(_page_locked(batch, device) for batch in images.batches(loaded)):
            # A reduced batch size is kept for the next chunks.
            try:
                parts, size = in_batches(run, batch, size)
            except Exception as error:
                refuse_small_gpu(error, where=where)
                raise
            block = np.concatenate(parts)
            # Checked chunk by chunk, to fail early. Uncompiled, since compiling for one image takes long.
            rows = twice[(twice >= start) & (twice < start + len(batch))] - start
            require_invariant(partial(classifier.logits, device=device), batch, rows, block, plain=plain, where=where)
            blocks.append(block)
            start += len(batch)
    return images.sample_id, images.labels, np.concatenate(blocks)


def _is_plain(classifier: Classifier, precision: str, compiled: bool) -> bool:
    return precision == FULL and not compiled and rounds_finely(classifier.number_type)


def measured_drift(
    classifier: Classifier, images: Any, logits: NDArray[np.float32], *, precision: str, compiled: bool, **how: Any
) -> dict[str, str]:
    """Differences of logits (N, K) from those in float32, for their identity; empty for plain float32.

    A part of the images is computed again in float32; `how` are device and threads of `extract_logits`.
    """
    if classifier.network is None or (precision == FULL and not compiled):
        return {}
    rows = spread_over(len(images), DRIFT_SAMPLES)
    _, labels, exact = extract_logits(classifier, images.select(rows), **how)
    return {"dtype": precision, "compiled": str(compiled).lower()} | drift(exact, logits[rows], labels)


AGREEMENT = 1e-4
"""Largest difference between the logits of a converted network and its original's, relative to the largest logit."""


def require_agreement(
    classifier: Classifier, images: Any, logits: NDArray[np.float32], *, where: object
) -> dict[str, str]:
    """Conversion of a network in words, for the identity of its logits (N, K); empty for one that was not converted.

    All images are computed again by the original. Raises InputError, naming `where`, if any logit differs from the
    original's by more than AGREEMENT times the largest absolute logit.
    """
    original = classifier.original
    confirmed: dict[str, str] = {}
    if classifier.network is not None and classifier.number_type != FLOAT32:
        confirmed = {"conversion": search_agreement(classifier, images, logits, where=where)}
        logits = searched_logits(classifier, images)
    if original is None:
        return confirmed
    wanted = np.concatenate([original.run(batch) for batch in images.batches(COMPARED)])
    largest = float(np.abs(wanted).max())
    # NaN, for which every comparison is false, must be refused too.
    distance = float(np.abs(wanted.astype(np.float64) - logits).max()) / (largest or 1.0)
    if not distance <= AGREEMENT:
        raise InputError(
            f"{where}: logits of the network that {original.converter} made of it differ from those of {original.by} "
            f"by {distance:.1e} of the largest logit, above {AGREEMENT:g}; set gradients: false and leave out measures "
            "that need gradients, or name the weights and the architecture that it was exported from"
        )
    words = [f"by {original.converter}", f"logits within {distance:.0e} of {original.by}'s", *confirmed.values()]
    return {"conversion": "; ".join(words)}


def made_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, which another thread computes up to AHEAD items in advance."""
    with ThreadPoolExecutor(1) as pool:
        following = deque(pool.submit(next, items, None) for _ in range(AHEAD))
        while (item := following.popleft().result()) is not None:
            following.append(pool.submit(next, items, None))
            yield item


def _page_locked(batch, device):
    # Transfers to a GPU are nearly twice as fast from page-locked memory.
    if device == "cpu":
        return batch
    import torch

    return torch.from_numpy(batch).pin_memory().numpy()


def require_fit(classifier: Classifier, dataset: Mapping[str, Any], *, source: object) -> None:
    """Raise InputError if a classifier's image shape or number of classes differs from that of a dataset.

    `source` is the checkpoint, named in the error; `dataset` the manifest of fetch_dataset. What the classifier does
    not state is not compared.
    """
    shape, name = classifier.image_shape, dataset["dataset"]
    if shape is not None and list(shape) != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {list(shape)}, but {name} has {dataset['image_shape']}; evaluate it "
            "on images of that shape (models_of and preprocessing in config.yaml)"
        )
    if classifier.classes is not None and classifier.classes != len(dataset["classes"]):
        raise InputError(
            f"{source}: made for {classifier.classes} classes, but {name} declares {len(dataset['classes'])}; correct "
            "`classes` or models_of in config.yaml"
        )


def identity_of(
    dataset: Mapping[str, Any],
    model: Mapping[str, Any],
    *,
    device: str,
    preprocessing: str = "",
    number_type: str = FLOAT32,
    outputs: str = "",
) -> dict[str, str]:
    """Identity metadata of a logits file: names, digests and arithmetic, str to str.

    `dataset` is the manifest of fetch_dataset for the evaluated dataset, `model` that of train_model or
    fetch_checkpoint; `preprocessing` that of the classifier, in words, empty for none; `number_type` of its answers;
    `outputs` what its logits are made of, empty for the output as it is.
    """
    import torch

    return {
        "dataset": dataset["dataset"],
        "threat": model["threat"],
        "model": model["model"],
        "dataset_digest": dataset["digest"],
        "checkpoint_sha256": model["sha256"],
        "architecture": model["architecture"],
        # Networks defined in architectures/ are not identified by the versions of packages.
        **{key: model[key] for key in ["architecture_sha256"] if key in model},
        "preprocessing": "; ".join(filter(None, [dataset["preprocessing"], preprocessing])),
        **({"outputs": outputs} if outputs else {}),
        "dtype": number_type,
        "device": resolve_device(device),
        "torch": str(torch.__version__),
    }


def resolve_device(device: str, *, gpu_percent: int | None = None) -> str:
    """Device to use: "auto" is "cuda" if available, else "cpu"; other names are returned unchanged.

    `gpu_percent` of one GPU are held for the lifetime of the process, of several GPUs on one that has as much free;
    None for the whole (see gfscore.networks.gpus).
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if gpu_percent and device == "cpu":
            print(f"a GPU was planned for, but torch {torch.__version__} finds none: on the CPU")
    if device == "cuda":
        hold_gpu(gpu_percent)
    return device


def require_device(device: str, *, gpu_percent: int | None = None) -> None:
    """Raise InputError for "cuda" if there is no CUDA device; a part of one is held as by `resolve_device`."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device is cuda, but torch {torch.__version__} finds no CUDA device; run this on a machine with a GPU and "
            "a CUDA build of torch (README.md), or set device: cpu where the configuration says cuda, which is much "
            "slower (inference: device; gfscore audit: --device cpu)"
        )
    if device == "cuda":
        hold_gpu(gpu_percent)


def device_of(classifier: Classifier, device: str, *, gpu_percent: int | None = None) -> str:
    """Device that a classifier runs on: the resolved one, or "cpu" without a torch network.

    Raises InputError for "cuda" if there is no CUDA device.
    """
    if classifier.network is None:
        return "cpu"
    require_device(device, gpu_percent=gpu_percent)
    return resolve_device(device, gpu_percent=gpu_percent)


def move_to(classifier: Classifier, device: str, *, where: object) -> None:
    """Move the network of a classifier to a device, in eval mode; without a network nothing is done.

    Raises InputError, naming the classifier as `where`, where the weights do not fit into the memory of the GPU.
    """
    if classifier.network is None:
        return
    try:
        classifier.network.to(device).eval()
    except RuntimeError as error:
        if device == "cpu" or not out_of_memory(error):
            raise
        if not lift_limit():
            raise too_small_gpu(where, "the weights") from error
        move_to(classifier, device, where=where)


def too_small_gpu(where: object, what: str) -> InputError:
    """Error for a GPU whose memory does not hold `what` of a classifier."""
    return InputError(
        f"{where}: {what} take more memory than the GPU has free; end what else computes on it, or run on the CPU with "
        "inference: {device: cpu} in the configuration (gfscore audit: --device cpu)"
    )


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


def in_batches(run: Callable[[Any], Item], images: Any, size: int) -> tuple[list[Item], int]:
    """Results of `run` on at most `size` images at a time, and the size, which is halved when memory runs out.

    A single image may take what is left of the whole GPU.
    """
    done: list[Item] = []
    start = 0
    while start < len(images):
        try:
            done.append(run(images[start : start + size]))
            start += size
        # onnxruntime's errors derive from Exception alone.
        except Exception as error:
            if not out_of_memory(error):
                raise
            if size == 1 and not lift_limit():
                raise
            size = (size + 1) // 2
    return done, size


def refuse_small_gpu(error: BaseException, *, where: object) -> None:
    """Raise InputError, naming the classifier as `where`, if it is the GPU's memory that ran out for a single image."""
    import torch

    # Where CUDA was not used, it was the machine's memory.
    if out_of_memory(error) and torch.cuda.is_initialized():
        raise too_small_gpu(where, "the passes of one image") from error


def _require_rows(logits, images, classes, where):
    classes = classes or (logits.shape[1] if logits.ndim == 2 else "K")
    if logits.shape != (images, classes):
        raise InputError(
            f"{where}: returns shape {logits.shape} for {images} images, expected ({images}, {classes}): one row of "
            "logits per image, also for a single image (squeeze() drops that row); correct the architecture"
        )


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the CPU or a GPU ran out of memory."""
    import torch

    # The CPU allocators of torch and onnxruntime, and the libraries and driver of a GPU, raise untyped errors.
    words = (
        "DefaultCPUAllocator",
        "not enough memory",
        "Failed to allocate memory",
        "bad_alloc",
        "_ALLOC_FAILED",
        "out of memory",
    )
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in str(error) for word in words)
