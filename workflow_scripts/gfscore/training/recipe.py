"""Training steps: optimiser, schedule, gradient clipping, precision, augmentation."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR

from gfscore.core.errors import InputError
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.trained import Stateful
from gfscore.networks.training_settings import Augmentation, Recipe

RISING_SHARE = 0.2
"""Share of the steps in which the learning rate of one cycle rises."""


class Trainer:
    """Steps of AdamW on an objective by a recipe. Weight decay is decoupled and applies to all parameters."""

    def __init__(
        self,
        network: Module,
        objective: Callable[[Module, Tensor, Tensor], Tensor],
        *,
        learning_rate: float,
        weight_decay: float,
        steps: int,
        epochs: int,
        device: str,
        recipe: Recipe | None,
    ) -> None:
        """Create optimiser and schedule.

        Parameters
        ----------
        network : Module
            On the device.
        objective : callable
            Function of the network, images and labels, which gives the loss to differentiate.
        learning_rate, weight_decay : float
            Settings of AdamW; the learning rate is the largest of the schedule.
        steps, epochs : int
            Steps per epoch, and epochs.
        device : str
            "cpu" or "cuda".
        recipe : Recipe or None
            Schedule, clipping, precision and augmentation; None for one cycle of the learning rate (Smith and Topin
            2019) in float32.

        Raises
        ------
        InputError
            For a warm-up as long as the training.
        """
        self.network = network
        self.objective = objective
        self.device = device
        self.steps = steps
        self.recipe = recipe or Recipe()
        self.optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
        self.schedule: LRScheduler
        if recipe is None:
            total = epochs * steps
            # Where the rise would be one step, torch divides by its length of 0.
            rising = 0.0 if RISING_SHARE * total == 1 else RISING_SHARE
            self.schedule = OneCycleLR(self.optimiser, learning_rate, total_steps=total, pct_start=rising)
        else:
            factor = cosine_with_warmup(epochs * steps, warmup=recipe.warmup_epochs * steps)
            self.schedule = LambdaLR(self.optimiser, factor)
        # float16 gradients underflow unless the loss is scaled; bfloat16 has the exponent range of float32.
        scaled = self.recipe.mixed_precision and device == "cuda"
        self.scaler = torch.amp.GradScaler(device, enabled=scaled)
        self.augment = augmentation(self.recipe.augmentation)

    @property
    def objects(self) -> Mapping[str, Stateful]:
        """Objects with state_dict and load_state_dict that must be saved to resume the training, by name."""
        return {
            "network": self.network,
            "optimiser": self.optimiser,
            "schedule": self.schedule,
            "scaler": self.scaler,
        }

    def step(self, images: Tensor, labels: Tensor) -> None:
        """One step on a batch: images (n, C, H, W) in [0, 1], labels (n,); InputError where the loss is not finite."""
        self.optimiser.zero_grad()
        augmented = self.augment(images.to(self.device))
        precision = torch.bfloat16 if self.device == "cpu" else torch.float16
        with torch.autocast(self.device, dtype=precision, enabled=self.recipe.mixed_precision):
            loss = self.objective(self.network, augmented, labels.to(self.device))
        # The scaler skips a step whose numbers overflow, and goes on with a smaller scale.
        if not self.scaler.is_enabled() and not loss.isfinite():
            epoch = self.schedule.last_epoch // self.steps + 1  # `last_epoch` counts steps
            raise InputError(
                f"the training diverged in epoch {epoch}: its loss became {loss.item():g}; lower learning_rate, or "
                "clip gradients (recipe, clip_norm)"
            )
        self.scaler.scale(loss).backward()
        if self.recipe.clip_norm is not None:
            self.scaler.unscale_(self.optimiser)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip_norm)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.schedule.step()


def cosine_with_warmup(steps: int, *, warmup: float) -> Callable[[int], float]:
    """Factor of the learning rate by step: linear up to 1 at step `warmup`, then half a cosine down to 0 at `steps`.

    Raises InputError if `warmup` is not below `steps`. Source: Loshchilov and Hutter 2017, without restarts.
    """
    if warmup >= steps:
        raise InputError(f"a warm-up of {warmup:g} of {steps} steps leaves none for training; lower warmup_epochs")

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2

    return factor


def augmentation(settings: Augmentation | None) -> Callable[[Tensor], Tensor]:
    """Function from images (n, C, H, W) in [0, 1] to augmented ones of the same shape; the identity for None.

    timm's training transformations, independent for each image: a crop of a share `scale` of the area with an aspect
    `ratio`, resized back by bilinear or bicubic interpolation; a horizontal flip with probability `flip`; brightness,
    contrast and saturation changed by factors of up to 1 +- `colour_jitter` (colour images only). Uses Python's and
    torch's global random generators: see `seeded`.
    """
    if settings is None:
        return lambda images: images

    def augment(images: Tensor) -> Tensor:
        # timm imports torchvision, which may need mending for a CPU build of torch.
        import_torchvision()
        from timm.data import create_transform

        crop, colours, _ = create_transform(
            tuple(images.shape[2:]),
            is_training=True,
            separate=True,
            scale=tuple(settings.scale),
            ratio=tuple(settings.ratio),
            hflip=settings.flip,
            color_jitter=settings.colour_jitter,
            interpolation="random",
        )
        return torch.stack([colours(crop(image)) for image in images]).clamp(0, 1)

    return augment


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """Seed the global random generators of Python and torch by integers, and restore them afterwards.

    Dropout, drop-path and timm's augmentation use them. They are seeded for each epoch, so their states need not be
    saved with an interrupted training.
    """
    state = random.getstate()
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    # A process on the processor must not begin to use a GPU.
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(number)
            random.seed(number)
            yield
    finally:
        random.setstate(state)
