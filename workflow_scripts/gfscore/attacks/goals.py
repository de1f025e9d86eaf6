"""Goals of attacks: the loss that an attack raises, and its criterion of success.

A goal speaks of logits (n, K) and of `aims`: the labels (n,) int64, or for a targeted attack labels and targets (n, 2).
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gfscore.attacks.gradient_ascent import logit_of, misclassified, other_logits

TINY = 1e-12
"""Added to the denominator of a difference of logits ratio, which may be 0."""


@dataclass(frozen=True)
class Goal:
    """Loss of an attack, and its criterion of success.

    Parameters
    ----------
    loss : callable
        loss(logits, aims) -> (n,), which the attack raises.
    reached : callable
        reached(logits, aims) -> (n,) bool, whether the attack has succeeded.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    reached: Callable[[Tensor, Tensor], Tensor]


def log_odds_of_others(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-odds of the other classes together, log sum_{j != y} exp(z_j) - z_y = log(exp(cross-entropy) - 1).

    It rises with the cross-entropy and in the same direction. But the cross-entropy, and its gradient, is 0 where the
    label's probability rounds to 1, in float32 from a lead of 17 on; this loss has a gradient at any confidence.

    Returns
    -------
    Tensor
        (n,), in nats.
    """
    return other_logits(logits, labels).logsumexp(1) - logit_of(logits, labels)


def log_odds_of_target(logits: Tensor, aims: Tensor) -> Tensor:
    """Log-odds of the target, (n,): rises as its cross-entropy falls, and in the opposite direction."""
    return -log_odds_of_others(logits, aims[:, 1])


def difference_of_logits_ratio(logits: Tensor, labels: Tensor) -> Tensor:
    """Best other logit minus the true one, over the distance of the largest from the third.

    Unlike cross-entropy it does not change when logits are scaled, so confident classifiers do not hide their
    gradients.

    Parameters
    ----------
    logits : Tensor
        (n, K) with K >= 3.
    labels : Tensor
        (n,) int64.

    Returns
    -------
    Tensor
        (n,); positive where the sample is misclassified.

    References
    ----------
    Croce and Hein 2020, Eq. 6.
    """
    largest = logits.topk(3, dim=1).values
    lead = other_logits(logits, labels).amax(1) - logit_of(logits, labels)
    return lead / _divisor(largest[:, 0] - largest[:, 2])


def difference_of_logits_ratio_to_target(logits: Tensor, aims: Tensor) -> Tensor:
    """Target's logit minus the true one, over the distance of the largest from the mean of third and fourth.

    Parameters
    ----------
    logits : Tensor
        (n, K) with K >= 4.
    aims : Tensor
        Labels and targets, (n, 2) int64.

    Returns
    -------
    Tensor
        (n,).

    References
    ----------
    Croce and Hein 2020, Eq. 7.
    """
    labels, targets = aims.unbind(1)
    largest = logits.topk(4, dim=1).values
    scale = largest[:, 0] - (largest[:, 2] + largest[:, 3]) / 2
    return (logit_of(logits, targets) - logit_of(logits, labels)) / _divisor(scale)


def _divisor(scale: Tensor) -> Tensor:
    # A logit of -infinity excludes its class: where it is one of those compared, the lead itself is the loss, since a
    # quotient by infinity would be 0 everywhere.
    return scale.where(scale.isfinite(), 1.0) + TINY


def target_reached(logits: Tensor, aims: Tensor) -> Tensor:
    """Whether the target is predicted, (n,) bool; a tie at the top counts against the true class."""
    labels, targets = aims.unbind(1)
    best_other = other_logits(logits, labels).argmax(1)
    return misclassified(logits, labels) & (best_other == targets)


def wrong_class_predicted(logits: Tensor, aims: Tensor) -> Tensor:
    """Whether any wrong class is predicted, the target or not, (n,) bool."""
    return misclassified(logits, aims[:, 0])


LOG_ODDS = Goal(log_odds_of_others, misclassified)
"""Untargeted, by the cross-entropy in a form that keeps its gradient."""

LOGITS_RATIO = Goal(difference_of_logits_ratio, misclassified)
"""Untargeted, by the difference of logits ratio (DLR)."""

TARGETED_LOGITS_RATIO = Goal(difference_of_logits_ratio_to_target, wrong_class_predicted)
"""Towards a target, until any wrong class is predicted: the targeted attack of AutoAttack."""

TARGETED_LOG_ODDS = Goal(log_odds_of_target, target_reached)
"""Towards a target, until it is predicted."""
