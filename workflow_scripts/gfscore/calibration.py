"""Choosing the temperature of the attack-free margin score without attacks.

Each objective has a name and they are never mixed up: what the GF-Score paper defines (Eq. 8) is not what its
reported numbers measure (methods 0, H1 to H4).
"""

from dataclasses import dataclass

import numpy as np

from gfscore.errors import InputError
from gfscore.margins import require_temperature
from gfscore.ranking import spearman

STABILITY_STEPS = 10
"""Steps into which each half of the stability window [T - delta, T + delta] is divided."""


@dataclass(frozen=True)
class SearchSettings:
    """The paper's two-phase grid: coarse over [low, high], then fine within `radius` of the best coarse point."""

    low: float
    high: float
    coarse_step: float
    fine_step: float
    fine_radius: float

    def coarse(self):
        """Coarse temperatures (T,), from `low` in steps of `coarse_step`, never above `high`."""
        steps = int((self.high - self.low) / self.coarse_step + 1e-9)
        # Rounded as the fine grid is, so that a temperature of both is one temperature.
        return np.round(self.low + self.coarse_step * np.arange(steps + 1), 12)

    def fine(self, center):
        """Fine temperatures (T,) around `center`, clipped to [low, high]."""
        steps = round(self.fine_radius / self.fine_step)
        grid = np.clip(center + self.fine_step * np.arange(-steps, steps + 1), self.low, self.high)
        return np.unique(np.round(grid, 12))


@dataclass(frozen=True)
class Calibration:
    """Result of a temperature search.

    `stretches` are the (first, last) of every run of neighbouring temperatures that attain the maximum, ascending;
    `interval` is the widest of them in log T, and `t_star` the temperature nearest its middle; `edge` says whether any
    stretch touches the search bounds, where the optimum is not to be trusted; `best` is the objective there, `at_one`
    at T = 1; `temperatures` (T,) ascending and `objective` (T,) the searched curve, NaN where undefined.
    """

    t_star: float
    interval: tuple
    stretches: list
    edge: bool
    best: float
    at_one: float
    temperatures: np.ndarray
    objective: np.ndarray


def search_temperature(objective, settings):
    """Temperature that maximises an objective on the paper's two-phase grid.

    `objective` maps temperatures (T,) to values (T,), NaN where undefined; `settings` are SearchSettings. The fine
    phase refines the surroundings of the first best coarse temperature only, as the paper's does.
    Raises InputError when the objective is undefined everywhere. Source: GF-Score, section 3.4.
    """
    coarse = settings.coarse()
    coarse_values = objective(coarse)
    if np.isnan(coarse_values).all():
        raise InputError("the calibration objective is undefined at every temperature (constant accuracies?)")
    fine = settings.fine(coarse[np.argmax(_optimal(coarse_values))])
    temperatures, first = np.unique(np.concatenate([coarse, fine]), return_index=True)
    values = np.concatenate([coarse_values, objective(fine)])[first]

    optimal = _optimal(values)
    stretches = [temperatures[run] for run in _runs(optimal)]
    widest = max(stretches, key=lambda stretch: np.log(stretch[-1] / stretch[0]))
    return Calibration(
        t_star=float(widest[np.abs(np.log(widest) - np.log(widest[[0, -1]]).mean()).argmin()]),
        interval=(float(widest[0]), float(widest[-1])),
        stretches=[(float(stretch[0]), float(stretch[-1])) for stretch in stretches],
        edge=bool(optimal[0] or optimal[-1]),
        best=float(np.nanmax(values)),
        at_one=float(objective(np.array([1.0]))[0]),
        temperatures=temperatures,
        objective=values,
    )


def _optimal(values):
    # Objectives that differ by rounding only are the same optimum.
    return values >= np.nanmax(values) - 1e-12


def _runs(mask):
    # Slices of the unbroken runs of True.
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return [slice(start, stop) for start, stop in edges.reshape(-1, 2)]


def cross_model_accuracy(curves, class_accuracy):
    """Eq. 8 as written: Spearman over models between aggregate score at T and clean accuracy.

    `curves` are M ScoreCurves, `class_accuracy` (M, K) clean accuracy per class, NaN for a class without samples.
    Returns a function from temperatures (T,) to values (T,) in [-1, 1]. For softmax it tends to +1 as T -> 0 by
    construction, since the score tends to B times accuracy (methods 0, H5).
    """
    accuracy = np.array([_aggregate(row[None], curve.n)[0] for row, curve in zip(class_accuracy, curves, strict=True)])

    def objective(temperatures):
        aggregates = np.stack([_aggregate(curve(temperatures), curve.n) for curve in curves], axis=1)
        return spearman(aggregates, accuracy)

    return objective


def within_model_class_accuracy(curves, class_accuracy):
    """Mean over models of the Spearman over classes between class scores at T and class accuracies.

    What the GF-Score paper's reported numbers really are (methods 0, H2). Same arguments as cross_model_accuracy;
    models whose class accuracies are all equal have no order to agree with and are left out of the mean.
    """

    def objective(temperatures):
        agreement = []
        for curve, accuracy in zip(curves, class_accuracy, strict=True):
            present = curve.n > 0
            agreement.append(spearman(curve(temperatures)[:, present], accuracy[present]))
        return _mean_of_known(np.array(agreement))

    return objective


def ranking_stability(curves, *, delta, low, high, endpoints_only=False):
    """Eq. 9: mean over models of how stable the ranking of classes is under small changes of T.

    For each model the smallest Spearman between its class scores at T and at any T' in [T - delta, T + delta],
    clipped to [low, high]; the window is sampled at 2 * STABILITY_STEPS + 1 points, or at its two ends only with
    `endpoints_only`, which is what the authors ran.
    """
    steps = np.array([-1.0, 1.0]) if endpoints_only else np.linspace(-1, 1, 2 * STABILITY_STEPS + 1)

    def objective(temperatures):
        window = np.clip(np.asarray(temperatures)[:, None] + delta * steps, low, high)
        stability = []
        for curve in curves:
            present = curve.n > 0
            center = curve(temperatures)[:, None, present]
            around = curve(window.ravel())[:, present].reshape(*window.shape, -1)
            stability.append(spearman(center, around).min(axis=1))
        return _mean_of_known(np.array(stability))

    return objective


def log_loss(logits, labels, temperature):
    """Mean negative log-likelihood of the true class under softmax(z / T), in nats, lower is better."""
    require_temperature(temperature)
    scaled = logits.astype(np.float64) / temperature
    rows = np.arange(len(labels))
    shifted = scaled - scaled.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[rows, labels]))


def likelihood_temperature(logits, labels, *, low, high):
    """Temperature that minimises the log-loss of one model on held-out samples (temperature scaling).

    Takes `logits` (N, K), `labels` (N,) of the held-out part and the search bounds. Returns T in [low, high].
    The log-loss is convex in 1/T, so a bounded search finds the minimum. Source: Guo et al. 2017.
    """
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log_t: log_loss(logits, labels, float(np.exp(log_t))),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))


def class_calibration_error(logits, labels, *, temperature, bins=15):
    """Expected calibration error of each class's predicted probability, (K,) in [0, 1], 0 is calibrated.

    For class k: mean over samples of |mean predicted probability of k - share of label k| within equal-width bins.
    NaN for a class without samples. Source: class-wise ECE, Kull et al. 2019.
    """
    require_temperature(temperature)
    scaled = logits.astype(np.float64) / temperature
    probability = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    n, classes = probability.shape
    error = np.full(classes, np.nan)
    for k in np.unique(labels):
        bin_of = np.minimum((probability[:, k] * bins).astype(int), bins - 1)
        gap = np.bincount(bin_of, weights=probability[:, k] - (labels == k), minlength=bins)
        error[k] = np.abs(gap).sum() / n
    return error


def split_halves(labels, rng):
    """Boolean mask (N,) of a random half of the samples, stratified by class."""
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[::2]] = True
    return mask


def _aggregate(class_scores, n):
    present = n > 0
    return class_scores[:, present] @ (n[present] / n.sum())


def _mean_of_known(rows):
    known = ~np.isnan(rows)
    total = np.where(known, rows, 0).sum(axis=0)
    count = known.sum(axis=0)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
