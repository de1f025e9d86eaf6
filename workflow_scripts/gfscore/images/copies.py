"""Corrupted copies of images, read when they are asked for."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Condition = tuple[str, int]
"""A corruption and its severity."""


@dataclass(frozen=True)
class Copies:
    """Corrupted copies of N images: one of each for every condition, a pair of corruption and severity.

    `rows` (N,) are the positions of the images among all those that have copies; `read(condition, rows)` gives the
    copies of some, (n, C, H, W) float32 in [0, 1], and `stored(condition, rows)` yields bytes that stand for them
    without decoding; `form` says in words what shape they have and what was done to them.
    """

    conditions: tuple[Condition, ...]
    rows: NDArray[np.int64]
    read: Callable[[Condition, NDArray[np.int64]], NDArray[np.float32]]
    stored: Callable[[Condition, NDArray[np.int64]], Iterator[Any]]
    form: str

    def of(self, corruption: str, severity: int) -> NDArray[np.float32]:
        """Copies with one corruption at one severity, (N, C, H, W) float32 in [0, 1]."""
        return self.read((corruption, severity), self.rows)

    def select(self, rows: NDArray[np.int64]) -> "Copies":
        """Copies of the images `rows` (n,)."""
        return replace(self, rows=self.rows[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the copies by condition: of pixels (H, W, C) uint8, or of the hashes of encoded ones."""
        state = hashlib.sha256(f"gfscore corrupted copies 1 {self.form}\n".encode())
        for corruption, severity in self.conditions:
            state.update(f"{corruption}/{severity}\n".encode())
            for content in self.stored((corruption, severity), self.rows):
                state.update(content)
        return state.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Their entry in the manifest of their dataset."""
        return {"digest": self.digest, "conditions": [list(condition) for condition in self.conditions]}
