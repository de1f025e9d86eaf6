"""Probabilistic robustness: bounds of the share of robust inputs from the test outcomes of single inputs.

An input is robust, z = 1, when at most a share kappa of its perturbed copies is classified differently. A sequential
test decides robust or not robust, or remains undecided; each decision is wrong with probability at most alpha_test.
These functions bound P(z = 1), per class and overall, allowing for wrong decisions, undecided inputs and sampling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError, unknown
from gfscore.statistics.binomial import lower_shares
from gfscore.statistics.sequential_tests import NOT_ROBUST, ROBUST, STATES

if TYPE_CHECKING:
    from pandas import DataFrame


def share_interval(
    robust: ArrayLike,
    undecided: ArrayLike,
    n: ArrayLike,
    *,
    alpha_test: float,
    alpha_ci: float,
    form: str = "corrected",
) -> tuple[NDArray[np.float64] | np.float64, NDArray[np.float64] | np.float64]:
    """Bounds of the share of robust inputs P(z = 1), `(low, high)`, float64 of the counts' shape, within [0, 1].

    Takes the numbers of `robust` and `undecided` inputs among `n` (numbers or arrays); an undecided input counts as not
    robust in the lower bound and as robust in the upper. n = 0 gives (0, 1). `alpha_test` in [0, 0.5) bounds both error
    rates of the test. Forms:

    `corrected`: [(L - alpha_test) / (1 - alpha_test), U / (1 - alpha_test)], with L and U Clopper-Pearson bounds of the
    share decided as robust. Holds with probability at least 1 - `alpha_ci` over inputs and perturbations.
    # ASSUME: the inputs are independent draws from the data of interest.

    `paper`: the exact-binomial paper's Eq. 7 as printed, [(k/n - alpha_test) / (1 + alpha_test), k / (n (1 -
    alpha_test))], with k/n in place of P(w). Its lower end is loose, and it is no confidence interval: it ignores the
    sampling of inputs and does not use `alpha_ci`.

    Raises InputError for an unknown form and for an alpha outside its range.
    """
    if form not in FORMS:
        raise InputError(unknown("form", form, FORMS))
    if not (0 <= alpha_test < 0.5 and 0 < alpha_ci < 1):
        raise InputError(f"0 <= alpha_test < 0.5 and 0 < alpha_ci < 1 are needed, got {alpha_test} and {alpha_ci}")
    robust, undecided, n = (np.asarray(count, dtype=np.float64) for count in (robust, undecided, n))
    low, high = FORMS[form](robust, robust + undecided, n, alpha_test, alpha_ci)
    return np.where(n > 0, np.clip(low, 0, 1), 0.0)[()], np.where(n > 0, np.clip(high, 0, 1), 1.0)[()]


def class_shares(
    states: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    alpha_test: float,
    alpha_ci: float,
    form: str = "corrected",
) -> DataFrame:
    """Robust inputs per class, then overall: a data frame of K + 1 rows.

    Takes `states` (N,) in STATES, `labels` (N,) in 0..K-1 and the K class names. Columns class_index (-1 for all),
    class_name ("all"), n, robust, not_robust, undecided, low, high. The K class intervals hold jointly with probability
    at least 1 - alpha_ci (each at alpha_ci/K), the overall one on its own; see `share_interval`.
    """
    import pandas as pd

    states, labels, classes = np.asarray(states), np.asarray(labels), len(class_names)
    strange = ~np.isin(states, STATES)
    if strange.any():
        raise InputError(unknown(f"row {int(strange.argmax())}: state", states[strange][0], STATES))
    counts = np.array([np.bincount(labels[states == state], minlength=classes) for state in STATES])
    parts = [(counts, alpha_ci / classes), (counts.sum(axis=1, keepdims=True), alpha_ci)]
    frames = []
    for (undecided, robust, not_robust), alpha in parts:
        n = undecided + robust + not_robust
        low, high = share_interval(robust, undecided, n, alpha_test=alpha_test, alpha_ci=alpha, form=form)
        columns = {"n": n, "robust": robust, "not_robust": not_robust, "undecided": undecided, "low": low, "high": high}
        frames.append(pd.DataFrame(columns))
    table = pd.concat(frames, ignore_index=True)
    table.insert(0, "class_index", [*range(classes), -1])
    table.insert(1, "class_name", [*class_names, "all"])
    return table


def training_methods_table(
    methods: Mapping[str, Mapping[str, DataFrame]], *, alpha: float, alpha_test: float, alpha_ci: float
) -> DataFrame:
    """Table 1 of the exact-binomial paper: one row per training method, shares as fractions.

    `methods` maps the name of a training method to its samples tables, a mapping clean, adversarial, probabilistic ->
    data frame. Only samples in all three tables count. Columns: training, n, accuracy, attack_failure_rate (share
    classified correctly under attack), robust (share decided as robust), undecided, observation (lower bound of
    P(z = 1) as the paper prints it, Eq. 7) and robust_low, robust_high (the corrected interval, confidence
    1 - alpha_ci). `alpha` is the level of the test, which the paper takes for its error rate; `alpha_test` bounds the
    actual error rate. Raises InputError for a method whose tables have no sample in common.
    """
    import pandas as pd

    rows = []
    for training, tables in methods.items():
        values, state = _on_common_samples(training, tables)
        n, robust, undecided = len(state), int((state == STATES[ROBUST]).sum()), int((state == STATES[0]).sum())
        counts = robust, undecided, n
        printed, _ = share_interval(*counts, alpha_test=alpha, alpha_ci=alpha_ci, form="paper")
        low, high = share_interval(*counts, alpha_test=alpha_test, alpha_ci=alpha_ci)
        rows.append(
            {
                "training": training,
                "n": n,
                "accuracy": values["clean"].mean(),
                "attack_failure_rate": values["adversarial"].mean(),
                "robust": robust / n,
                "undecided": undecided / n,
                "observation": float(printed),
                "robust_low": float(low),
                "robust_high": float(high),
            }
        )
    return pd.DataFrame(rows)


def _on_common_samples(training, tables):
    indexed = {name: table.set_index("sample_id") for name, table in tables.items()}
    common = set.intersection(*(set(table.index) for table in indexed.values()))
    if not common:
        raise InputError(
            f"{training}: no sample is measured by all of {', '.join(tables)}; give the measures the same subset"
        )
    ids = [sample for sample in indexed["clean"].index if sample in common]
    values = {name: indexed[name].loc[ids, "value"].to_numpy() for name in ("clean", "adversarial")}
    return values, indexed["probabilistic"].loc[ids, "state"].to_numpy()


def _corrected(called, possible, n, alpha_test, alpha_ci):
    low = lower_shares(called, n, alpha=alpha_ci / 2)
    high = 1 - lower_shares(n - possible, n, alpha=alpha_ci / 2)
    return (low - alpha_test) / (1 - alpha_test), high / (1 - alpha_test)


def _as_printed(called, possible, n, alpha_test, _alpha_ci):
    n = np.maximum(n, 1)
    return (called / n - alpha_test) / (1 + alpha_test), possible / (n * (1 - alpha_test))


FORMS = {"corrected": _corrected, "paper": _as_printed}
"""Forms of the interval by name."""

VALUES = {STATES[ROBUST]: 1.0, STATES[NOT_ROBUST]: 0.0, STATES[0]: 0.0}
"""Value of the measure by state; undecided samples are censored."""
