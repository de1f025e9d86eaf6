"""Numbers of the three findings, each a triple `(value, low, high)` unless it says otherwise."""

from studies.real_networks.statistics import KEEPS_ACCURACY, mean_over_families, order_over_families
from studies.reproduction.classwise_networks import miss_rate_order
from studies.reproduction.real_networks import (
    CHECKPOINTS,
    TARGETED,
    accuracy,
    average,
    class_order,
    measurement,
    networks,
    per_network,
)

DEFINITIONS = {
    "success": "success",
    "excess": "beyond the undisturbed rate",
    "among_misclassified": "of the misclassified",
}
"""Definitions of targeted success, and their words."""


def standing():
    """The checkpoints that keep some accuracy under attack, as `networks` returns them."""
    found = networks(CHECKPOINTS)
    return {name: own for name, own in found.items() if average(own, "attacked_recall") >= KEEPS_ACCURACY}


def class_orders(column, against="attacked_recall"):
    """Rho over classes of a column with another, per network that keeps accuracy: `(values, families)`."""
    found = standing().values()
    return [class_order(column, against)(own) for own in found], [own["family"].iloc[0] for own in found]


def class_agreement(column, against="attacked_recall"):
    """Mean over networks of the rho over classes."""
    return mean_over_families(*class_orders(column, against))


def class_advantage(column, other):
    """Mean over networks of how much better one column orders the classes under attack than another."""
    (first, families), (second, _) = class_orders(column), class_orders(other)
    return mean_over_families([x - y for x, y in zip(first, second, strict=True)], families)


def trained_against_attacks(name):
    """Whether a checkpoint was; the files of the others begin with std."""
    return not name.startswith("std")


def model_agreement(column, *, robust_only=False):
    """Rho over the checkpoints of the mean of a column with the accuracy under attack.

    `robust_only`: of the networks that were trained against attacks alone.
    """
    found = {
        name: own for name, own in networks(CHECKPOINTS).items() if not robust_only or trained_against_attacks(name)
    }
    means = [[average(own, name) for own in found.values()] for name in (column, "attacked_recall")]
    return order_over_families(*means, [own["family"].iloc[0] for own in found.values()])


def shared(audit, measure):
    """Row of the share of the variance between classes that families have in common, a data frame's row."""
    return measurement("shared", audit=audit, measure=measure).iloc[0]


def better_by_cfps(definition="success"):
    """Names of the networks on which CFPS orders the classes by targeted success better than 1 - recall does."""
    found = networks(TARGETED)
    by_cfps, by_miss = class_order("cfps", f"target_{definition}"), miss_rate_order(definition)
    return [name for name, own in found.items() if by_cfps(own) > by_miss(own)]


def untargeted_predictors():
    """Rho over classes of undisturbed CFPS with CFPS under attack, and of recall with recall under attack."""
    return class_agreement("cfps", "attacked_cfps"), class_agreement("recall", "attacked_recall")


def accuracies():
    """Accuracy of each checkpoint undisturbed and under attack: `{name: (clean, attacked)}`."""
    names = list(networks(CHECKPOINTS))
    clean, _ = per_network(accuracy, CHECKPOINTS)
    attacked, _ = per_network(lambda own: average(own, "attacked_recall"), CHECKPOINTS)
    return dict(zip(names, zip(clean, attacked, strict=True), strict=True))
