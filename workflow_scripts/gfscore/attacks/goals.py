"""What an attack aims at: the loss that it raises, and when it has succeeded.

A goal speaks of logits (n, K) and of `aims`: the labels (n,) int64, or for a targeted one labels and targets (n, 2).
"""

from collections.abc import Callable
from dataclasses import dataclass

from gfscore.attacks.gradient_ascent import correct, cross_entropy, misclassified
from gfscore.core.tensors import Tensor


@dataclass(frozen=True)
class Goal:
    """`loss(logits, aims)` -> (n,), to be raised, and `reached(logits, aims)` -> (n,) bool."""

    loss: Callable[[Tensor, Tensor], Tensor]
    reached: Callable[[Tensor, Tensor], Tensor]


def difference_of_logits_ratio(logits: Tensor, labels: Tensor) -> Tensor:
    """Best other logit minus the true one, over the distance of the first from the third; (n,).

    Unlike cross-entropy it does not change when logits are scaled, so confident classifiers do not hide their
    gradients. Needs K >= 3. Source: Croce and Hein 2020, Eq. 6.
    """
    top = logits.topk(3, dim=1).values
    others = logits.scatter(1, labels[:, None], -float("inf"))
    return (others.amax(1) - _logit(logits, labels)) / (top[:, 0] - top[:, 2] + _TINY)


def difference_of_logits_ratio_to_target(logits: Tensor, aims: Tensor) -> Tensor:
    """The target's logit minus the true one, over the first's distance from the mean of third and fourth; (n,).

    Needs K >= 4. Source: Croce and Hein 2020, Eq. 7.
    """
    labels, targets = aims.unbind(1)
    top = logits.topk(4, dim=1).values
    scale = top[:, 0] - (top[:, 2] + top[:, 3]) / 2
    return (_logit(logits, targets) - _logit(logits, labels)) / (scale + _TINY)


def lead_of_others(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-odds of the other classes together, log sum_{j != y} exp(z_j) - z_y = log(exp(cross-entropy) - 1); (n,).

    It rises with the cross-entropy and in the same direction. But the cross-entropy, and its gradient, is 0 where the
    label's probability rounds to 1, in float32 from a lead of 17 on; this one has a gradient at any confidence.
    """
    others = logits.scatter(1, labels[:, None], -float("inf"))
    return others.logsumexp(1) - _logit(logits, labels)


def lead_of_target(logits: Tensor, aims: Tensor) -> Tensor:
    """Log-odds of the target, (n,): rises as its cross-entropy falls, and in the opposite direction."""
    return -lead_of_others(logits, aims[:, 1])


def target_reached(logits: Tensor, aims: Tensor) -> Tensor:
    """Whether the target is predicted, (n,) bool; a tie at the top counts against the true class, as elsewhere."""
    labels, targets = aims.unbind(1)
    others = logits.scatter(1, labels[:, None], -float("inf"))
    return ~correct(logits, labels) & (others.argmax(1) == targets) & ~logits.isnan().any(1)


def _logit(logits, classes):
    return logits.gather(1, classes[:, None])[:, 0]


_TINY = 1e-12

LESS_LIKELY = Goal(lead_of_others, misclassified)
LESS_LIKELY_ON_AVERAGE = Goal(cross_entropy, misclassified)
"""For means over passes of a network that draws random numbers, whose direction the shape of the loss decides."""
OUT_OF_FIRST_PLACE = Goal(difference_of_logits_ratio, misclassified)
AWAY_THROUGH_TARGET = Goal(difference_of_logits_ratio_to_target, lambda logits, aims: misclassified(logits, aims[:, 0]))
"""Towards a target, until any wrong class is predicted."""
INTO_TARGET = Goal(lead_of_target, target_reached)
