"""Numbers of the three findings, each a triple `(value, low, high)` unless it says otherwise."""

import numpy as np

from studies.real_networks.statistics import KEEPS_ACCURACY, mean_over_families, order_over_families
from studies.reproduction.classwise_networks import miss_rate_order
from studies.reproduction.real_networks import (
    CHECKPOINTS,
    TARGETED,
    accuracy,
    average,
    class_order,
    family_of,
    measurement,
    networks,
)

DEFINITIONS = {
    "success": "success",
    "excess": "beyond the undisturbed rate",
    "among_misclassified": "of the misclassified",
}
"""Definitions of targeted success, and their words."""


def standing():
    """The checkpoints that keep some accuracy under attack, as `networks` returns them."""
    accurate = {}
    for name, classes in networks(CHECKPOINTS).items():
        if average(classes, "attacked_recall") >= KEEPS_ACCURACY:
            accurate[name] = classes
    return accurate


def class_orders(column, against="attacked_recall"):
    """Rho over classes of a column with another, per network that keeps accuracy: `(values, families)`."""
    order = class_order(column, against)
    frames = standing().values()
    return [order(classes) for classes in frames], [family_of(classes) for classes in frames]


def class_agreement(column, against="attacked_recall"):
    """Mean over networks of the rho over classes."""
    orders, families = class_orders(column, against)
    return mean_over_families(orders, families)


def class_advantage(column, baseline):
    """Mean over networks of how much better one column orders the classes under attack than another."""
    orders, families = class_orders(column)
    baseline_orders, _ = class_orders(baseline)
    return mean_over_families(np.subtract(orders, baseline_orders), families)


def trained_against_attacks(name):
    """Whether a checkpoint was; the files of the others begin with std."""
    return not name.startswith("std")


def model_agreement(column, *, robust_only=False):
    """Rho over the checkpoints of the mean of a column with the accuracy under attack.

    `robust_only`: of the networks that were trained against attacks alone.
    """
    means = []
    attacked = []
    families = []
    for name, classes in networks(CHECKPOINTS).items():
        if robust_only and not trained_against_attacks(name):
            continue
        means.append(average(classes, column))
        attacked.append(average(classes, "attacked_recall"))
        families.append(family_of(classes))
    return order_over_families(means, attacked, families)


def shared(audit, measure):
    """Row of the share of the variance between classes that families have in common, a data frame's row."""
    return measurement("shared", audit=audit, measure=measure).iloc[0]


def better_by_cfps(definition="success"):
    """Names of the networks on which CFPS orders the classes by targeted success better than 1 - recall does."""
    by_cfps = class_order("cfps", f"target_{definition}")
    by_miss_rate = miss_rate_order(definition)
    return [name for name, classes in networks(TARGETED).items() if by_cfps(classes) > by_miss_rate(classes)]


def untargeted_predictors():
    """Rho over classes of undisturbed CFPS with CFPS under attack, and of recall with recall under attack."""
    return class_agreement("cfps", "attacked_cfps"), class_agreement("recall", "attacked_recall")


def accuracies():
    """Accuracy of each checkpoint undisturbed and under attack: `{name: (clean, attacked)}`."""
    result = {}
    for name, classes in networks(CHECKPOINTS).items():
        result[name] = accuracy(classes), average(classes, "attacked_recall")
    return result
