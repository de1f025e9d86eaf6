"""Certified radii of many samples: accuracy at a radius, and how many certificates may be wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.binomial import lower_shares
from gfscore.statistics.classes import ClassValues, class_values

BUG_LEVEL = 0.999
"""Quantile of the number of wrong certificates that chance explains; more means an error of the code."""


def certified_accuracy(values: ArrayLike, labels: ArrayLike, classes: int, *, radius: float) -> ClassValues:
    """Share of each class that is classified right with a certified radius of at least `radius`, as ClassValues.

    Takes `values` (N,), certified radii where the prediction is right, else 0. At radius 0: right and not abstained.
    # ASSUME: certificates are as good as their alpha; see `corrected_certified_accuracy` for what remains without.
    """
    values = np.asarray(values, dtype=np.float64)
    return class_values((values > 0) & (values >= radius), labels, classes)


def corrected_certified_accuracy(
    certified: ArrayLike, samples: ArrayLike, *, alpha: float, confidence: float
) -> NDArray[np.float64]:
    """Lower bound of the true share of samples on which g is right and constant within a radius.

    Takes how many of `samples` are `certified` at the radius (numbers or arrays (K,)), the error probability `alpha` of
    one certificate and the `confidence` of the bound. (L - alpha) / (1 - alpha), clipped at 0, with L the one-sided
    Clopper-Pearson bound of the certified share; 0 without samples. Holds with probability at least `confidence` over
    samples and noise, though a share alpha of the other samples may be certified by mistake.
    # ASSUME: the samples are independent draws from the data of interest.
    """
    low = lower_shares(certified, samples, alpha=1 - confidence)
    return np.maximum((low - alpha) / (1 - alpha), 0.0)


def allowed_refutations(samples: int, *, alpha: float) -> int:
    """Most wrong certificates that chance explains: the 99.9% quantile of Binomial(`samples`, `alpha`).

    `samples` counts every sample that was to be certified, abstentions included: given that a certificate was issued
    it may be wrong with a probability far above alpha.
    """
    from scipy.special import bdtr

    return int(np.argmax(bdtr(np.arange(samples + 1), samples, alpha) >= BUG_LEVEL))


def judge_refutations(refuted: int, samples: int, *, alpha: float) -> tuple[bool, str]:
    """Whether so many refuted certificates are within chance: `(within, words)`.

    `refuted` certificates among `samples` samples (see `allowed_refutations`). Attacks find only some of the wrong
    certificates, so a number within chance proves no certificate right.
    """
    allowed = allowed_refutations(samples, alpha=alpha)
    words = (
        f"{refuted} of {samples} samples have a certificate that an attack on the smoothed classifier refuted; chance "
        f"explains up to {allowed} at alpha = {alpha:g}"
    )
    if refuted > allowed:
        words += ". More than that is an error of the certification, not of the classifier: do not use its radii"
    return refuted <= allowed, words
