"""The values of one measure of one model, as intervals, tests and metrics take them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.identity import UNCALIBRATED
from gfscore.measures.declaration import Measure
from gfscore.statistics.class_bounds import ClassBounds, bounds_of


@dataclass(frozen=True)
class Measured:
    """One measure of one model on N samples.

    `key` holds dataset, threat, model, measure, calibration, temperature; `measure` is its declaration; `values` (N,)
    float64 in its range; `labels` (N,) int32; `correct` (N,) bool, clean correctness of the same samples; `sample_id`
    (N,) str; `fresh`: no temperature was chosen on these samples, so that intervals hold; `upper_values` (N,): the
    largest values that the samples may have, where some are undecided, else None; `missing` (N,) bool: samples that
    must have a value and have none, which count as undecided over the whole range; `rows` (N,): rows of the dataset
    that show the same image. None stands for no missing samples, and for one row each.
    """

    key: dict[str, Any]
    measure: Measure
    values: NDArray[np.float64]
    labels: NDArray[np.integer]
    correct: NDArray[np.bool_]
    sample_id: NDArray[np.str_]
    fresh: bool = True
    upper_values: NDArray[np.float64] | None = None
    predicted: NDArray[Any] | None = None
    missing: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Samples that have a value, (N,) bool."""
        return np.ones(len(self.values), dtype=bool) if self.missing is None else ~self.missing

    def counts(self, classes: int) -> dict[str, NDArray[np.int64]]:
        """Samples by class, each (K,): `measured` of those `expected`, and the `rows` that show them."""
        rows = np.ones(len(self.labels)) if self.rows is None else self.rows
        return {
            "measured": np.bincount(self.labels[self.known], minlength=classes),
            "expected": np.bincount(self.labels, minlength=classes),
            "rows": np.bincount(self.labels, weights=rows, minlength=classes).astype(np.int64),
        }

    @property
    def calibrated(self) -> bool:
        """Whether a temperature was chosen for these values."""
        return self.key["calibration"] != UNCALIBRATED

    @property
    def bounded(self) -> bool:
        """Whether some values are undecided, so that only the smallest and largest ones they may have are known."""
        return self.upper_values is not None and not np.array_equal(self.values, self.upper_values)

    def bounds(
        self,
        classes: int,
        *,
        intervals: Mapping[str, Any],
        label_error_rates: ArrayLike | None = None,
        cells: NDArray[np.integer] | None = None,
    ) -> ClassBounds:
        """ClassBounds of its values as bounds_of; by `cells` (N,), negative for none, where given instead of labels."""
        chosen = slice(None) if cells is None else cells >= 0
        upper = self.upper_values
        return bounds_of(
            self.values[chosen],
            (self.labels if cells is None else cells)[chosen],
            classes,
            measure=self.measure,
            intervals=intervals,
            label_error_rates=label_error_rates,
            upper_values=None if upper is None else upper[chosen],
        )


def row_generator(seed: int, key: Mapping[str, Any]) -> np.random.Generator:
    """Numpy Generator that depends on the seed and on a mapping of names alone."""
    return np.random.default_rng([seed, crc32("/".join(str(part) for part in key.values()).encode())])
