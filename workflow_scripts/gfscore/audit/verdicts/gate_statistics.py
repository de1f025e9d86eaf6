"""What a rule of the gate may judge: a number made of class values, with a bound on each side at a stated level.

Each statistic takes bounds of classes, or of groups in their place, at any level: `lower(alpha)` and `upper(alpha)`,
(K,), one side and one class at a time, `lower_aggregate(alpha)` and `upper_aggregate(alpha)`, of the mean over all
samples, and `n` (K,). It gives `(low, high)`, of which each holds with probability at least 1 - alpha, not both
together: a rule's verdict can only be wrong on one side, the one that the truth is not on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gfscore.audit.verdicts.gate_rules import FALSIFICATION, GROUP_GAP
from gfscore.core.errors import InputError, unknown
from gfscore.statistics import disparity
from gfscore.statistics.intervals import fp_interval, largest_gap, nrgc_interval


@dataclass(frozen=True)
class Statistic:
    """A number made of K class values.

    `title` names it in a sentence; `value` takes ClassValues; `bounds` takes bounds of classes, and alpha; `only` is
    the index of the one class that it rests on, or None.
    """

    title: str
    value: Callable
    bounds: Callable
    only: int | None = None


def statistic_of(rule, *, class_names, lam):
    """Statistic that a rule of the gate names; `class_names` (K) and `lam` of FP complete it."""
    name = rule["statistic"]
    if name == "class":
        return _one_class(rule["class"], list(class_names), "mean")
    if name == FALSIFICATION and rule.get("class") is not None:
        return _one_class(rule["class"], list(class_names), CONTRADICTED)
    if name == "fp":
        return _fp(lam)
    if name == GROUP_GAP:
        return replace(_STATISTICS["rdi"], title=f"largest difference between the groups by {rule['attribute']}")
    return _STATISTICS[name]


CONTRADICTED = "falsification rate, a lower bound on the share of violations,"


def _worst(classes, alpha):
    # The lower bound fails only if that of the truly worst class does: no union over classes. The upper one fails if
    # that of any class does.
    return classes.lower(alpha).min(), classes.upper(alpha / len(classes.n)).min()


def _range(classes, alpha):
    # Likewise the upper bound fails only if that of the truly best or the lower one of the truly worst class does.
    side = alpha / (2 * len(classes.n))
    low = largest_gap(classes.lower(side), classes.upper(side))
    return low, largest_gap(classes.upper(alpha / 2), classes.lower(alpha / 2))


def _aggregate(classes, alpha):
    # ASSUME: classes are as frequent as in the samples. That of a declared class without any is unknown, as its values
    # are: nothing is known of an aggregate that counts it, and the bounds of that class, the whole range, stand for it.
    if (classes.n == 0).any():
        return classes.lower(alpha).min(), classes.upper(alpha).max()
    return classes.lower_aggregate(alpha), classes.upper_aggregate(alpha)


def _class_mean(classes, alpha):
    # Of classes of one size it is the aggregate. Else samples count unequally, and the bounds of the classes make it.
    if (classes.n == classes.n[0]).all():
        return _aggregate(classes, alpha)
    side = alpha / len(classes.n)
    return classes.lower(side).mean(), classes.upper(side).mean()


def _over_box(extremes):
    def bounds(classes, alpha):
        side = alpha / (2 * len(classes.n))
        return extremes(classes.lower(side), classes.upper(side))

    return bounds


def _one_class(name, class_names, what):
    if name not in class_names:
        raise InputError(f"gate: {unknown('class', name, class_names)}")
    k = class_names.index(name)
    return Statistic(
        title=f"{what} of class {name}",
        value=lambda values: values.mean[k],
        bounds=lambda classes, alpha: (classes.lower(alpha)[k], classes.upper(alpha)[k]),
        only=k,
    )


def _fp(lam):
    return Statistic(
        title="FP",
        value=lambda values: disparity.fp(values.mean, lam),
        bounds=_over_box(lambda low, high: fp_interval(low, high, lam)),
    )


_STATISTICS = {
    "wcr": Statistic(title="worst-class mean", value=lambda values: disparity.wcr(values.mean), bounds=_worst),
    "rdi": Statistic(title="RDI", value=lambda values: disparity.rdi(values.mean), bounds=_range),
    "nrgc": Statistic(title="NRGC", value=lambda values: disparity.nrgc(values.mean), bounds=_over_box(nrgc_interval)),
    "value": Statistic(title="aggregate", value=lambda values: values.aggregate, bounds=_aggregate),
    "class_mean": Statistic(title="class mean", value=lambda values: values.class_mean, bounds=_class_mean),
    # All classes together are one class here, so that no union over classes widens the bounds.
    FALSIFICATION: Statistic(
        title=CONTRADICTED,
        value=lambda values: values.mean[0],
        bounds=lambda classes, alpha: (classes.lower(alpha)[0], classes.upper(alpha)[0]),
    ),
}
