"""Inference: logits of the images of a dataset, in reproducible arithmetic."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.batch_invariance import SAMPLES, require_invariant, rounds_finely, spread_over
from gfscore.networks.classifier import Classifier, from_network
from gfscore.networks.devices import (
    device_of,
    lift_limit,
    move_to,
    out_of_memory,
    refuse_small_gpu,
    resolve_device,
)
from gfscore.networks.number_types import COMPARED, search_agreement, searched_logits
from gfscore.networks.outputs import FLOAT32
from gfscore.networks.precision import DRIFT_SAMPLES, FULL, drift, faster, reproducible_arithmetic

if TYPE_CHECKING:
    import torch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier


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


def _require_rows(logits, images, classes, where):
    classes = classes or (logits.shape[1] if logits.ndim == 2 else "K")
    if logits.shape != (images, classes):
        raise InputError(
            f"{where}: returns shape {logits.shape} for {images} images, expected ({images}, {classes}): one row of "
            "logits per image, also for a single image (squeeze() drops that row); correct the architecture"
        )


# ---- Choice of the number of images per forward pass from the size of the network.


MOST = {"cpu": 256, "cuda": 1024}
"""Largest number of images per pass by device; more are not faster."""

NEAR = 32 << 20
"""Bytes that the largest layer may read and write per pass on a CPU, so that they stay in its caches."""

SHARE = 8
"""The largest layer may take 1/SHARE of a GPU's memory, since several layers are in memory at the same time."""

TYPICAL = 10
"""Typical size of a network's largest layer relative to the image, used if there is no torch network."""


def fitting_batch_size(classifier: Classifier, image_shape: tuple[int, ...], device: str) -> int:
    """Number of images per forward pass, a power of two from 1 to MOST[device].

    `classifier` is a Classifier whose network, if any, is on the device ("cpu" or "cuda"); `image_shape` (C, H, W). A
    grey image is classified to measure the sizes of the layers. On a CPU the result depends on the network alone, on a
    GPU also on its total memory; the free memory is not used, since it varies and the batch size changes rounding.
    """
    import torch

    room = NEAR if device == "cpu" else torch.cuda.mem_get_info()[1] // SHARE
    fits = room // _largest_layer(classifier, image_shape)
    return 1 << int(math.log2(min(max(fits, 1), MOST[device])))


def _largest_layer(classifier, image_shape):
    # Bytes that the largest layer reads and writes per image.
    import torch

    sizes = [TYPICAL * 4 * math.prod(image_shape)]
    if classifier.network is None:
        return sizes[0]

    def record(_layer: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        tensors = [value for value in (*inputs, output) if isinstance(value, torch.Tensor)]
        sizes.append(sum(value.numel() * value.element_size() for value in tensors))

    leaves = [layer for layer in classifier.network.modules() if not any(True for _ in layer.children())]
    # TorchScript takes no hooks: where it is the whole network, its layers count as TYPICAL.
    layers = [layer for layer in leaves if not isinstance(layer, torch.jit.ScriptModule)]
    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        classifier.logits(np.full((1, *image_shape), 0.5, dtype=np.float32))
    finally:
        for hook in hooks:
            hook.remove()
    return max(sizes[1:], default=sizes[0])


# ---- Logits of many images in batches.


class BatchedClassifier:
    """A classifier of any number of images that passes at most `batch_size` at a time through the network.

    `classifier` is a Classifier, with or without gradients. If memory runs out, the batch size is halved for good; the
    logits depend on it only by rounding.
    """

    def __init__(self, classifier: Classifier, *, batch_size: int) -> None:
        """`batch_size`: images per pass."""
        import torch

        self.classifier, self.batch_size = classifier, batch_size
        self.device = torch.device(classifier.device)

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Logits (n, K) float32 of a tensor of images (n, C, H, W), on the device; no gradients."""
        import torch

        blocks, self.batch_size = in_batches(self._forward, images, self.batch_size)
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def _forward(self, images):
        import torch

        if self.classifier.network is None:
            return torch.from_numpy(self.classifier.logits(images.numpy()))
        with torch.no_grad():
            return self.classifier.network(images).float()
