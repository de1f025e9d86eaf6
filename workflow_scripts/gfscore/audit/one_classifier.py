"""The audit of one classifier from its logits, without files: class scores, disparity, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics import metric_intervals, metric_values
from gfscore.core.errors import InputError
from gfscore.core.names import spelled_alike
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.measures.great import NEED_LOGITS
from gfscore.statistics import SCALE
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples, class_values, pairwise_differences, worst_classes
from gfscore.statistics.logits import require_logits
from gfscore.statistics.margins import predictions, scores

INTERVAL_METHOD = "betting"


@dataclass(frozen=True)
class Audit:
    """Class-wise robustness of one classifier.

    Parameters
    ----------
    classes : DataFrame
        One row per class: class_index, class_name, n, value, low, high, accuracy. low and high hold for all classes
        together.
    summary : dict
        Each metric by its name (value, class_mean, rdi, nrgc, wcr, fp, ...); for those that have an interval
        `<name>_interval`, a pair (low, high); wcr_class (name), wcr_tied (names) and accuracy.
    pairwise : ndarray (K, K) of float64
        Absolute differences of class values, NaN for classes without samples.
    """

    classes: pd.DataFrame
    summary: dict[str, Any]
    pairwise: NDArray[np.float64]


def audit_logits(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    class_names: Sequence[str] | None = None,
    activation: str = "softmax",
    temperature: float = 1.0,
    lam: float = 0.5,
    alpha: float = 0.05,
    seed: int = 0,
    allow_probabilities: Probabilities = False,
) -> Audit:
    """Audit a classifier for class-wise robustness from its logits.

    The value of a sample is the attack-free margin score; the metrics are those of the GF-Score paper.

    Parameters
    ----------
    logits : array-like (N, K)
        Outputs before any softmax.
    labels : array-like (N,)
        True classes, 0..K-1.
    class_names : sequence of K str, optional
        By default the indices of the classes.
    activation : str
        Activation of the margin score.
    temperature : float
        Divides the logits, above 0.
    lam : float
        Weight lambda of RDI in FP.
    alpha : float
        Every interval holds, together with the others, with probability at least 1 - alpha over the samples, if the
        labels are right and neither `temperature` nor `seed` was chosen on these samples.
    seed : int
        Decides the order in which samples are fed to the intervals.
    allow_probabilities : bool or "logarithms"
        True takes values that look like probabilities for logits; "logarithms" takes the logarithms of probabilities,
        which serve the activations that begin with a softmax.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        For non-finite logits, labels out of range, probabilities given as logits, K < 2, or a temperature of at most 0.

    References
    ----------
    The score is that of GREAT Score, the metrics those of GF-Score; intervals are by betting (Waudby-Smith and Ramdas
    2024).
    """
    if allow_probabilities == LOGARITHMS and activation in NEED_LOGITS:
        raise InputError(
            f"activation {activation}: needs logits, whose size probabilities do not tell; give logits, or activation "
            "softmax"
        )
    logits, labels = require_logits(logits, labels, allow_probabilities=allow_probabilities)
    k = logits.shape[1]
    names = _require_names(class_names, k)

    sample_scores = scores(logits, labels, activation=activation, temperature=temperature)
    values = class_values(sample_scores, labels, k)
    accuracy = class_values(predictions(logits, labels) == labels, labels, k)
    samples = class_samples(sample_scores, labels, k, seed=seed)
    low, high = ClassBounds(samples, (0.0, SCALE), INTERVAL_METHOD).interval(alpha)

    classes = pd.DataFrame(
        {
            "class_index": np.arange(k, dtype=np.int32),
            "class_name": names,
            "n": values.n,
            "value": values.mean,
            "low": low,
            "high": high,
            "accuracy": accuracy.mean,
        }
    )
    summary: dict[str, Any] = dict(metric_values(values, lam=lam))
    for name, interval in metric_intervals(values, low, high, lam=lam).items():
        summary[f"{name}_interval"] = interval
    worst = worst_classes(values.mean)
    summary["wcr_class"] = names[worst[0]]
    summary["wcr_tied"] = [names[index] for index in worst]
    summary["accuracy"] = accuracy.aggregate
    return Audit(classes=classes, summary=summary, pairwise=pairwise_differences(values.mean))


def _require_names(class_names, k):
    if class_names is None:
        return [str(index) for index in range(k)]
    names = [str(name) for name in class_names]
    if len(names) != k:
        raise InputError(f"{len(names)} class names for {k} logits per row; give one name per class")
    if len(set(names)) != k:
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InputError(f"class name {duplicate!r} stands more than once; names must differ")
    alike = spelled_alike(names)
    if alike:
        raise InputError(
            f"class names {alike[0]!a} and {alike[1]!a} differ in blanks or spelling in Unicode alone; names "
            "must differ to the eye"
        )
    return names
