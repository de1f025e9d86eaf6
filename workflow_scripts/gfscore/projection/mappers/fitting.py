"""Mappers: building, training, which can be resumed, and storing as safetensors files."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from gfscore.core.errors import InputError
from gfscore.core.mappings import only
from gfscore.images.manifests import Manifest, open_described
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.devices import hold_device
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.networks.trained import SAVE_EVERY_S, TrainingProgress, header_of, save_network
from gfscore.projection.mappers.conditions import Categories, conditions_by_sample, imputed
from gfscore.projection.mappers.declared import MAPPERS_PACKAGE, MapperSettings, mapper_kinds
from gfscore.projection.mappers.networks import MapperNetwork

SMALLEST_SIDE = 8

BATCH = 256
"""Images per batch in the network, and when they are read."""


def conditioned_images(
    path_to_manifest: Path | str,
    path_to_attributes: Path | str | None,
    categories: Categories | None,
    *,
    most: int | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, Manifest]:
    """Images of a dataset, and the conditions of a mapper for them.

    Parameters
    ----------
    path_to_manifest : path or str
        Manifest of the dataset.
    path_to_attributes : path or None
        Table of its attributes; None for a mapper without conditions.
    categories : mapping or None
        Categories of the attributes that condition the mapper.
    most : int or None
        Largest number of images: from a larger dataset a random subset of this size is drawn with `seed`, in the order
        of the dataset.
    seed : int
        Seed of the draw.

    Returns
    -------
    images : ndarray of shape (n, C, H, W), float32
    conditions : ndarray of shape (n, A), float32, or None
    manifest : dict
        What the manifest holds.
    """
    images, manifest = open_described(path_to_manifest)
    if most is not None and len(images) > most:
        # Random, since many datasets are sorted by class.
        drawn = np.random.default_rng(seed).choice(len(images), most, replace=False)
        images = images.select(np.sort(drawn))

    # Filled batch by batch, since concatenation would need the memory twice.
    pixels = np.empty((len(images), *images.image_shape), dtype=np.float32)
    start = 0
    for batch in images.batches(BATCH):
        pixels[start : start + len(batch)] = batch
        start += len(batch)
    of_samples = conditions_by_sample(path_to_attributes, categories, dataset=manifest["dataset"])
    return pixels, of_samples(images.sample_id).get("conditions"), manifest


def build_mapper(
    kind: str, image_shape: Sequence[int], *, names: Sequence[str] | None = None, seed: int = 0, **arguments: Any
) -> MapperNetwork:
    """Newly initialised mapper.

    Parameters
    ----------
    kind : str
        Name of a declaration.
    image_shape : sequence of int
        (C, H, W), with sides of at least 8 pixels.
    names : sequence of str or None
        Names of the conditions (A,); None for a kind without.
    seed : int
        Seed of the weights.
    **arguments
        Arguments of the kind.

    Returns
    -------
    MapperNetwork
        Its `recipe` holds the arguments to build it again.

    Raises
    ------
    InputError
        For smaller images.
    """
    channels, height, width = image_shape
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"mapper kind {kind!r} needs images of at least 8x8 pixels, got {height}x{width}")
    # The initialisation uses torch's global generator, which is forked so that other draws do not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = import_module(f"{MAPPERS_PACKAGE}.{kind}")
        network: MapperNetwork = module.build((channels, height, width), names, **arguments)
    network.recipe = {"kind": kind, "image_shape": list(image_shape), "names": names, "arguments": arguments}
    return network


def fit_mapper(
    images: NDArray[np.float32],
    settings: MapperSettings,
    *,
    path_to_progress: Path | str,
    version: str,
    conditions: NDArray[np.float32] | None = None,
    names: Sequence[str] | None = None,
    every_s: float = SAVE_EVERY_S,
) -> tuple[MapperNetwork, dict[str, float]]:
    """Mapper fitted to images.

    Adam at a constant learning rate. On one machine the result on the CPU is deterministic, interrupted or not.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W), float32
        In [0, 1].
    settings : MapperSettings
        Kind, epochs and the like; the device is "cpu" or "cuda".
    path_to_progress : path or str
        File in which the state is saved after an epoch, at most every `every_s` seconds, with an identity of images,
        settings and `version`; the caller removes it.
    version : str
        Version of the training.
    conditions : ndarray of shape (N, A), float32, or None
        Conditions, NaN where missing, for kinds that have them.
    names : sequence of str or None
        Their names (A,).
    every_s : float
        Time between two saves.

    Returns
    -------
    network : MapperNetwork
        In eval mode on the CPU.
    losses : dict
        Mean losses of the last epoch by name.

    Raises
    ------
    InputError
        For "cuda" without a CUDA device, and where a loss is not finite; see also build_mapper.
    """
    hold_device(settings.device)
    values = settings.explicit()
    arguments = only(values, mapper_kinds()[settings.kind].arguments)
    identity = [values, version, _digest(images), _digest(conditions), names]
    progress = TrainingProgress(path_to_progress, identity, every_s=every_s)
    with reproducible_arithmetic():
        # All random numbers are drawn on the CPU, for every device.
        generator = torch.Generator().manual_seed(settings.seed)
        network = build_mapper(settings.kind, images.shape[1:], names=names, seed=settings.seed, **arguments)
        network = network.to(settings.device)
        trainer = network.trainer(settings.learning_rate, generator)
        pixels = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))
        attributes = torch.zeros(len(pixels), 0) if conditions is None else torch.from_numpy(conditions)
        losses = torch.zeros(len(trainer.losses), dtype=torch.float64)

        memory = {"losses": losses}
        first_epoch = progress.restore(objects=trainer.objects, memory=memory, generator=generator)
        network.train()
        for epoch in range(first_epoch, settings.epochs):
            steps = []
            for rows in torch.randperm(len(pixels), generator=generator).split(settings.batch_size):
                batch = pixels[rows].to(settings.device)
                losses_of_step = trainer.step(batch, attributes[rows].to(settings.device))
                if not np.isfinite(losses_of_step).all():
                    raise InputError(
                        f"the training diverged in epoch {epoch + 1}: a loss is not finite; lower learning_rate"
                    )
                steps.append(losses_of_step)
            losses.copy_(torch.tensor(steps, dtype=torch.float64).mean(dim=0))
            progress.save(epoch + 1, objects=trainer.objects, memory=memory, generator=generator)
    return network.cpu().eval(), dict(zip(trainer.losses, losses.tolist(), strict=True))


def _digest(values: NDArray[np.float32] | None) -> str | None:
    if values is None:
        return None
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f4").data).hexdigest()


@dataclass(frozen=True)
class Mapper:
    """Encoder and decoder of images (n, C, H, W) float32 in [0, 1], with a numpy interface.

    Attributes
    ----------
    network : MapperNetwork
        On its device.
    names : list of str
        The D latent dimensions that are moved, the first D columns of codes (n, Z).
    sigma : ndarray of shape (D,), float64
        Unit of each: the standard deviation of the aggregated latent, or the range of a condition.
    limits : tuple of float or None
        (low, high), the range of their values.
    """

    network: MapperNetwork
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

        `conditions` (n, A) are for a conditional mapper; missing ones (NaN) are set to UNKNOWN.
        """
        device = self._device()
        codes = []
        spreads = []
        with torch.inference_mode():
            for start in range(0, len(images), BATCH):
                rows = slice(start, start + BATCH)
                pixels = torch.from_numpy(images[rows]).to(device)
                attributes = None
                if conditions is not None:
                    attributes = torch.from_numpy(imputed(conditions[rows])).to(device)
                batch_codes, batch_spreads = self.network.encode(pixels, attributes)
                codes.append(batch_codes)
                spreads.append(batch_spreads)
        return torch.cat(codes).cpu().numpy(), torch.cat(spreads).cpu().numpy()

    def decode(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Images of codes (n, Z)."""
        with torch.inference_mode():
            batches = torch.from_numpy(codes).to(self._device()).split(BATCH)
            return torch.cat([self.network.decode(batch) for batch in batches]).cpu().numpy()

    def _device(self) -> torch.device:
        return next(self.network.parameters()).device


def of_network(
    network: MapperNetwork, images: NDArray[np.float32], conditions: NDArray[np.float32] | None = None
) -> Mapper:
    """Mapper of a network, with the unit of every dimension measured on images (N, C, H, W)."""
    unscaled = Mapper(network, list(network.names), np.ones(len(network.names)), network.limits)
    if network.limits is not None:
        low, high = network.limits
        return replace(unscaled, sigma=np.full(len(unscaled.names), high - low))
    codes, spread = unscaled.encode(images, conditions)
    # Law of total variance: variance of the means plus mean of the variances.
    variance_of_means = codes.astype(np.float64).var(axis=0)
    mean_variance = (spread.astype(np.float64) ** 2).mean(axis=0)
    return replace(unscaled, sigma=np.sqrt(variance_of_means + mean_variance))


def save_mapper(path: Path | str, mapper: Mapper, *, metadata: object) -> str:
    """Write a Mapper to a safetensors file, atomically; returns its SHA-256 (hex). Equal mappers give equal bytes."""
    header = {"recipe": mapper.network.recipe, "sigma": mapper.sigma.tolist(), "metadata": metadata}
    return save_network(path, mapper.network, header)


def open_mapper(path: Path | str, *, sha256: str) -> Mapper:
    """Mapper written by train_mapper, on the CPU in eval mode.

    `sha256` (hex) is verified before anything is parsed. Raises InputError, naming the file, for a missing file,
    another digest, a file that holds no mapper, and weights that do not fit.
    """
    require_digest(path, sha256)
    try:
        header = header_of(path)
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
