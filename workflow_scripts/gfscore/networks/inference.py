"""From a classifier and images to logits."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.batch_invariance import require_invariant, rows_computed_twice
from gfscore.networks.batch_size import fitting_batch_size
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.gpus import hold_gpu
from gfscore.networks.precision import FULL, drift, drift_rows, faster, tensor_float

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")

AHEAD = 2
"""Loads that may be ready before their turn: with one, whatever takes longer than usual makes the other side wait."""

LOADED = 1 << 21
"""Bytes of a load, if a batch has less: to hand one over between threads costs as much as the passes on tiny images."""


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
    """Logits of every sample of an image set.

    `classifier` is a Classifier, or a torch module from (n, C, H, W) float32 in [0, 1] to (n, K), used in
    eval mode; `images` an ImageSet; `batch_size` images per forward pass, by default as many as suit
    network and device (see `fitting_batch_size`); `device` "cpu", "cuda" or "auto" (see `device_of`); `precision` and
    `compiled` as in gfscore.networks.precision.
    When memory runs out, the batch is halved, down to single images. Values
    that are not finite are passed on as they are, for score_models to refuse. Returns `(sample_id, labels, logits)`:
    (N,) str, (N,) int32, (N, K) float32. Raises InputError, naming the classifier as `where` (by default its
    architecture), for output that is not one row of logits per image, and for logits that depend on the batch or on
    chance (see gfscore.networks.batch_invariance).
    """
    import torch

    if not isinstance(classifier, Classifier):
        classifier = from_network(classifier)
    where = where or f"the classifier ({classifier.architecture or type(classifier.network).__name__})"
    device = device_of(classifier, device)
    if classifier.network is not None:
        classifier.network.to(device).eval()
    how: dict[str, Any] = {"precision": precision, "compiled": compiled, "device": device}
    with reproducible_arithmetic(threads=threads), faster(classifier, **how) as running, torch.inference_mode():
        size = batch_size or fitting_batch_size(classifier, images.image_shape, device)
        loaded = size * max(1, LOADED // (size * 4 * math.prod(images.image_shape)))
        blocks: list[NDArray[np.float32]] = []
        run, start = partial(running.logits, device=device), 0
        twice, plain = rows_computed_twice(len(images)), precision == FULL and not compiled
        for batch in made_ahead(_page_locked(batch, device) for batch in images.batches(loaded)):
            # A reduced size is kept: the next batches would run out of memory likewise.
            block, size = _forward(run, batch, size, blocks, where)
            # In its batch, so that hours are not spent first. A compiled network would be compiled anew for one image.
            rows = twice[(twice >= start) & (twice < start + len(batch))] - start
            require_invariant(partial(classifier.logits, device=device), batch, rows, block, plain=plain, where=where)
            blocks.append(block)
            start += len(batch)
    return images.sample_id, images.labels, np.concatenate(blocks)


def measured_drift(
    classifier: Classifier, images: Any, logits: NDArray[np.float32], *, precision: str, compiled: bool, **how: Any
) -> dict[str, str]:
    """What faster arithmetic did to logits (N, K), for their identity; empty where it is plain float32.

    A sample of the images is computed again in float32; `how` is device and threads of `extract_logits`.
    """
    if classifier.network is None or (precision == FULL and not compiled):
        return {}
    rows = drift_rows(len(images))
    _, labels, exact = extract_logits(classifier, images.select(rows), **how)
    return {"dtype": precision, "compiled": str(compiled).lower()} | drift(exact, logits[rows], labels)


def made_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, of which another thread makes the next ones meanwhile, AHEAD at most."""
    with ThreadPoolExecutor(1) as pool:
        following = deque(pool.submit(next, items, None) for _ in range(AHEAD))
        while (item := following.popleft().result()) is not None:
            following.append(pool.submit(next, items, None))
            yield item


def _page_locked(batch, device):
    # A GPU fetches from page-locked memory by itself, and nearly twice as fast.
    if device == "cpu":
        return batch
    import torch

    return torch.from_numpy(batch).pin_memory().numpy()


def require_fit(classifier: Classifier, dataset: Mapping[str, Any], *, source: object) -> None:
    """Refuse a classifier made for other images or classes than those of a dataset, by InputError.

    `source` is the checkpoint, named in the error; `classifier` is a Classifier, `dataset` the manifest of
    fetch_dataset. What the classifier does not say is not compared.
    """
    shape, name = classifier.image_shape, dataset["dataset"]
    if shape is not None and list(shape) != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {list(shape)}, but {name} has {dataset['image_shape']}; evaluate it "
            "on images of its own shape (models_of and preprocessing in config.yaml)"
        )
    if classifier.classes is not None and classifier.classes != len(dataset["classes"]):
        raise InputError(
            f"{source}: made for {classifier.classes} classes, but {name} declares {len(dataset['classes'])}; correct "
            "`classes` or models_of in config.yaml"
        )


def identity_of(
    dataset: Mapping[str, Any], model: Mapping[str, Any], *, device: str, preprocessing: str = ""
) -> dict[str, str]:
    """Identity that a logits file repeats in its metadata: names, digests and arithmetic, str to str.

    `dataset` is the manifest of fetch_dataset, `model` that of train_model or fetch_checkpoint; the dataset named is
    the one evaluated. `preprocessing` is what the classifier itself does to the pixels, empty for nothing.
    """
    import torch

    return {
        "dataset": dataset["dataset"],
        "threat": model["threat"],
        "model": model["model"],
        "dataset_digest": dataset["digest"],
        "checkpoint_sha256": model["sha256"],
        "architecture": model["architecture"],
        # Only networks that are defined in architectures/ have code that the versions of packages do not name.
        **{key: model[key] for key in ["architecture_sha256"] if key in model},
        "preprocessing": "; ".join(filter(None, [dataset["preprocessing"], preprocessing])),
        "dtype": "float32",
        "device": resolve_device(device),
        "torch": str(torch.__version__),
    }


def resolve_device(device: str) -> str:
    """Name of the device to use: "auto" is "cuda" where there is one, else "cpu"; others stay.

    Of several GPUs "cuda" is one that no other job holds (see gfscore.networks.gpus).
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        hold_gpu()
    return device


def require_device(device: str) -> None:
    """Refuse "cuda" where there is no CUDA device, by InputError: what was to take hours would take weeks."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device cuda is asked for, but torch {torch.__version__} finds no CUDA device; run this on a machine with "
            "a GPU and a CUDA build of torch (README.md), or write device: cpu in the model's entry and be very patient"
        )
    if device == "cuda":
        hold_gpu()


def device_of(classifier: Classifier, device: str) -> str:
    """Name of the device that a classifier runs on: the resolved one, or "cpu" where it has no torch network."""
    return "cpu" if classifier.network is None else resolve_device(device)


@contextmanager
def reproducible_arithmetic(*, threads: int = 1) -> Iterator[None]:
    """Run torch in plain float32, with deterministic kernels, on so many threads; restore what was set.

    Another number of threads sums in another order, which training amplifies to other weights; on small
    networks one thread is also the fastest. TensorFloat-32, a GPU's default for convolutions, keeps 10 bits
    of mantissa. The setting by which products of matrices on a GPU repeat stays with the process.
    """
    import torch

    # Read once per process, at the first product on a GPU: without it cuBLAS may sum in another order at every run.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    filling: Any = torch.utils.deterministic
    before = torch.get_num_threads(), torch.get_deterministic_debug_mode(), filling.fill_uninitialized_memory
    torch.set_num_threads(threads)
    # Only a warning: some kernels have no deterministic form on a GPU. torch.use_deterministic_algorithms does as much,
    # but imports the compiler first, which takes more than a second.
    torch.set_deterministic_debug_mode("warn")
    # Deterministic kernels come with a NaN in every fresh number, to find code that reads what nobody wrote. It costs a
    # tenth of a forward pass.
    filling.fill_uninitialized_memory = False
    try:
        with tensor_float(allowed=False):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_deterministic_debug_mode(before[1])
        filling.fill_uninitialized_memory = before[2]


def _forward(run, batch, size, before, where):
    done: list[NDArray[np.float32]] = []
    start = 0
    while start < len(batch):
        try:
            logits = run(batch[start : start + size])
        # onnxruntime's errors derive from Exception alone.
        except Exception as error:
            if size == 1 or not out_of_memory(error):
                raise
            size = (size + 1) // 2
            continue
        _require_rows(logits, min(size, len(batch) - start), done or before, where)
        done.append(logits)
        start += size
    return np.concatenate(done), size


def _require_rows(logits, images, before, where):
    classes = before[0].shape[1] if before else logits.shape[1] if logits.ndim == 2 else "K"
    if logits.shape != (images, classes):
        raise InputError(
            f"{where}: gives shape {logits.shape} for {images} images, but ({images}, {classes}) is needed: one row of "
            "logits per image, also for a single one (squeeze() would drop that row); correct the architecture"
        )


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on the CPU or on a GPU."""
    import torch

    # The CPU allocators of torch and onnxruntime, the libraries of a GPU and its driver, which loads kernels and holds
    # what torch's own allocator does not, raise errors without a type of their own.
    words = (
        "DefaultCPUAllocator",
        "not enough memory",
        "Failed to allocate memory",
        "bad_alloc",
        "_ALLOC_FAILED",
        "out of memory",
    )
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in str(error) for word in words)
