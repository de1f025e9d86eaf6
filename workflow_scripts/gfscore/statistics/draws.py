"""Random numbers that belong to samples: each sample's come from a key of its own, independent of its batch.

The numbers of a key are the output of SplitMix64 that starts at the key: the j-th is a function of key and j alone, in
arithmetic of integers. So a batch is drawn at once, any copy of an image without those before it, and alike on every
device. Source: Steele, Lea and Flood 2014, with the constants of Stafford's thirteenth mixer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

STEP = 0x9E3779B97F4A7C15
"""Between the states of two numbers of a key: 2^64 over the golden ratio."""

MIXER = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shifts and factors of the steps that make a random number of a state, in their order."""

BLOCK = 1 << 16
"""Numbers of 64 bits made at a time on a processor, so that they stay in its cache."""


def seeds_of_samples(seed: int, name: str, rows: ArrayLike) -> NDArray[np.uint64]:
    """Seeds of samples by their rows in a dataset.

    Parameters
    ----------
    seed : int
        Seed of the measure.
    name : str
        What is drawn: draws of different names are independent.
    rows : array_like of shape (n,)
        Positions of the samples in the dataset.

    Returns
    -------
    ndarray of shape (n,), uint64
        The same for a sample whatever samples are beside it.
    """
    start = np.random.SeedSequence([seed, crc32(name.encode())]).generate_state(1, np.uint64)
    with np.errstate(over="ignore"):
        mixed = start + np.asarray(rows, dtype=np.uint64) * np.uint64(STEP)
        for shift, factor in MIXER:
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


@dataclass(frozen=True)
class Draws:
    """Random numbers of n samples; drawing twice gives the same numbers, other ones come from another stream.

    Attributes
    ----------
    keys : Tensor of shape (n,), int64
        Keys of the samples, on the device where the numbers are drawn.
    common : int
        Seed of what all samples share.
    """

    keys: Tensor
    common: int = 0

    @classmethod
    def of(cls, seeds: NDArray[np.uint64], device: torch.device | str, *, common: int = 0) -> Draws:
        """Numbers by the seeds (n,) of the samples, on a device."""
        keys = torch.from_numpy(np.asarray(seeds, dtype=np.uint64).view(np.int64))
        return cls(keys.to(device), common)

    @property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds (n,) of these samples or copies, for numbers that are drawn otherwise."""
        return self.keys.cpu().numpy().view(np.uint64)

    def __getitem__(self, rows: Tensor) -> Draws:
        """Numbers of some of the samples, by index or mask."""
        return Draws(self.keys[rows], self.common)

    def stream(self, number: int) -> Draws:
        """Another stream of numbers for the same samples, independent of all other streams."""
        # Mixed twice, so that a stream of one key is not a stream of another key a few steps away.
        states = _mixed(self.keys.clone())
        states.add_(_signed((number + 1) * STEP % 2**64))
        common = np.random.SeedSequence([self.common, number]).generate_state(1)[0]
        return Draws(_mixed(states), int(common))

    def copies(self, each: int, first: int = 0) -> Draws:
        """Numbers of copies of every sample.

        Parameters
        ----------
        each : int
            Copies of a sample, one after the other.
        first : int
            Number of the first copy.

        Returns
        -------
        Draws
            For n * each copies: all copies of the first sample, then of the next.
        """
        # On the other side of the key than streams.
        steps = torch.arange(first + 1, first + each + 1, device=self.keys.device).mul_(-_signed(STEP))
        states = _mixed(self.keys.clone())[:, None] + steps
        return Draws(_mixed(states.flatten()), self.common)

    def uniform(self, shape: Sequence[int]) -> Tensor:
        """Uniform numbers in [-1, 1], (n, *shape) float32: multiples of 2^-31 rounded to float32."""

        def fill(out: Tensor, numbers: Tensor) -> None:
            out.copy_(numbers.view(torch.int32)).mul_(2.0**-31)

        return self._filled(shape, fill)

    def normal(self, shape: Sequence[int], *, std: float = 1.0) -> Tensor:
        """Normal numbers with mean 0, (n, *shape) float32, none beyond 6.6 deviations.

        Of two uniform numbers u in (0, 1] and v in [-1, 1) come two normal ones, std sqrt(-2 ln u) cos(pi v) and
        std sqrt(-2 ln u) sin(pi v). Source: Box and Muller 1958.
        """

        def fill(out: Tensor, numbers: Tensor) -> None:
            pairs = out.copy_(numbers.view(torch.int32)).unflatten(1, (2, -1))
            u = pairs[:, 0].abs().add_(1).mul_(2.0**-31)
            radius = u.log_().mul_(-2 * std**2).sqrt_()
            angle = pairs[:, 1] * (math.pi / 2**31)
            torch.mul(radius, angle.cos(), out=pairs[:, 0])
            torch.mul(radius, angle.sin_(), out=pairs[:, 1])

        return self._filled(shape, fill)

    def generator(self) -> torch.Generator:
        """A generator for what draws for a whole batch at once: seeded by all of its samples together."""
        seed = int(_mixed(self.keys.clone()).sum()) & (2**63 - 1)
        return torch.Generator(self.keys.device).manual_seed(seed)

    def _filled(self, shape: Sequence[int], fill: Callable[[Tensor, Tensor], None]) -> Tensor:
        # Each number of 64 bits makes two of 32.
        size = math.prod(shape)
        pairs = (size + 1) // 2
        device = self.keys.device
        out = torch.empty(len(self.keys), 2 * pairs, device=device)
        steps = torch.arange(1, pairs + 1, device=device).mul_(_signed(STEP))
        rows = max(1, BLOCK // max(1, pairs)) if device.type == "cpu" else len(self.keys)
        for keys, block in zip(self.keys.split(rows), out.split(rows), strict=True):
            fill(block, _mixed(keys[:, None] + steps))
        return out[:, :size].reshape(-1, *shape)


class RowGenerators:
    """A numpy Generator of each of n images, called as one: what it draws has one row per image.

    Parameters
    ----------
    seeds : ndarray of shape (n,), uint64
        Seeds of the images.
    stream : int
        Generators of the same seeds and another stream are independent of these.
    """

    def __init__(self, seeds: NDArray[np.uint64], stream: int = 0) -> None:
        """Begin with every image's first number."""
        # The key of Philox has 128 bits, and is not hashed, which would take longer than drawing for a small image.
        self._each = []
        for seed in seeds:
            key = int(seed) + (stream << 64)
            self._each.append(np.random.Generator(np.random.Philox(key=key)))

    def __iter__(self) -> Iterator[np.random.Generator]:
        """Generators of the images, one by one."""
        return iter(self._each)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> RowGenerators:
        """Generators of some of the images, which go on where they are."""
        chosen = object.__new__(RowGenerators)
        chosen._each = [self._each[row] for row in np.arange(len(self._each))[rows]]
        return chosen

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
        """Uniform numbers (n, ...) from `lowest` to below `highest`."""
        return np.stack([rng.uniform(lowest, highest, shape[1:]) for rng in self])

    def integers(self, lowest: int, beyond: int, shape: Sequence[int]) -> NDArray[np.int64]:
        """Uniform integers (n, ...) from `lowest` to below `beyond`."""
        return np.stack([rng.integers(lowest, beyond, shape[1:]) for rng in self])

    def poisson(self, means: NDArray[np.float64]) -> NDArray[np.int64]:
        """Poisson numbers with means (n, ...)."""
        return np.stack([rng.poisson(mean) for rng, mean in zip(self, means, strict=True)])


def _mixed(states: Tensor) -> Tensor:
    # In place. Shifts of signed integers repeat the sign, which is masked.
    shifted = torch.empty_like(states)
    for shift, factor in MIXER:
        torch.bitwise_right_shift(states, shift, out=shifted)
        states ^= shifted.bitwise_and_(2 ** (64 - shift) - 1)
        if factor != 1:
            states *= _signed(factor)
    return states


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
