"""Training images in random order: held in memory if they fit, otherwise read from their files batch by batch."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.gradient_ascent import attack_name, survivors
from gfscore.core.tensors import Module
from gfscore.images.datasets import load_all
from gfscore.images.image_set import ImageSet
from gfscore.networks.architectures import build_network
from gfscore.networks.devices import out_of_memory, require_device
from gfscore.networks.inference import extract_logits
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.trained import TrainingProgress
from gfscore.statistics.margins import predictions
from gfscore.training.objectives import Setup, make_objective
from gfscore.training.recipe import Trainer, seeded

HELD_BYTES = 2**31
"""Largest size in bytes of float32 pixels held in memory; CIFAR-10's 50,000 training images take 0.6 GB."""

AHEAD = 2
"""Number of batches that are read in advance."""


@dataclass(frozen=True)
class ReadImages:
    """Images of an ImageSet, read on access: `images[rows]` is (n, C, H, W) float32 in [0, 1]."""

    images: ImageSet

    def __len__(self) -> int:
        """Return the number of images N."""
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W)."""
        return len(self.images), *self.images.image_shape

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Images of distinct `rows` (n,), in their order."""
        order = np.argsort(rows)
        pixels = np.concatenate(list(self.images.select(rows[order]).batches(len(rows))))
        return pixels[np.argsort(order)]


def training_images(images: ImageSet) -> NDArray[np.float32] | ReadImages:
    """Pixels of an ImageSet for `train_classifier`: an array (N, C, H, W), or ReadImages if that would be too large.

    ReadImages are used only for sources that can skip images (`choose` of an ImageSet: image_folder, celeba, parquet);
    other sources hold their images in memory anyway.
    """
    held = 4 * len(images) * int(np.prod(images.image_shape)) <= HELD_BYTES
    return load_all(images)[0] if held or images.choose is None else ReadImages(images)


def in_batches(
    images: NDArray[np.float32] | ReadImages, batches: Iterable[NDArray[np.int64]]
) -> Iterator[NDArray[np.float32]]:
    """Yield images[rows], (n, C, H, W) float32, for each of `batches` of rows (n,); ReadImages are read in advance."""
    if not isinstance(images, ReadImages):
        yield from (images[rows] for rows in batches)
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = []
        try:
            for rows in batches:
                waiting.append(pool.submit(images.__getitem__, rows))
                if len(waiting) > AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            # After an error, or when the reader stops early.
            for future in waiting:
                future.cancel()


# ---- Training of image classifiers: the loop of all methods, and the accuracies afterwards.


ATTACKED_AT_ONCE = 256
"""Images per batch of the attack after a training; if memory runs out, the attack restarts with half as many."""


def train_classifier(
    images: NDArray[np.float32] | ReadImages,
    labels: NDArray[np.integer],
    *,
    method: str,
    architecture: str,
    classes: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    seed: int,
    device: str,
    arguments: Mapping[str, Any] | None = None,
    threat: Mapping[str, Any] | None = None,
    coefficients: Mapping[str, float] | None = None,
    recipe: Mapping[str, Any] | None = None,
    progress: TrainingProgress | None = None,
) -> Module:
    """Classifier trained by one of METHODS, a torch module in eval mode on the CPU.

    Takes `images` (N, C, H, W) float32 in [0, 1], an array or gfscore.training.loop.ReadImages, and `labels` (N,) in
    0..`classes`-1; `architecture` with its `arguments` (see gfscore.networks.architectures); `threat`, a mapping with
    norm ("linf" or "l2"), eps and step_size (pixels in [0, 1]) and steps, for the methods that perturb;
    `coefficients` of the method. Adam with decoupled weight decay; the learning rate rises
    to `learning_rate` and falls to zero, by one
    cycle or by a `recipe` (gfscore.training.recipe.Trainer). `progress` saves finished epochs and resumes after them.
    `seed` determines initial weights, order and perturbations: on one machine the result on the CPU is deterministic,
    interrupted or not; on a GPU it may vary, since some kernels are not deterministic. `device` is "cpu" or "cuda"; the
    images are transferred batch by batch. Raises InputError for unknown names, for missing or unknown coefficients, and
    for "cuda" without a CUDA device.
    """
    import torch

    require_device(device)
    with reproducible_arithmetic():
        # On the CPU for every device, so that the order of the samples does not depend on the device.
        generator = torch.Generator().manual_seed(seed)
        objective = make_objective(method, Setup(classes, threat or {}, generator), coefficients or {})
        of_images = {"in_channels": images.shape[1], "image_size": images.shape[2:], "classes": classes}
        network = build_network(architecture, **of_images, seed=seed, **(arguments or {})).to(device)
        y = torch.from_numpy(np.asarray(labels, dtype=np.int64))
        steps = {"steps": -(-len(y) // batch_size), "epochs": epochs}
        rates: dict[str, Any] = {"learning_rate": learning_rate, "weight_decay": weight_decay}
        trainer = Trainer(network, objective, **rates, **steps, device=device, recipe=recipe)
        memory = getattr(objective, "memory", {})
        state: dict[str, Any] = {"parts": trainer.parts, "memory": memory, "generator": generator}
        for epoch in range(progress.restore(**state) if progress else 0, epochs):
            order = torch.randperm(len(y), generator=generator).split(batch_size)
            with seeded(seed, epoch):
                for rows, batch in zip(order, in_batches(images, [rows.numpy() for rows in order]), strict=True):
                    trainer.step(torch.from_numpy(np.ascontiguousarray(batch, dtype=np.float32)), y[rows])
            if progress:
                progress.keep(epoch + 1, **state)
        return network.cpu().eval()


def describe_training(
    network: Module, train: ImageSet, test: ImageSet, *, settings: Mapping[str, Any], attack: Mapping[str, Any]
) -> dict[str, Any]:
    """Settings and accuracies of a trained classifier, a mapping for JSON; accuracies are fractions.

    `train` and `test` are ImageSets, `settings` the arguments of `train_classifier`, whose `device` is used here too;
    `attack` holds norm, eps, step_size, steps, restarts and seed of the PGD attack for robust accuracy on the test set,
    overall and per class in label order. The network is moved to the CPU in the end. Raises InputError for "cuda"
    without a CUDA device.
    """
    import torch

    device = settings["device"]
    require_device(device)
    network.to(device)
    with reproducible_arithmetic():
        survived = _survivors(network, test, attack)
    accuracies = {
        "train_accuracy": _clean_accuracy(network, train, device=device),
        "clean_accuracy": _clean_accuracy(network, test, device=device),
    }
    network.cpu()
    return {
        "method": settings["method"],
        "architecture": settings["architecture"],
        "parameters": sum(value.numel() for value in network.parameters()),
        "epochs": settings["epochs"],
        "seed": settings["seed"],
        "device": device,
        "torch": str(torch.__version__),
        **accuracies,
        "robust_accuracy": float(survived.mean()),
        "robust_accuracy_per_class": [float(survived[test.labels == label].mean()) for label in np.unique(test.labels)],
        "robust_accuracy_attack": f"{attack_name(**attack)}, test split",
    }


def _survivors(network, images, attack):
    # The attack may need more memory than the training. With a smaller batch size it restarts, so that the random draws
    # depend on the size alone.
    size, trainable = ATTACKED_AT_ONCE, [value for value in network.parameters() if value.requires_grad]
    for value in trainable:
        # Attacks need no gradients of weights.
        value.requires_grad_(False)
    try:
        while True:
            try:
                return survivors(network, images.full_batches(size), images.labels, **attack)
            except Exception as error:
                if size == 1 or not out_of_memory(error):
                    raise
            # Outside the handler, since the exception refers to the tensors that filled the memory.
            size = (size + 1) // 2
            print(f"out of memory: attacked {size} images at a time from here")
    finally:
        for value in trainable:
            value.requires_grad_(True)


def _clean_accuracy(network, images, *, device):
    _, labels, logits = extract_logits(network, images, device=device)
    return float(np.mean(predictions(logits, labels) == labels))
