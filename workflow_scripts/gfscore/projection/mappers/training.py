"""Training of mappers of every kind, which can be resumed."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.networks.inference import reproducible_arithmetic, require_device
from gfscore.networks.resuming import KEPT_EVERY_S, TrainingProgress
from gfscore.projection.mappers import build_mapper

ARGUMENTS = {
    "beta_vae": ("latent", "width", "features", "beta", "pixel_sd"),
    "conditional": ("latent", "width", "features", "adversarial_weight", "attribute_weight"),
}
"""Settings that are arguments of the network, by kind."""


def fit_mapper(
    images: NDArray[np.float32],
    settings: Mapping[str, Any],
    *,
    path_to_progress: Path | str,
    version: object,
    conditions: NDArray[np.float32] | None = None,
    names: Sequence[str] | None = None,
    every_s: float = KEPT_EVERY_S,
) -> tuple[Any, dict[str, float]]:
    """Mapper fitted to images, a torch module in eval mode on the CPU, and the mean losses of its last epoch by name.

    Takes `images` (N, C, H, W) float32 in [0, 1]; `settings` with kind, epochs, batch_size, learning_rate, seed, device
    ("cpu" or "cuda") and those of the kind; `conditions` (N, A), NaN where missing, with their `names`, for the
    conditional kind. Adam at a constant learning rate. On one machine the result on the CPU is deterministic,
    interrupted or not: after an epoch, at most every `every_s` seconds, the state is saved in the file
    `path_to_progress` with an identity of images, settings and `version`; the caller removes it. Raises InputError for
    "cuda" without a CUDA device, and as build_mapper does.
    """
    import torch

    device = settings["device"]
    require_device(device)
    arguments = {key: settings[key] for key in ARGUMENTS.get(settings["kind"], ())}
    identity = [settings, version, _digest(images), _digest(conditions), names]
    progress = TrainingProgress(path_to_progress, identity, every_s=every_s)
    with reproducible_arithmetic():
        # All random numbers are drawn on the CPU, for every device.
        seed = settings["seed"]
        generator = torch.Generator().manual_seed(seed)
        network = build_mapper(settings["kind"], images.shape[1:], names=names, seed=seed, **arguments).to(device)
        trainer = network.trainer(settings["learning_rate"], generator)
        x = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))
        known = torch.zeros(len(x), 0) if conditions is None else torch.from_numpy(conditions)
        losses = torch.zeros(len(trainer.losses), dtype=torch.float64)
        state = {"parts": trainer.parts, "memory": {"losses": losses}, "generator": generator}
        network.train()
        for epoch in range(progress.restore(**state), settings["epochs"]):
            order = torch.randperm(len(x), generator=generator).split(settings["batch_size"])
            steps = [trainer.step(x[rows].to(device), known[rows].to(device)) for rows in order]
            losses.copy_(torch.tensor(steps, dtype=torch.float64).mean(dim=0))
            progress.keep(epoch + 1, **state)
    return network.cpu().eval(), dict(zip(trainer.losses, losses.tolist(), strict=True))


def _digest(values):
    if values is None:
        return None
    contiguous: Any = np.ascontiguousarray(values, dtype="<f4")
    return hashlib.sha256(contiguous).hexdigest()
