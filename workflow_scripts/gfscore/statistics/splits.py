"""Splits of a dataset's samples into those that choose a temperature and those that report it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def split_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], *, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of a random `share` of the samples, stratified by class.

    Takes `sample_id` (N,) and `labels` (N,). The share of each class is exact to within one sample. Depends on the
    identifiers and not on the order of the samples, so the split is the same for all models of a dataset.
    """
    order = np.argsort(sample_id, kind="stable")[rng.permutation(len(labels))]
    by_class = order[np.argsort(labels[order], kind="stable")]
    # Systematic sampling from a random start: a sample is taken whenever the running share passes a whole number.
    taken = np.diff(np.floor(share * np.arange(len(labels) + 1) + rng.random())) > 0
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[taken]] = True
    return mask


def choosing_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], split: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of the samples that choose a temperature; the others report it.

    `split` holds the `share` of the choosing samples and a `seed`.
    """
    return split_samples(sample_id, labels, share=split["share"], rng=np.random.default_rng(split["seed"]))
