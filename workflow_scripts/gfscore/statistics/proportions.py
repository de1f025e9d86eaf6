"""Exact confidence bounds of proportions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.statistics.classes import ClassValues, class_values
from gfscore.statistics.sequential_tests import NOT_ROBUST, ROBUST, STATES

if TYPE_CHECKING:
    from pandas import DataFrame


MOST_ALPHA = 1 / 4
"""Largest level at which bounds for trials of unequal probability are known to hold; larger ones are lowered to it."""


def clopper_pearson(successes: int, trials: int, *, alpha: float) -> tuple[float, float]:
    """Exact two-sided confidence interval `(low, high)` of a binomial probability, confidence at least 1 - alpha.

    Takes 0 <= `successes` <= `trials`, trials >= 1. Source: Clopper and Pearson 1934.
    """
    low = lower_shares(successes, trials, alpha=alpha / 2)
    high = 1 - lower_shares(trials - successes, trials, alpha=alpha / 2)
    return float(low), float(high)


def lower_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Exact lower confidence bounds of binomial probabilities, each with confidence at least 1 - alpha.

    Takes `successes` and `trials`, numbers or arrays of one shape; the bound is 0 without successes or trials. Counts
    may be fractions, for the planning of samples. Source: Clopper and Pearson 1934, one-sided.
    """
    from scipy.special import betaincinv

    successes, trials = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    positive = successes > 0
    bound = betaincinv(np.where(positive, successes, 1), np.where(positive, trials - successes + 1, 1), alpha)
    return np.where(positive, bound, 0.0)


def lower_mean_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds, each at level alpha, of the mean probability of trials that need not be identical.

    Arguments as lower_shares takes them; the bounds are the same except for a single success. Trials with unequal
    probabilities reach a number of successes less often than identical trials of the same mean, if that number is at
    least one above its expectation (Hoeffding 1956). This holds for two or more successes that refute a mean at
    alpha <= 1/4, because identical trials reach an expectation above 1 with probability above 1/4 (Greenberg and Mohri
    2014). For one success the bound is alpha / trials, since the probability of any success is at most the expectation.
    """
    bound = lower_shares(successes, trials, alpha=min(alpha, MOST_ALPHA))
    single = np.minimum(bound, alpha / np.maximum(trials, 1))
    return np.where(np.asarray(successes) <= 1, single, bound)


# ---- Certified accuracy at a radius, and the number of wrong certificates to be expected.


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


# ---- Probabilistic robustness: bounds of the share of robust inputs from the test outcomes of single inputs. An
# input is robust, z = 1, when at most a share kappa of its perturbed copies is classified differently. A
# sequential test decides robust or not robust, or remains undecided; each decision is wrong with probability at
# most alpha_test. These functions bound P(z = 1), per class and overall, allowing for wrong decisions, undecided
# inputs and sampling.


def share_interval(
    robust: ArrayLike, undecided: ArrayLike, n: ArrayLike, *, alpha_test: float, alpha_ci: float
) -> tuple[NDArray[np.float64] | np.float64, NDArray[np.float64] | np.float64]:
    """Bounds of the share of robust inputs P(z = 1), `(low, high)`, float64 of the counts' shape, within [0, 1].

    Takes the numbers of `robust` and `undecided` inputs among `n` (numbers or arrays); an undecided input counts as not
    robust in the lower bound and as robust in the upper. n = 0 gives (0, 1). `alpha_test` in [0, 0.5) bounds both error
    rates of the test: [(L - alpha_test) / (1 - alpha_test), U / (1 - alpha_test)], with L and U Clopper-Pearson bounds
    of the share decided as robust. Holds with probability at least 1 - `alpha_ci` over inputs and perturbations.
    # ASSUME: the inputs are independent draws from the data of interest.

    Raises InputError for an alpha outside its range.
    """
    if not (0 <= alpha_test < 0.5 and 0 < alpha_ci < 1):
        raise InputError(f"0 <= alpha_test < 0.5 and 0 < alpha_ci < 1 are needed, got {alpha_test} and {alpha_ci}")
    robust, undecided, n = (np.asarray(count, dtype=np.float64) for count in (robust, undecided, n))
    low = lower_shares(robust, n, alpha=alpha_ci / 2)
    high = 1 - lower_shares(n - (robust + undecided), n, alpha=alpha_ci / 2)
    return _within((low - alpha_test) / (1 - alpha_test), high / (1 - alpha_test), n)


def printed_interval(
    robust: ArrayLike, undecided: ArrayLike, n: ArrayLike, *, alpha: float
) -> tuple[NDArray[np.float64] | np.float64, NDArray[np.float64] | np.float64]:
    """The exact-binomial paper's Eq. 7 as printed, for a test of level `alpha`; counts as share_interval takes them.

    [(k/n - alpha) / (1 + alpha), k / (n (1 - alpha))], with k/n in place of P(w). Its lower end is loose, and it is no
    confidence interval: it ignores the sampling of inputs.
    """
    robust, undecided, n = (np.asarray(count, dtype=np.float64) for count in (robust, undecided, n))
    most = np.maximum(n, 1)
    return _within((robust / most - alpha) / (1 + alpha), (robust + undecided) / (most * (1 - alpha)), n)


def _within(low, high, n):
    return np.where(n > 0, np.clip(low, 0, 1), 0.0)[()], np.where(n > 0, np.clip(high, 0, 1), 1.0)[()]


def class_shares(
    states: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    alpha: float,
    alpha_test: float,
    alpha_ci: float,
) -> list[dict[str, Any]]:
    """Robust inputs per class, then of all: K + 1 mappings.

    Takes `states` (N,) in STATES, `labels` (N,) in 0..K-1 and the K class names. Keys class_index (-1 for all),
    class_name ("all"), n, robust, not_robust, undecided, low, high (share_interval), and paper_low, paper_high
    (printed_interval at the level `alpha`). The K class intervals hold jointly with probability at least 1 - alpha_ci
    (each at alpha_ci/K), that of all inputs on its own.
    """
    states, labels = np.asarray(states), np.asarray(labels)
    strange = ~np.isin(states, STATES)
    if strange.any():
        raise InputError(unknown(f"row {int(strange.argmax())}: state", states[strange][0], STATES))
    rows = []
    for names, groups in (([*enumerate(class_names)], labels), ([(-1, "all")], np.zeros_like(labels))):
        undecided, robust, not_robust = (np.bincount(groups[states == state], minlength=len(names)) for state in STATES)
        counts = {"n": undecided + robust + not_robust, "robust": robust}
        columns: dict[str, Any] = counts | {"not_robust": not_robust, "undecided": undecided}
        given = robust, undecided, counts["n"]
        intervals = share_interval(*given, alpha_test=alpha_test, alpha_ci=alpha_ci / len(names))
        printed = printed_interval(*given, alpha=alpha)
        columns |= dict(zip(("low", "high", "paper_low", "paper_high"), (*intervals, *printed), strict=True))
        rows += [
            {"class_index": index, "class_name": name, **{column: values[k] for column, values in columns.items()}}
            for k, (index, name) in enumerate(names)
        ]
    return rows


def training_method(
    tables: Mapping[str, DataFrame], *, name: str, alpha: float, alpha_test: float, alpha_ci: float
) -> dict[str, Any]:
    """A row of Table 1 of the exact-binomial paper: a model made by some training method, shares as fractions.

    `tables` are its samples tables, a mapping clean, adversarial, probabilistic -> data frame. Only samples in all
    three count. Keys: n, accuracy, attack_failure_rate (share classified correctly under attack), robust (share decided
    as robust), undecided, observation (lower bound of P(z = 1) as the paper prints it, Eq. 7) and robust_low,
    robust_high (share_interval). `alpha` is the level of the test, which the paper takes for its error rate;
    `alpha_test` bounds the actual error rate. Raises InputError, with the `name` of the model, for tables without a
    sample in common.
    """
    values, state = _on_common_samples(name, tables)
    counts = int((state == STATES[ROBUST]).sum()), int((state == STATES[0]).sum()), len(state)
    low, high = share_interval(*counts, alpha_test=alpha_test, alpha_ci=alpha_ci)
    return {
        "n": len(state),
        "accuracy": values["clean"].mean(),
        "attack_failure_rate": values["adversarial"].mean(),
        "robust": counts[0] / len(state),
        "undecided": counts[1] / len(state),
        "observation": float(printed_interval(*counts, alpha=alpha)[0]),
        "robust_low": float(low),
        "robust_high": float(high),
    }


def _on_common_samples(name, tables):
    indexed = {kind: table.set_index("sample_id") for kind, table in tables.items()}
    common = set.intersection(*(set(table.index) for table in indexed.values()))
    if not common:
        raise InputError(
            f"{name}: no sample is measured by all of {', '.join(tables)}; give the measures the same subset"
        )
    ids = [sample for sample in indexed["clean"].index if sample in common]
    values = {kind: indexed[kind].loc[ids, "value"].to_numpy() for kind in ("clean", "adversarial")}
    return values, indexed["probabilistic"].loc[ids, "state"].to_numpy()


VALUES = {STATES[ROBUST]: 1.0, STATES[NOT_ROBUST]: 0.0, STATES[0]: 0.0}
"""Value of the measure by state; undecided samples are censored."""
