"""Numbers behind the GF-Score paper's theory: certificates, bounds, rank correlations of few models."""

import itertools
import math

import numpy as np
from scipy.special import ndtri

from gfscore.audit.metrics.rdi import METRIC as RDI
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from gfscore.statistics.intervals import hoeffding_half_width, rdi_bound
from gfscore.statistics.margins import predictions, scores
from gfscore.statistics.ranking import spearman

ALPHA = 0.05
"""The paper's delta."""

POINTS = 20_000
"""Midpoints of a quantile grid that stand for the whole distribution; an even count leaves out the boundary itself."""


def bound_per_class(n, classes):
    """Half-width of the class scores' simultaneous bound, Eq. 11 at delta = .05."""
    return float(hoeffding_half_width(n, classes=classes, alpha=ALPHA, width=SCALE))


def bound_of_rdi(n, classes):
    """Bound on the error of RDI, Eq. 12 at delta = .05."""
    return float(rdi_bound(n, classes=classes, alpha=ALPHA, width=SCALE))


def first_line_counterexample():
    """Class scores on which the first line of Eq. 13 fails: a class that is not the best one is estimated too high.

    Returns (error of RDI, the first line's bound on it, the second line's bound).
    """
    truth = np.array([0.6, 0.5, 0.0])
    estimate = np.array([0.6, 0.9, 0.0])
    error = np.abs(estimate - truth)
    error_of_rdi = abs(RDI.compute(estimate) - RDI.compute(truth))
    first_line = error[truth.argmax()] + error[truth.argmin()]
    second_line = 2 * error.max()
    return float(error_of_rdi), float(first_line), float(second_line)


def great_theorem_samples(half_width, classes=1):
    """Samples asked by GREAT's Theorem 2, 32 e log(2 K / delta) / eps^2, K = 1 without a union over classes.

    Source: GREAT Score (Li et al. 2024), Theorem 2, at delta = .05.
    """
    return math.ceil(32 * math.e * math.log(2 * classes / ALPHA) / half_width**2)


def uniform_counterexample(steepness=10.0):
    """Generator x = Phi(z), label by x > 1/2, logits -+ k (x - 1/2): the nearest boundary is exactly |x - 1/2| away.

    Returns (mean score, mean true distance, share of samples whose score exceeds their true distance), sigmoid, T = 1.
    """
    return _counterexample(_quantiles() - 0.5, steepness)


def identity_counterexample(steepness=1e6):
    """Generator x = z ~ N(0, 1), label by sign, logits -+ k x: the nearest boundary is exactly |x| away.

    Returns the same triple as `uniform_counterexample`; as k grows the mean score tends to B. The classifier, its
    decisions and the true distances are the same for every k.
    """
    return _counterexample(ndtri(_quantiles()), steepness)


def _quantiles():
    return (np.arange(POINTS) + 0.5) / POINTS


def _counterexample(signed_distance, steepness):
    logits = steepness * np.stack([-signed_distance, signed_distance], axis=1)
    distance = np.abs(signed_distance)
    score = scores(logits, (signed_distance > 0).astype(np.int32), activation="sigmoid")
    return float(score.mean()), float(distance.mean()), float((score > distance).mean())


def distance_from_accuracy(temperature):
    """|softmax score - B accuracy| at a temperature, for random logits (2000, 10) of standard deviation 5."""
    rng = np.random.default_rng(0)
    logits = 5 * rng.standard_normal((2000, 10))
    labels = rng.integers(0, 10, 2000).astype(np.int32)
    score = scores(logits, labels, activation="softmax", temperature=temperature).mean()
    accuracy = (predictions(logits, labels) == labels).mean()
    return float(abs(score - SCALE * accuracy))


def decomposition_error():
    """Relative error of sum_k (n_k / N) Omega_k against the mean of 10,007 values in unbalanced classes."""
    rng = np.random.default_rng(0)
    values = SCALE * rng.random(10_007)
    labels = (10 * rng.random(len(values)) ** 2).astype(np.int32)
    return abs(class_values(values, labels, 10).aggregate / float(values.mean()) - 1)


def rank_correlation_levels(models):
    """Sorted values that Spearman's rho of M models without ties can take."""
    orders = np.array(list(itertools.permutations(range(models))))
    return np.unique(np.round(spearman(orders, np.arange(models)), 9))
