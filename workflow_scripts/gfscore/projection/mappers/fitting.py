"""Training of mappers of every kind, which can be resumed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.core.files import atomic
from gfscore.images.manifests import open_described
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.devices import require_device
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.trained import KEPT_EVERY_S, TrainingProgress
from gfscore.projection.mappers.conditions import conditions_by_sample, placed
from gfscore.projection.mappers.declared import mapper_kinds

SMALLEST_SIDE = 8


def build_mapper(
    kind: str, image_shape: Sequence[int], *, names: Sequence[str] | None = None, seed: int = 0, **arguments: Any
) -> Any:
    """Newly initialised mapper for images (C, H, W) with sides of at least 8 pixels, a torch module.

    `kind` is the name of a declaration; `names` are those of the conditions (A,), if any; `seed` that of the weights,
    `arguments` those of the kind. The attribute `recipe` of the result holds the arguments to build it again. Raises
    InputError for an unknown kind and for smaller images.
    """
    import torch

    if kind not in mapper_kinds():
        raise InputError(unknown("kind of mapper", kind, mapper_kinds()))
    _, height, width = image_shape
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"mapper kind {kind!r} needs images of at least 8x8 pixels, got {height}x{width}")
    # The initialisation uses torch's global generator, which is forked so that other draws do not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = import_module(f"gfscore.projection.mappers.{kind}").build(tuple(image_shape), names, **arguments)
    network.recipe = {"kind": kind, "image_shape": list(image_shape), "names": names, "arguments": arguments}
    return network


ARGUMENTS = {
    "beta_vae": ("latent", "width", "features", "beta", "pixel_sd"),
    "conditional": ("latent", "width", "features", "adversarial_weight", "attribute_weight"),
}
"""Settings that are arguments of the network, by kind."""


READ_AT_ONCE = 256


def conditioned_images(
    path_to_manifest: Path | str,
    path_to_attributes: Path | str | None,
    categories: Mapping[str, Sequence[str]] | None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, dict[str, Any]]:
    """Images (n, C, H, W), conditions (n, A) or None, and the manifest of a dataset.

    `path_to_attributes` and `categories` are None for a mapper without conditions. If the dataset has more than `most`
    images, a random subset of that size is drawn with `seed`, in the order of the dataset.
    """
    images, described = open_described(path_to_manifest)
    if most is not None and len(images) > most:
        # Random, since many datasets are sorted by class.
        images = images.select(np.sort(np.random.default_rng(seed).choice(len(images), most, replace=False)))
    of_samples = conditions_by_sample(path_to_attributes, categories, dataset=described["dataset"])
    return _pixels(images), of_samples(images.sample_id).get("conditions"), described


def _pixels(images):
    # Filled batch by batch, since concatenation would need the memory twice.
    pixels, start = np.empty((len(images), *images.image_shape), dtype=np.float32), 0
    for batch in images.batches(READ_AT_ONCE):
        pixels[start : start + len(batch)] = batch
        start += len(batch)
    return pixels


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


# ---- Trained mappers as safetensors files, with a numpy interface.


HEADER_KEY = "gfscore"

BATCH = 256
"""Images per batch in the network."""


@dataclass(frozen=True)
class Mapper:
    """Encoder and decoder of images (n, C, H, W) float32 in [0, 1], on the device of its network.

    `names` (D,) are the latent dimensions that are moved, the first D columns of codes (n, Z); `sigma` (D,) is the unit
    of each: the standard deviation of the aggregated latent, or the range of a condition; `limits` (low, high) is the
    range of their values, or None.
    """

    network: Any
    names: list[str]
    sigma: NDArray[np.float64]
    limits: tuple[float, float] | None

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of its images."""
        channels, height, width = self.network.recipe["image_shape"]
        return channels, height, width

    def to(self, device: str) -> Self:
        """Move the network to a device ("cpu", "cuda")."""
        self.network.to(device)
        return self

    def encode(
        self, images: NDArray[np.float32], conditions: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Codes (n, Z) float32, and the posterior standard deviations (n, D) of the movable dimensions.

        `conditions` (n, A) are those of a conditional mapper; missing ones (NaN) are set to UNKNOWN.
        """
        import torch

        device, batches = next(self.network.parameters()).device, []
        with torch.inference_mode():
            for at in range(0, len(images), BATCH):
                x = torch.from_numpy(images[at : at + BATCH]).to(device)
                known = None if conditions is None else torch.from_numpy(placed(conditions[at : at + BATCH])).to(device)
                batches.append(self.network.encode(x, known))
        codes, spread = (torch.cat(parts).cpu().numpy() for parts in zip(*batches, strict=True))
        return codes, spread

    def decode(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Images of codes (n, Z)."""
        import torch

        device = next(self.network.parameters()).device
        with torch.inference_mode():
            parts = torch.from_numpy(codes).to(device).split(BATCH)
            return torch.cat([self.network.decode(part) for part in parts]).cpu().numpy()


def of_network(network: Any, images: NDArray[np.float32], conditions: NDArray[np.float32] | None = None) -> Mapper:
    """Mapper of a network, with the unit of every dimension measured on images (N, C, H, W)."""
    unscaled = Mapper(network, list(network.names), np.ones(len(network.names)), network.limits)
    if network.limits is not None:
        return replace(unscaled, sigma=np.full(len(unscaled.names), np.ptp(network.limits)))
    codes, spread = (values.astype(np.float64) for values in unscaled.encode(images, conditions))
    # Law of total variance: variance of the means plus mean of the variances.
    return replace(unscaled, sigma=np.sqrt(codes.var(axis=0) + (spread**2).mean(axis=0)))


def save_mapper(path: Path | str, mapper: Mapper, *, metadata: object) -> str:
    """Write a Mapper to a safetensors file, atomically; returns its SHA-256 (hex). Equal mappers give equal bytes."""
    from safetensors.torch import save

    # A single key, since the order of safetensors' metadata differs between runs.
    header = {"recipe": mapper.network.recipe, "sigma": mapper.sigma.tolist(), "metadata": metadata}
    weights = {name: value.detach().cpu().contiguous() for name, value in mapper.network.state_dict().items()}
    content = save(weights, metadata={HEADER_KEY: json.dumps(header, sort_keys=True)})
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def open_mapper(path: Path | str, *, sha256: str) -> Mapper:
    """Mapper written by train_mapper, on the CPU in eval mode.

    `sha256` (hex) is verified before anything is parsed. Raises InputError, naming the file, for a missing file,
    another digest, a file that holds no mapper, and weights that do not fit.
    """
    from safetensors import safe_open
    from safetensors.torch import load_file

    require_digest(path, sha256)
    try:
        with safe_open(path, "pt") as file:
            header = json.loads(file.metadata()[HEADER_KEY])
        recipe = header["recipe"]
        network = build_mapper(recipe["kind"], recipe["image_shape"], names=recipe["names"], **recipe["arguments"])
        network.load_state_dict(load_file(path))
        sigma = np.array(header["sigma"], dtype=np.float64)
        if sigma.shape != (len(network.names),) or not (np.isfinite(sigma) & (sigma >= 0)).all():
            raise ValueError(f"sigma is {header['sigma']}")
    # A file of another version may cause any error.
    except Exception as error:
        raise InputError(f"{path}: no mapper of this version ({error}); delete it to train it again") from error
    return Mapper(network.eval(), list(network.names), sigma, network.limits)
