"""Random numbers that belong to samples: each sample's come from a key of its own, whatever is drawn beside it.

The numbers of a key are those of SplitMix64 begun at it: the j-th is a function of key and j alone, in arithmetic of
integers. So a batch is drawn at once, any copy of an image without those before it, and alike on every device. Source:
Steele, Lea and Flood 2014, with the constants of Stafford's thirteenth mixer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

STEP = 0x9E3779B97F4A7C15
"""Between the states of two numbers of a key: 2^64 over the golden ratio."""

MIXER = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shifts and factors, in turn, that make a number of a state."""

PART = 1 << 16
"""Numbers of 64 bits made at a time on a processor, so that they stay in its cache."""


def seeds_of_samples(seed: int, name: str, rows: ArrayLike) -> NDArray[np.uint64]:
    """Seeds (n,) uint64 of samples by their rows (n,) in a dataset, for the draws of a `name`."""
    start = np.random.SeedSequence([seed, crc32(name.encode())]).generate_state(1, np.uint64)
    with np.errstate(over="ignore"):
        mixed = start + np.asarray(rows, dtype=np.uint64) * np.uint64(STEP)
        for shift, factor in MIXER:
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


@dataclass(frozen=True)
class Draws:
    """Random numbers of n samples: `keys` (n,) int64, where the numbers are wanted.

    `common` is a seed of what all samples share. Drawing twice gives the same numbers; others come from another stream.
    """

    keys: Tensor
    common: int = 0

    @classmethod
    def of(cls, seeds: NDArray[np.uint64], device: torch.device | str, *, common: int = 0) -> Draws:
        """Numbers by the seeds (n,) of the samples."""
        import torch

        return cls(torch.from_numpy(np.asarray(seeds, dtype=np.uint64).view(np.int64)).to(device), common)

    @property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds (n,) of these samples or copies, for numbers that are drawn otherwise."""
        return self.keys.cpu().numpy().view(np.uint64)

    def __getitem__(self, rows: Tensor) -> Draws:
        """Those of some of the samples, by their numbers."""
        return Draws(self.keys[rows], self.common)

    def stream(self, number: int) -> Draws:
        """Other numbers of the same samples, independent of these and of those of every other stream."""
        # Mixed twice, so that streams of one key are not those of another a few steps away.
        keys = _mixed(_mixed(self.keys.clone()).add_(_signed((number + 1) * STEP % 2**64)))
        return Draws(keys, int(np.random.SeedSequence([self.common, number]).generate_state(1)[0]))

    def copies(self, each: int, first: int = 0) -> Draws:
        """Numbers of `each` copies of every sample, those of a sample one after the other, from its `first` copy on."""
        import torch

        # On the other side of the key than streams.
        places = torch.arange(first + 1, first + each + 1, device=self.keys.device).mul_(-_signed(STEP))
        return Draws(_mixed((_mixed(self.keys.clone())[:, None] + places).flatten()), self.common)

    def uniform(self, shape: Sequence[int]) -> Tensor:
        """Numbers (n, *shape) float32 uniform in [-1, 1], multiples of 2^-31 rounded to float32."""

        def fill(out: Tensor, numbers: Tensor) -> None:
            import torch

            out.copy_(numbers.view(torch.int32)).mul_(2.0**-31)

        return self._filled(shape, fill)

    def normal(self, shape: Sequence[int], *, std: float = 1.0) -> Tensor:
        """Normal numbers (n, *shape) float32 with mean 0, none beyond 6.6 deviations. Source: Box and Muller 1958."""

        def fill(out: Tensor, numbers: Tensor) -> None:
            import torch

            pairs = out.copy_(numbers.view(torch.int32)).unflatten(1, (2, -1))
            radius = pairs[:, 0].abs().add_(1).mul_(2.0**-31).log_().mul_(-2 * std**2).sqrt_()
            angle = pairs[:, 1] * (math.pi / 2**31)
            torch.mul(radius, angle.cos(), out=pairs[:, 0])
            torch.mul(radius, angle.sin_(), out=pairs[:, 1])

        return self._filled(shape, fill)

    def generator(self) -> torch.Generator:
        """A generator for what draws for a whole batch at once: seeded by all of its samples together."""
        import torch

        return torch.Generator(self.keys.device).manual_seed(int(_mixed(self.keys.clone()).sum()) & (2**63 - 1))

    def _filled(self, shape: Sequence[int], fill: Callable[[Tensor, Tensor], None]) -> Tensor:
        import torch

        wanted = math.prod(shape)
        pairs = (wanted + 1) // 2
        device = self.keys.device
        out = torch.empty(len(self.keys), 2 * pairs, device=device)
        places = torch.arange(1, pairs + 1, device=device).mul_(_signed(STEP))
        rows = max(1, PART // max(1, pairs)) if device.type == "cpu" else len(self.keys)
        for keys, part in zip(self.keys.split(rows), out.split(rows), strict=True):
            fill(part, _mixed(keys[:, None] + places))
        return out[:, :wanted].reshape(-1, *shape)


class RowGenerators:
    """A numpy Generator of each of n images, called as one: what it draws has one row per image.

    `seeds` (n,) uint64; generators of the same seeds and another `stream` are independent of these.
    """

    def __init__(self, seeds: NDArray[np.uint64], stream: int = 0) -> None:
        """Begin with every image's first number."""
        # The key of Philox has 128 bits, and is not hashed, which would take longer than drawing for a small image.
        keys = [int(seed) + (stream << 64) for seed in seeds]
        self._each = [np.random.Generator(np.random.Philox(key=key)) for key in keys]

    def __iter__(self) -> Iterator[np.random.Generator]:
        """Those of the images, one by one."""
        return iter(self._each)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> RowGenerators:
        """Those of some of the images, which go on where they are."""
        part = object.__new__(RowGenerators)
        part._each = [self._each[row] for row in np.arange(len(self._each))[rows]]
        return part

    def standard_normal(self, shape: Sequence[int]) -> NDArray[np.float64]:
        """Normal numbers (n, ...) with mean 0 and standard deviation 1."""
        return np.stack([rng.standard_normal(shape[1:]) for rng in self])

    def normal(self, mean: float, deviation: float, shape: Sequence[int]) -> NDArray[np.float64]:
        """Normal numbers (n, ...)."""
        return np.stack([rng.normal(mean, deviation, shape[1:]) for rng in self])

    def random(self, shape: Sequence[int]) -> NDArray[np.float64]:
        """Uniform numbers (n, ...) in [0, 1)."""
        return np.stack([rng.random(shape[1:]) for rng in self])

    def uniform(self, lowest: float, highest: float, shape: Sequence[int]) -> NDArray[np.float64]:
        """Uniform numbers (n, ...) between two others."""
        return np.stack([rng.uniform(lowest, highest, shape[1:]) for rng in self])

    def integers(self, lowest: int, beyond: int, shape: Sequence[int]) -> NDArray[np.int64]:
        """Uniform integers (n, ...) from `lowest` to below `beyond`."""
        return np.stack([rng.integers(lowest, beyond, shape[1:]) for rng in self])

    def poisson(self, means: NDArray[np.float64]) -> NDArray[np.int64]:
        """Poisson numbers with means (n, ...)."""
        return np.stack([rng.poisson(mean) for rng, mean in zip(self, means, strict=True)])


def _mixed(states: Tensor) -> Tensor:
    # In place. Shifts of signed integers repeat the sign, which is masked.
    import torch

    shifted = torch.empty_like(states)
    for shift, factor in MIXER:
        torch.bitwise_right_shift(states, shift, out=shifted)
        states ^= shifted.bitwise_and_(2 ** (64 - shift) - 1)
        if factor != 1:
            states *= _signed(factor)
    return states


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
