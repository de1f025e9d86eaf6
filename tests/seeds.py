"""Seeds and random numbers of samples that no dataset holds."""

import numpy as np

from gfscore.statistics.draws import Draws, seeds_of_samples


def seeds_of(samples, seed=0):
    """Seeds of the images (or however many) of a batch that begins a dataset."""
    count = samples if isinstance(samples, int) else len(samples)
    return seeds_of_samples(seed, "test", np.arange(count))


def draws_of(samples, seed=0, device="cpu"):
    """Their random numbers on a device."""
    return Draws.of(seeds_of(samples, seed), device)
