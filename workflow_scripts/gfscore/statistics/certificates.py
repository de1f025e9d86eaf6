"""Certified accuracy at a radius, and the number of wrong certificates to be expected."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.binomial import lower_shares
from gfscore.statistics.classes import ClassValues, class_values

BUG_LEVEL = 0.999
"""Quantile of the number of wrong certificates; a larger number indicates an error of the code."""


def certified_accuracy(values: ArrayLike, labels: ArrayLike, classes: int, *, radius: float) -> ClassValues:
    """Share of each class that is classified correctly with a certified radius of at least `radius`, as ClassValues.

    Takes `values` (N,), certified radii where the prediction is correct, else 0. At radius 0: correct, no abstention.
    # ASSUME: no certificate is wrong; `corrected_certified_accuracy` allows for a share alpha of wrong ones.
    """
    values = np.asarray(values, dtype=np.float64)
    return class_values((values > 0) & (values >= radius), labels, classes)


def corrected_certified_accuracy(
    certified: ArrayLike, samples: ArrayLike, *, alpha: float, confidence: float
) -> NDArray[np.float64]:
    """Lower bound of the true share of samples on which g is correct and constant within a radius.

    Takes the numbers of `certified` samples at the radius and of all `samples` (numbers or arrays (K,)), the error
    probability `alpha` of one certificate and the `confidence` of the bound. (L - alpha) / (1 - alpha), clipped at 0,
    with L the one-sided Clopper-Pearson bound of the certified share; 0 without samples. Holds with probability at
    least `confidence` over samples and noise, since a share alpha of the other samples may be certified wrongly.
    # ASSUME: the samples are independent draws from the data of interest.
    """
    low = lower_shares(certified, samples, alpha=1 - confidence)
    return np.maximum((low - alpha) / (1 - alpha), 0.0)


def allowed_refutations(samples: int, *, alpha: float) -> int:
    """Largest number of wrong certificates to be expected: the 99.9% quantile of Binomial(`samples`, `alpha`).

    `samples` includes abstentions: given that a certificate was issued, it may be wrong with a probability far above
    alpha.
    """
    from scipy.special import bdtr

    return int(np.argmax(bdtr(np.arange(samples + 1), samples, alpha) >= BUG_LEVEL))
