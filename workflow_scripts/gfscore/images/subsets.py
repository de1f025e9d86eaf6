"""Parts of a dataset: drawn with the class shares of the whole, so many of each class, or every so many rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError


def draw_subset(labels: NDArray[np.integer], *, samples: int, seed: int, where: Path | str) -> NDArray[np.int64]:
    """Rows of a stratified random subset, (samples,) int64, ascending.

    `labels` (N,) int, `samples` n. Every class gets one sample; the other n - K are allocated in proportion to the
    remaining samples of each class by largest remainders (ties to the lower label), so classes of equal size get equal
    numbers up to one. Within a class the draw is uniform without replacement. The same labels and seed give the same
    rows. Raises InputError, naming `where`, for n above N or below the number of classes.
    """
    classes, counts = np.unique(labels, return_counts=True)
    k, n = len(classes), len(labels)
    if not k <= samples <= n:
        raise InputError(
            f"{where}: subset: samples {samples} is not between {k} (one per class) and {n} (all); change it"
        )
    generator = np.random.default_rng(seed)
    shares = _shares(counts, samples)
    drawn = [
        generator.permutation(np.flatnonzero(labels == label))[:share]
        for label, share in zip(classes, shares, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def draw_of_each_class(labels: NDArray[np.integer], *, per_class: int, seed: int) -> NDArray[np.int64]:
    """Rows of a random subset with n = `per_class` of each class, or all where there are fewer; int64, ascending.

    `labels` (N,) int. Uniform without replacement, from a generator of the seed and the class, so that the rows of n
    are among those of n + 1, and those of a class do not depend on the others.
    """
    drawn = [
        np.random.default_rng([seed, label]).permutation(np.flatnonzero(labels == label))[:per_class]
        for label in np.unique(labels)
    ]
    return np.sort(np.concatenate(drawn))


def subset_rows(labels: NDArray[np.integer], subset: Mapping[str, Any], *, where: Path | str) -> NDArray[np.int64]:
    """Rows of the part of a dataset that a setting `subset` describes, (n,) int64, ascending.

    Takes `labels` (N,) and the setting: `samples` and `seed` of draw_subset, `per_class` and `seed` of
    draw_of_each_class, or `every`, which takes rows 0, every, 2 every, ... Raises InputError as draw_subset does.
    """
    if subset.get("every"):
        return np.arange(0, len(labels), subset["every"])
    if subset.get("per_class"):
        return draw_of_each_class(labels, per_class=subset["per_class"], seed=subset["seed"])
    return draw_subset(labels, samples=subset["samples"], seed=subset["seed"], where=where)


def in_test_part(labels: NDArray[np.integer], *, share: float, seed: int) -> NDArray[np.bool_]:
    """Mask (N,) bool of the test part of a seeded split; of each class a share, rounded."""
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen[rows[: round(share * len(rows))]] = True
    return chosen


def _shares(counts, samples):
    k, n = len(counts), counts.sum()
    # Integer arithmetic, so that a quota of exactly 3 does not become 2.9999.
    weighted = (samples - k) * (counts - 1)
    whole, rest = np.divmod(weighted, max(n - k, 1))
    left = samples - k - whole.sum()
    whole[np.argsort(-rest, kind="stable")[:left]] += 1
    return 1 + whole
