"""How a classifier is trained besides what is minimised: schedule, clipping, precision, augmentation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

PLAIN: dict[str, Any] = {"clip_norm": None, "mixed_precision": False, "augmentation": None}
"""What a training without a recipe does: nothing of it; its learning rate goes through one cycle."""


class Trainer:
    """Steps of AdamW on an objective by a recipe.

    `recipe` is None for one cycle of the learning rate (Smith and Topin 2019) in float32, or a mapping: `schedule`
    ("cosine"), `warmup_epochs`, `clip_norm` (largest l2 norm of the gradient, None for any), `mixed_precision` (float16
    on a GPU, bfloat16 on the CPU, where it saves nothing), `augmentation` (None, or `scale` and `ratio` of a random
    crop, `flip`, the share of mirror images, `colour_jitter`). Weight decay is decoupled and of all parameters.
    Raises InputError for a warm-up as long as the training.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Callable[[nn.Module, Tensor, Tensor], Tensor],
        *,
        learning_rate: float,
        weight_decay: float,
        steps: int,
        epochs: int,
        device: str,
        recipe: Mapping[str, Any] | None,
    ) -> None:
        """Make optimiser and schedule; `steps` are those of an epoch, `device` is "cpu" or "cuda"."""
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
        # Gradients of float16 underflow unless the loss is scaled; bfloat16 has the exponents of float32.
        self.scaler = torch.amp.GradScaler(device, enabled=self.recipe["mixed_precision"] and device == "cuda")
        self.augment = augmentation(self.recipe["augmentation"])

    @property
    def parts(self) -> dict[str, Any]:
        """What has to be kept to go on with the training, by name: objects with state_dict and load_state_dict."""
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
    """Factor of the learning rate by step: a line up to 1 at step `warmup`, then half a cosine down to 0 at `steps`.

    Raises InputError for a warm-up that leaves no step. Source: Loshchilov and Hutter 2017, without restarts.
    """
    if warmup >= steps:
        raise InputError(f"a warm-up of {warmup:g} of {steps} steps leaves none to train with; lower warmup_epochs")

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2

    return factor


def augmentation(settings: Mapping[str, Any] | None) -> Callable[[Tensor], Tensor]:
    """Function from images (n, C, H, W) in [0, 1] to randomly changed ones of the same shape; None changes nothing.

    The transformations are timm's for training, each image by itself: a crop of a share `scale` of the image with an
    aspect `ratio`, both (low, high), resized back by bilinear or bicubic interpolation; mirrored left to right with
    probability `flip`; brightness, contrast and saturation changed by factors of up to 1 +- `colour_jitter` (colour
    images only). Drawn from Python's and torch's global generators: see `seeded`.
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

    # timm imports torchvision, which beside a CPU build of torch needs help.
    import_torchvision()
    from timm.data import create_transform

    chosen = {"scale": tuple(settings["scale"]), "ratio": tuple(settings["ratio"]), "hflip": settings["flip"]}
    chosen |= {"color_jitter": settings["colour_jitter"], "interpolation": "random"}
    crop, colours, _ = create_transform(size, is_training=True, separate=True, **chosen)
    return lambda image: colours(crop(image))


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """Seed the global generators of Python and torch by whole numbers, and put them back afterwards.

    Dropout, drop-path and timm's augmentation draw from them. Seeded anew for each epoch, they need not be kept when a
    training is interrupted.
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
