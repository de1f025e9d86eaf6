"""How far one latent dimension of an image can move before a classifier's prediction changes.

Source: "Is the fairness metric truly fair?", section 5 and Algorithm 1, read as follows. The perturbation replaces
dimension d by mu_d +- sigma_d m / M; the printed algorithm starts from z = mu, so mu is the sample's own code. A
dimension with ends, as an attribute has, is moved no further than them: one that is at an end can only be moved away
from it, and of its other side there is nothing to find. Every m = 1..M is tried: the printed loop ends before it tests
m = M. The prediction is compared with that on the undisturbed reconstruction, f(U(z)), as in its Eq. 1, not with f(x).
# ASSUME: no change of the prediction hides between two neighbouring steps, and comes back before the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.networks.inference import out_of_memory


@dataclass(frozen=True)
class Boundaries:
    """Boundaries of n samples along D latent dimensions, in units of sigma, or of the way to a nearer end.

    `reference` (n,) int64 is the prediction f(U(z)); `up` and `down` (n, D) float64 in [0, 1] are u+ and u-, the
    smallest tried moves that change it, 1 where none does: there `up_censored` and `down_censored` (n, D) bool are set,
    and the true value is larger or there is none. NaN, not censored, on a side that has no room to move. `evaluations`
    counts the images classified.
    """

    reference: NDArray[np.int64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    up_censored: NDArray[np.bool_]
    down_censored: NDArray[np.bool_]
    evaluations: int


def search_boundaries(
    decode: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    classify: Callable[[NDArray[np.float32]], NDArray[np.integer]],
    latents: NDArray[np.float32],
    sigma: ArrayLike,
    *,
    steps: int,
    bisections: int,
    batch_size: int,
    dimensions: NDArray[np.integer] | None = None,
    limits: tuple[float, float] | None = None,
) -> Boundaries:
    """Fairness boundaries of every sample along every latent dimension, by a scan and bisection of the first change.

    `decode` maps codes (b, Z) to images, `classify` images to predictions (b,) int, both for any b; `latents` (n, Z)
    are the codes, of which the columns `dimensions` (D,) are moved, all by default; `sigma` (D,) or (n, D) positive is
    the unit of each; `limits` (low, high) are the ends of what a column may become: where one is nearer than sigma, the
    way to it is the unit, and where the code stands on it, that side is not searched. `steps` is M, `bisections` halves
    the last step so often: a boundary is then exact to a share of 1 / (M 2^bisections) of its unit. Whatever has
    changed is dropped, and as many steps of the others are tried together as fit into `batch_size` images; batches that
    do not fit into memory are halved. Raises InputError for a sigma that is not positive and finite.
    """
    latents = np.asarray(latents)
    dimensions = np.arange(latents.shape[1]) if dimensions is None else np.asarray(dimensions)
    shape = len(latents), len(dimensions)
    sigma = np.broadcast_to(np.asarray(sigma, dtype=np.float64), shape)
    unusable = ~((sigma > 0) & np.isfinite(sigma)).all(axis=0)
    if unusable.any():
        raise InputError(
            f"sigma of latent dimension {int(dimensions[unusable][0])} is not positive and finite: the mapper does "
            "not use it; train the mapper with fewer dimensions, a smaller beta or for more epochs"
        )
    predictor = _Predictor(decode, classify, batch_size)
    lines = _Lines(predictor, latents, sigma=sigma, dimensions=dimensions, limits=limits)
    first = _scan(lines, steps)
    reached = np.flatnonzero(first)
    moved = np.where(lines.possible, 1.0, np.nan)
    moved[reached] = _bisect(lines, reached, (first[reached] - 1) / steps, first[reached] / steps, bisections)
    up, down = moved.reshape(2, *shape)
    up_censored, down_censored = (lines.possible & (first == 0)).reshape(2, *shape)
    return Boundaries(lines.reference, up, down, up_censored, down_censored, predictor.evaluations)


class _Predictor:
    """Predictions on decoded codes, so many at a time as fit into memory."""

    def __init__(
        self,
        decode: Callable[[NDArray[np.float32]], NDArray[np.float32]],
        classify: Callable[[NDArray[np.float32]], NDArray[np.integer]],
        batch_size: int,
    ) -> None:
        self.decode, self.classify, self.batch_size, self.evaluations = decode, classify, batch_size, 0

    def __call__(self, codes_of: Callable[[slice], NDArray[np.float32]], count: int) -> NDArray[np.int64]:
        # codes_of(slice) makes the codes of a batch only when it is their turn.
        found, start = [], 0
        while start < count:
            stop = min(start + self.batch_size, count)
            try:
                found.append(np.asarray(self.classify(self.decode(codes_of(slice(start, stop)))), dtype=np.int64))
                start = stop
            # onnxruntime's errors derive from Exception alone.
            except Exception as error:
                if self.batch_size == 1 or not out_of_memory(error):
                    raise
                self.batch_size = (self.batch_size + 1) // 2
                print(f"out of memory: {self.batch_size} decoded images at a time from here")
        self.evaluations += count
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


class _Lines:
    """All moves of a search: upwards for every sample and dimension, then downwards."""

    def __init__(
        self,
        predictor: _Predictor,
        latents: NDArray[np.float32],
        *,
        sigma: NDArray[np.float64],
        dimensions: NDArray[np.integer],
        limits: tuple[float, float] | None,
    ) -> None:
        self.predictor, self.latents = predictor, latents
        n, d = sigma.shape
        self.count = 2 * n * d
        self.sample = np.tile(np.repeat(np.arange(n), d), 2)
        self.column = np.tile(dimensions, 2 * n)
        self.start = np.tile(latents[:, dimensions].ravel(), 2).astype(np.float64)
        self.reach = np.concatenate([sigma.ravel(), -sigma.ravel()])
        if limits is not None:
            self.reach = (self.start + self.reach).clip(*limits) - self.start
        self.possible = self.reach != 0
        self.reference = predictor(lambda rows: latents[rows], n)

    def changed(self, lines: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the prediction differs at each share (L,) of the way along lines (L,); bool (L,)."""

        def codes(rows: slice) -> NDArray[np.float32]:
            own, made = lines[rows], self.latents[self.sample[lines[rows]]].copy()
            made[np.arange(len(own)), self.column[own]] = self.start[own] + self.reach[own] * shares[rows]
            return made

        return self.predictor(codes, len(lines)) != self.reference[self.sample[lines]]


def _scan(lines, steps):
    # Number of the first step that changes the prediction, by line; 0 where none does.
    first, active, done = np.zeros(lines.count, dtype=np.int64), np.flatnonzero(lines.possible), 0
    while len(active) and done < steps:
        block = min(steps - done, max(1, lines.predictor.batch_size // len(active)))
        tried = done + 1 + np.arange(block)
        changed = lines.changed(np.repeat(active, block), np.tile(tried / steps, len(active)))
        changed = changed.reshape(len(active), block)
        hit = changed.any(axis=1)
        first[active[hit]] = tried[changed[hit].argmax(axis=1)]
        active, done = active[~hit], done + block
    return first


def _bisect(lines, reached, low, high, bisections):
    # The prediction is the old one at `low` and another at `high`, before and after every halving.
    for _ in range(bisections):
        middle = (low + high) / 2
        changed = lines.changed(reached, middle)
        low, high = np.where(changed, low, middle), np.where(changed, middle, high)
    return high
