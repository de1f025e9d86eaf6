"""Parting the samples of a data set into those that choose and those that report."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def split_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], *, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of a random `share` of the samples, stratified by class.

    Takes `sample_id` (N,) and `labels` (N,). Of every class its share, to within one sample. Depends on the names of
    the samples and not on their order, so that every model of a data set is parted alike.
    """
    order = np.argsort(sample_id, kind="stable")[rng.permutation(len(labels))]
    by_class = order[np.argsort(labels[order], kind="stable")]
    # One is taken whenever the running share passes a whole number, from a random start: classes of every size get
    # their share, and every sample has the same chance.
    taken = np.diff(np.floor(share * np.arange(len(labels) + 1) + rng.random())) > 0
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[taken]] = True
    return mask


def choosing_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], split: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of the samples that choose a temperature when an audit splits them; the others report it.

    `split` holds `share`, that of the choosing samples, and `seed`.
    """
    return split_samples(sample_id, labels, share=split["share"], rng=np.random.default_rng(split["seed"]))
