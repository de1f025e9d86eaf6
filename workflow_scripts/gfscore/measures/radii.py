"""Certificates of randomized smoothing: from counts of noisy predictions to radii, and from radii to classes.

The smoothed classifier g(x) is the class that the base classifier f predicts most often under Gaussian noise of
standard deviation sigma. A certificate says that g is constant within an l2 radius; it speaks of g, not of f, and each
one holds with probability at least 1 - alpha over its own noise. Source: Cohen et al. 2019.
"""

import numpy as np

from gfscore.core.errors import InputError
from gfscore.measures.declared import HALF, largest_radius
from gfscore.statistics.binomial import lower_shares
from gfscore.statistics.classes import class_values

BUG_LEVEL = 0.999
"""Quantile of the number of wrong certificates that chance explains; more means an error of the code."""


def radii(lower_bounds, *, sigma):
    """Certified l2 radii sigma Phi^-1(p), in the unit of sigma, from lower bounds p of the top class's probability.

    Takes `lower_bounds` (N,) in [0, 1]; 0 where the bound is at most 1/2, which means abstention.
    Source: Cohen et al. 2019, Theorem 1 with p_B = 1 - p_A.
    """
    from scipy.special import ndtri

    bounds = np.asarray(lower_bounds, dtype=np.float64)
    return np.where(bounds > HALF, sigma * ndtri(np.maximum(bounds, HALF)), 0.0)


def largest_certificate(smoothing):
    """Radius that a smoothing certifies when all its draws agree, to the last digit as `radii` gives it.

    Takes settings with sigma, estimation_samples and alpha; `largest_radius` lies above it by a margin for rounding.
    """
    draws = smoothing["estimation_samples"]
    return float(radii(lower_shares(draws, draws, alpha=smoothing["alpha"]), sigma=smoothing["sigma"]))


def fewest_votes(draws, *, alpha):
    """Fewest votes for one class among `draws` that prove its probability above 1/2; draws + 1 where none suffice.

    A sample that can no longer reach them will abstain, whatever the remaining draws say.
    """
    votes = np.arange(draws + 2)
    proven = lower_shares(votes[:-1], draws, alpha=alpha) > HALF
    return int(votes[np.append(proven, True)][0])


def require_certifiable(settings):
    """Raise InputError unless the settings of a smoothing can certify anything at all.

    `settings` is a mapping with sigma, selection_samples, estimation_samples and alpha. The most that n agreeing draws
    prove is p = alpha^(1/n), so at alpha = 0.001 it takes 10 draws to certify any radius.
    """
    if not 0 < settings["alpha"] < 1 or settings["sigma"] <= 0:
        raise InputError(f"smoothing: 0 < alpha < 1 and sigma > 0 are needed, got {dict(settings)}")
    if settings["selection_samples"] < 1 or largest_radius({"smoothing": settings}) <= 0:
        raise InputError(
            f"smoothing: estimation_samples {settings['estimation_samples']} can certify nothing at alpha "
            f"{settings['alpha']:g}: even when all agree, the class is not proven above 1/2; draw more samples"
        )


def certified_accuracy(values, labels, classes, *, radius):
    """Share of each class that is classified right with a certified radius of at least `radius`, as ClassValues.

    Takes `values` (N,), certified radii where the prediction is right, else 0. At radius 0: right and not abstained.
    # ASSUME: certificates are as good as their alpha; see `corrected_certified_accuracy` for what remains without.
    """
    values = np.asarray(values, dtype=np.float64)
    return class_values((values > 0) & (values >= radius), labels, classes)


def corrected_certified_accuracy(certified, samples, *, alpha, confidence):
    """Lower bound of the true share of samples on which g is right and constant within a radius.

    Takes how many of `samples` are `certified` at the radius (numbers or arrays (K,)), the error probability `alpha` of
    one certificate and the `confidence` of the bound. (L - alpha) / (1 - alpha), clipped at 0, with L the one-sided
    Clopper-Pearson bound of the certified share; 0 without samples. Holds with probability at least `confidence` over
    samples and noise, though a share alpha of the other samples may be certified by mistake.
    # ASSUME: the samples are independent draws from the data of interest.
    """
    low = lower_shares(certified, samples, alpha=1 - confidence)
    return np.maximum((low - alpha) / (1 - alpha), 0.0)


def allowed_refutations(samples, *, alpha):
    """Most wrong certificates that chance explains: the 99.9% quantile of Binomial(`samples`, `alpha`).

    `samples` counts every sample that was to be certified, abstentions included: given that a certificate was issued
    it may be wrong with a probability far above alpha.
    """
    from scipy.special import bdtr

    return int(np.argmax(bdtr(np.arange(samples + 1), samples, alpha) >= BUG_LEVEL))


def judge_refutations(refuted, samples, *, alpha):
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
