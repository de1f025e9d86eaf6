"""Training of image classifiers: the loop that all methods share, and the accuracies afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.batch_pgd import attack_name, survivors
from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all
from gfscore.images.encoded import EncodedImages
from gfscore.images.image_set import ImageSet
from gfscore.networks.architectures import build_network
from gfscore.networks.batches import computed_ahead
from gfscore.networks.devices import hold_device, out_of_memory
from gfscore.networks.inference import extract_logits
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.sources.trained import AnyTraining
from gfscore.networks.trained import TrainingProgress
from gfscore.networks.training_settings import Attack, Training
from gfscore.statistics.classes import split_samples
from gfscore.statistics.margins import predictions
from gfscore.training.objectives import EpochEnd, HeldOut, Setup, make_objective, threat_of
from gfscore.training.recipe import Trainer, seeded

IN_MEMORY_BYTES = 2**31
"""Largest size in bytes of float32 pixels held in memory; CIFAR-10's 50,000 training images take 0.6 GB."""

ATTACKED_AT_ONCE = 256
"""Images per batch of the attack after a training; if memory runs out, the attack restarts with half as many."""

_TRAINING: TypeAdapter[Training] = TypeAdapter(AnyTraining)


def training_settings(entry: Mapping[str, object]) -> Training:
    """Settings of a training from the parameters of a job; ValidationError for settings that no method has."""
    return _TRAINING.validate_python(entry)


@dataclass(frozen=True)
class ImagesOnDisk:
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
        batches = self.images.select(rows[order]).batches(len(rows))
        pixels = np.concatenate(list(batches))
        return pixels[np.argsort(order)]


Images = NDArray[np.float32] | ImagesOnDisk
"""Images (N, C, H, W) in [0, 1], in memory or read batch by batch."""


def training_images(images: ImageSet) -> Images:
    """Pixels of an ImageSet for `train_classifier`: an array (N, C, H, W), or ImagesOnDisk if that would be too large.

    Arrays are in memory anyway; encoded images (image_folder, celeba, parquet) can be read without the others.
    """
    size = 4 * len(images) * int(np.prod(images.image_shape))
    if size <= IN_MEMORY_BYTES or not isinstance(images, EncodedImages):
        pixels, _ = load_all(images)
        return pixels
    return ImagesOnDisk(images)


def selected_batches(images: Images, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.float32]]:
    """Iterator over the images (n, C, H, W) float32 of batches of rows (n,); ImagesOnDisk are read in advance."""
    pixels = (images[rows] for rows in batches)
    return computed_ahead(pixels) if isinstance(images, ImagesOnDisk) else pixels


def fit(
    train: ImageSet,
    test: ImageSet,
    *,
    classes: int,
    settings: Mapping[str, object],
    attack: Mapping[str, object],
    backbone: None,
    device: str,
    progress: TrainingProgress,
) -> tuple[Module, dict[str, object], dict[str, object]]:
    """Train all weights of a network, and measure how accurate and how robust it became.

    Parameters
    ----------
    train, test : ImageSet
        With labels in 0..`classes`-1.
    classes : int
        K.
    settings, attack : mapping
        Settings of the training, and of the PGD that measures robust accuracy on test images.
    backbone, device
        Not used: the settings name the device.
    progress : TrainingProgress
        Saves finished epochs; an interrupted training goes on from them.

    Returns
    -------
    network : Module
    metadata : dict
        The settings.
    manifest : dict
        See `describe_training`.
    """
    del backbone, device
    training = training_settings(settings)
    network = train_classifier(training_images(train), train.labels, training, classes=classes, progress=progress)
    summary = describe_training(network, train, test, settings=training, attack=Attack.model_validate(attack))
    return network, {"settings": settings}, summary


def train_classifier(
    images: Images,
    labels: NDArray[np.integer],
    settings: Training,
    *,
    classes: int,
    progress: TrainingProgress | None = None,
) -> Module:
    """Classifier trained by one of the training methods.

    AdamW; the learning rate rises and falls to zero, by one cycle or by a recipe (gfscore.training.recipe.Trainer). The
    seed determines initial weights, order and perturbations: on one machine the result on the CPU is deterministic,
    interrupted or not; on a GPU it may vary, since some kernels are not deterministic.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W), float32, or ImagesOnDisk
        Pixels in [0, 1]. They are transferred to the device batch by batch.
    labels : ndarray of shape (N,), int
        In 0..classes-1.
    settings : Training
        Method, architecture, epochs and the like.
    classes : int
        Number of classes K.
    progress : TrainingProgress or None
        Saves finished epochs and resumes after them.

    Returns
    -------
    Module
        In eval mode on the CPU: images (n, C, H, W) to logits (n, K).

    Raises
    ------
    InputError
        For an unknown architecture or argument of it, for "cuda" without a CUDA device, and for a class without
        images to hold out or to train on.
    """
    device = hold_device(settings.device)
    _, channels, height, width = images.shape
    with reproducible_arithmetic():
        network = build_network(
            settings.architecture,
            in_channels=channels,
            image_size=(height, width),
            classes=classes,
            seed=settings.seed,
            **settings.arguments,
        ).to(device)
        # On the CPU for every device, so that the order of the samples does not depend on the device.
        generator = torch.Generator().manual_seed(settings.seed)
        setup = Setup(classes, threat_of(settings.threat), generator, network, settings.epochs)
        objective = make_objective(settings, setup)
        targets = torch.from_numpy(np.asarray(labels, dtype=np.int64))
        held_out = _held_out_rows(targets.numpy(), objective.held_out, classes=classes, seed=settings.seed)
        rows_trained_on = torch.from_numpy(np.setdiff1d(np.arange(len(targets)), held_out))
        batch_sizes = _batch_sizes(len(rows_trained_on), settings.batch_size)
        trainer = Trainer(
            network,
            objective,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            steps=len(batch_sizes),
            epochs=settings.epochs,
            device=device,
            recipe=settings.recipe,
        )

        held_out_outcomes = partial(
            _held_out_outcomes, network, setup, images, targets, held_out, batch_size=settings.batch_size, device=device
        )

        first_epoch = 0
        if progress is not None:
            first_epoch = progress.restore(objects=trainer.objects, memory=objective.memory, generator=generator)
        for epoch in range(first_epoch, settings.epochs):
            order = torch.randperm(len(rows_trained_on), generator=generator)
            batches = rows_trained_on[order].split(batch_sizes)
            with seeded(settings.seed, epoch):
                for rows, pixels in _pixels_of_batches(images, batches):
                    trainer.step(pixels, targets[rows])
            if objective.after_epoch is not None:
                objective.after_epoch(EpochEnd(network, epoch + 1, held_out_outcomes))
            if progress is not None:
                progress.save(epoch + 1, objects=trainer.objects, memory=objective.memory, generator=generator)
        if objective.finish is not None:
            objective.finish(network)
        return network.cpu().eval()


def _batch_sizes(image_count: int, batch_size: int) -> list[int]:
    # A single image that is left joins the last batch, since networks with batch statistics need two.
    sizes = [batch_size] * (image_count // batch_size)
    remainder = image_count % batch_size
    if remainder == 1 and sizes:
        sizes[-1] += 1
    elif remainder:
        sizes.append(remainder)
    return sizes


def _pixels_of_batches(images: Images, batches: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    # Rows (n,) and pixels (n, C, H, W) float32 of batches.
    selected = selected_batches(images, [rows.numpy() for rows in batches])
    for rows, pixels in zip(batches, selected, strict=True):
        yield rows, torch.from_numpy(np.ascontiguousarray(pixels, dtype=np.float32))


def _held_out_outcomes(
    network: Module,
    setup: Setup,
    images: Images,
    targets: Tensor,
    held_out: NDArray[np.int64],
    *,
    batch_size: int,
    device: str,
) -> HeldOut:
    # Which held-out images are classified correctly, before and after PGD, which draws its random starts from the
    # generator of the training: its state is saved after the epoch.
    rows_held_out = torch.from_numpy(held_out)
    network.eval()
    clean = []
    robust = []
    for rows, pixels in _pixels_of_batches(images, rows_held_out.tensor_split(-(-len(held_out) // batch_size))):
        clean_of_batch, robust_of_batch = setup.outcomes(network, pixels.to(device), targets[rows].to(device))
        clean.append(clean_of_batch.cpu())
        robust.append(robust_of_batch.cpu())
    network.train()
    return HeldOut(targets[rows_held_out], torch.cat(clean), torch.cat(robust))


def _held_out_rows(labels: NDArray[np.int64], share: float, *, classes: int, seed: int) -> NDArray[np.int64]:
    # Rows of the share of each class that a method holds out, in ascending order.
    if share == 0:
        return np.empty(0, dtype=np.int64)
    rows = np.arange(len(labels))
    is_held_out = split_samples(rows, labels, share=share, rng=np.random.default_rng(seed))
    for selected, use, change in ((is_held_out, "held out", "raise"), (~is_held_out, "left to train on", "lower")):
        counts = np.bincount(labels[selected], minlength=classes)
        if (counts == 0).any():
            raise InputError(
                f"with held_out {share:g} no image of class {counts.argmin()} is {use}; {change} it, or train on more "
                "images of this class"
            )
    return rows[is_held_out]


def describe_training(
    network: Module, train: ImageSet, test: ImageSet, *, settings: Training, attack: Attack
) -> dict[str, object]:
    """Settings and accuracies of a trained classifier, a mapping for JSON; accuracies are fractions.

    Parameters
    ----------
    network : Module
        The classifier, which is moved to the device and back to the CPU.
    train, test : ImageSet
        Images that its accuracy is measured on.
    settings : Training
        Settings of the training, whose device is used here too.
    attack : Attack
        PGD for robust accuracy on the test images: of all, and of each class that they have, in label order.

    Raises
    ------
    InputError
        For "cuda" without a CUDA device.
    """
    device = hold_device(settings.device)
    network.to(device)
    with reproducible_arithmetic():
        robust = _survivors(network, test, attack)
    train_accuracy = _clean_accuracy(network, train, device=device)
    clean_accuracy = _clean_accuracy(network, test, device=device)
    network.cpu()

    robust_by_class = [float(robust[test.labels == label].mean()) for label in np.unique(test.labels)]
    name = attack_name(norm=attack.norm, eps=attack.eps, steps=attack.steps, restarts=attack.restarts)
    return {
        "method": settings.method,
        "architecture": settings.architecture,
        "parameters": sum(value.numel() for value in network.parameters()),
        "epochs": settings.epochs,
        "seed": settings.seed,
        "device": device,
        "torch": str(torch.__version__),
        "train_accuracy": train_accuracy,
        "clean_accuracy": clean_accuracy,
        "robust_accuracy": float(robust.mean()),
        "robust_accuracy_per_class": robust_by_class,
        "robust_accuracy_attack": f"{name}, test split",
    }


def _survivors(network: Module, images: ImageSet, attack: Attack) -> NDArray[np.bool_]:
    # Which images withstand the attack. It may need more memory than the training; with a smaller batch size it
    # restarts, so that the random draws depend on the size alone.
    batch_size = ATTACKED_AT_ONCE
    trainable = [weights for weights in network.parameters() if weights.requires_grad]
    for weights in trainable:
        # Attacks need no gradients of weights.
        weights.requires_grad_(False)
    try:
        while True:
            try:
                return survivors(
                    network,
                    images.full_batches(batch_size),
                    images.labels,
                    norm=attack.norm,
                    eps=attack.eps,
                    step_size=attack.step_size,
                    steps=attack.steps,
                    restarts=attack.restarts,
                    seed=attack.seed,
                )
            except Exception as error:
                if batch_size == 1 or not out_of_memory(error):
                    raise
            # Outside the handler, since the exception refers to the tensors that filled the memory.
            batch_size = (batch_size + 1) // 2
            print(f"out of memory: attacked {batch_size} images at a time from here")
    finally:
        for weights in trainable:
            weights.requires_grad_(True)


def _clean_accuracy(network: Module, images: ImageSet, *, device: str) -> float:
    _, labels, logits = extract_logits(network, images, device=device)
    return float(np.mean(predictions(logits, labels) == labels))
