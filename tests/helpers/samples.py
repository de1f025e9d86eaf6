"""Logits, labels, curves, seeds and random numbers of samples that no dataset holds, and metrics of their class values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.statistics.draws import Draws, seeds_of_samples


@dataclass(eq=False)
class MadeCurves:
    """Class scores given as a formula: `formula(T)` maps temperatures (T,) to a list of K arrays or numbers."""

    formula: Any
    n: np.ndarray

    def __call__(self, temperatures):
        temperatures = np.asarray(temperatures, dtype=float)
        return np.stack([np.broadcast_to(x, temperatures.shape) for x in self.formula(temperatures)], axis=1)


def logits_and_labels(seed, *, n=120, k=5, scale=3.0, signal=3.0):
    """Logits (n, k) of a classifier that is right most of the time; labels unsorted, unbalanced, every class present.

    Class 0 is about four times as frequent as the last one, and the signal is weaker for higher classes.
    """
    rng = np.random.default_rng(seed)
    weights = np.linspace(2, 0.5, k)
    drawn = rng.choice(k, size=n - k, p=weights / weights.sum())
    labels = rng.permutation(np.concatenate([np.arange(k), drawn]))
    logits = scale * rng.normal(size=(n, k))
    logits[np.arange(n), labels] += signal * np.linspace(2, 0.5, k)[labels]
    return logits, labels


def adversarial_logits(seed, *, n, k):
    """Logits (n, k) made to break interpolation and stable forms: huge and tiny scales, duplicates, exact ties."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)]) if n >= k else rng.integers(0, k, n)
    scale = 10.0 ** rng.uniform(-4, 30, size=(n, 1))
    logits = scale * rng.normal(size=(n, k))
    logits[rng.random(n) < 0.5] = 10 * rng.normal(size=(1, k))
    same = rng.random(n) < 0.3
    # All rivals equal: the softmax denominator is 1 + (K - 1) exp(-d / T), the steepest there is.
    logits[same] = 0.0
    logits[same, labels[same]] = 10.0 ** rng.uniform(-3, 3, size=same.sum())
    tied = rng.random(n) < 0.1
    logits[tied] = logits[tied].max(axis=1, keepdims=True)
    return logits, labels


def metric(name, values, *, counts=None, lam=0.5):
    """A metric of class values."""
    return METRICS[name].compute(values, counts=counts, lam=lam)


def intervals(low, high, *, n, lam):
    """Interval of every metric that has one, by name, from bounds (K,) of classes of sizes n."""
    return {one.name: one.interval(low, high, counts=n, lam=lam) for one in BOUNDED}


def seeds_of(samples, seed=0):
    """Seeds of the images (or however many) of a batch that begins a dataset."""
    count = samples if isinstance(samples, int) else len(samples)
    return seeds_of_samples(seed, "test", np.arange(count))


def draws_of(samples, seed=0, device="cpu"):
    """Their random numbers on a device."""
    return Draws.of(seeds_of(samples, seed), device)
