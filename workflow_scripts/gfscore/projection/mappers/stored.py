"""Trained mappers as safetensors files, with a numpy interface."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.networks.checkpoint_files import require_digest
from gfscore.projection.mappers import build_mapper
from gfscore.projection.mappers.conditions import placed

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
