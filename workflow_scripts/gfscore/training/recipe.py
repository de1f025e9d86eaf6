"""Training steps: optimiser, schedule, gradient clipping, precision, augmentation."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.tensors import Module, Tensor

PLAIN: dict[str, Any] = {"clip_norm": None, "mixed_precision": False, "augmentation": None}
"""Settings of a training without a recipe, whose learning rate follows one cycle."""


class Trainer:
    """Steps of AdamW on an objective by a recipe.

    `recipe` is None for one cycle of the learning rate (Smith and Topin 2019) in float32, or a mapping: `schedule`
    ("cosine"), `warmup_epochs`, `clip_norm` (largest l2 norm of the gradient, or None), `mixed_precision` (float16 on a
    GPU, bfloat16 on the CPU), `augmentation` (None, or the arguments of `augmentation`). Weight decay is decoupled and
    applies to all parameters. Raises InputError for a warm-up as long as the training.
    """

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
        recipe: Mapping[str, Any] | None,
    ) -> None:
        """Create optimiser and schedule; `steps` per epoch, `device` "cpu" or "cuda"."""
        import torch

        self.network, self.objective, self.device = network, objective, device
        self.recipe: Mapping[str, Any] = recipe or PLAIN
        self.optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
        total = epochs * steps
        if recipe is None:
            self.schedule: Any = torch.optim.lr_scheduler.OneCycleLR(
                self.optimiser, learning_rate, total_steps=total, pct_start=0.2
            )
        else:
            factor = cosine_with_warmup(total, warmup=recipe["warmup_epochs"] * steps)
            self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, factor)
        # float16 gradients underflow unless the loss is scaled; bfloat16 has the exponent range of float32.
        self.scaler = torch.amp.GradScaler(device, enabled=self.recipe["mixed_precision"] and device == "cuda")
        self.augment = augmentation(self.recipe["augmentation"])

    @property
    def parts(self) -> dict[str, Any]:
        """Objects with state_dict and load_state_dict that must be saved to resume the training, by name."""
        names = ("network", "optimiser", "schedule", "scaler")
        return {name: getattr(self, name) for name in names}

    def step(self, images: Tensor, labels: Tensor) -> None:
        """One step on a batch: images (n, C, H, W) in [0, 1], labels (n,)."""
        import torch

        self.optimiser.zero_grad()
        x, y = self.augment(images.to(self.device)), labels.to(self.device)
        reduced = torch.bfloat16 if self.device == "cpu" else torch.float16
        with torch.autocast(self.device, dtype=reduced, enabled=self.recipe["mixed_precision"]):
            loss = self.objective(self.network, x, y)
        self.scaler.scale(loss).backward()
        if self.recipe["clip_norm"] is not None:
            self.scaler.unscale_(self.optimiser)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe["clip_norm"])
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


def augmentation(settings: Mapping[str, Any] | None) -> Callable[[Tensor], Tensor]:
    """Function from images (n, C, H, W) in [0, 1] to augmented ones of the same shape; the identity for None.

    timm's training transformations, independent for each image: a crop of a share `scale` of the area with an aspect
    `ratio`, both (low, high), resized back by bilinear or bicubic interpolation; a horizontal flip with probability
    `flip`; brightness, contrast and saturation changed by factors of up to 1 +- `colour_jitter` (colour images only).
    Uses Python's and torch's global random generators: see `seeded`.
    """
    if settings is None:
        return lambda images: images

    def augment(images: Tensor) -> Tensor:
        import torch

        transform = _of_timm(settings, tuple(images.shape[2:]))
        return torch.stack([transform(image) for image in images]).clamp(0, 1)

    return augment


def _of_timm(settings, size):
    from gfscore.networks.compatibility import import_torchvision

    # timm imports torchvision, which may need mending for a CPU build of torch.
    import_torchvision()
    from timm.data import create_transform

    chosen = {"scale": tuple(settings["scale"]), "ratio": tuple(settings["ratio"]), "hflip": settings["flip"]}
    chosen |= {"color_jitter": settings["colour_jitter"], "interpolation": "random"}
    crop, colours, _ = create_transform(size, is_training=True, separate=True, **chosen)
    return lambda image: colours(crop(image))


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """Seed the global random generators of Python and torch by integers, and restore them afterwards.

    Dropout, drop-path and timm's augmentation use them. They are seeded for each epoch, so their states need not be
    saved with an interrupted training.
    """
    import numpy as np
    import torch

    before, number = random.getstate(), int(np.random.SeedSequence(seed).generate_state(1)[0])
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(number)
            random.seed(number)
            yield
    finally:
        random.setstate(before)
