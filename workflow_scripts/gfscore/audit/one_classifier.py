"""The audit of one classifier from its logits, without files: class scores, disparity, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.model_summary import summarise
from gfscore.core.errors import InputError
from gfscore.core.names import spelled_alike
from gfscore.core.settings import LOGARITHMS, Probabilities
from gfscore.measures.great import NEED_LOGITS
from gfscore.statistics import SCALE
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples, class_values, pairwise_differences
from gfscore.statistics.logits import require_logits
from gfscore.statistics.margins import predictions, scores

if TYPE_CHECKING:
    from pandas import DataFrame

INTERVAL_METHOD = "betting"


@dataclass(frozen=True)
class Audit:
    """Class-wise robustness of one classifier.

    `classes`: data frame with class_index, class_name, n, value, low, high, accuracy, one row per class; low and
    high hold for all classes together. `summary`: mapping with each metric by its name (value, class_mean, rdi, nrgc,
    wcr, fp, ...), for those that have an interval `<name>_interval`, a pair (low, high), wcr_class (name), wcr_tied
    (names) and accuracy. `pairwise`: absolute differences of class values, (K, K) float64, NaN for classes without
    samples.
    """

    classes: DataFrame
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

    Takes `logits` (N, K) before any softmax, `labels` (N,) in 0..K-1, optional K `class_names`, the `activation`
    and `temperature` of the attack-free margin score, `lam` of FP, and `alpha`: every interval holds, together with
    the others, with probability at least 1 - alpha over the samples, if the labels are right and neither `temperature`
    nor `seed` was chosen on these samples. `allow_probabilities`: True takes values that look like probabilities for
    logits; "logarithms" takes the logarithms of probabilities, which serve the activations that begin with a softmax.
    Intervals are Waudby-Smith and Ramdas's by betting, fed in an order that `seed` decides.
    Raises InputError for non-finite logits, labels out of range, probabilities given as logits, K < 2, T <= 0.
    """
    import pandas as pd

    if allow_probabilities == LOGARITHMS and activation in NEED_LOGITS:
        raise InputError(
            f"activation {activation}: needs logits, whose size probabilities do not tell; give logits, or activation "
            "softmax"
        )
    logits, labels = require_logits(logits, labels, allow_probabilities=allow_probabilities)
    k = logits.shape[1]
    names = _require_names(class_names, k)
    measured = scores(logits, labels, activation=activation, temperature=temperature)
    values = class_values(measured, labels, k)
    accuracy = class_values(predictions(logits, labels) == labels, labels, k)
    samples = class_samples(measured, labels, k, seed=seed)
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
    summary = summarise(values, low, high, class_names=names, lam=lam)
    pairwise = pairwise_differences(values.mean)
    return Audit(classes=classes, summary=summary | {"accuracy": accuracy.aggregate}, pairwise=pairwise)


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
