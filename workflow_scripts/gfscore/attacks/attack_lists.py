"""Attacks of a list, one after the other on the images that still stand."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor
from torch.nn import Module

from gfscore.attacks.declaration import AttackSettings
from gfscore.attacks.gradient_ascent import Ball, assert_allowed, misclassified
from gfscore.attacks.registry import BALL_ATTACKS, expand
from gfscore.attacks.search import confirmed_attack, logits_of
from gfscore.statistics.draws import Draws


@dataclass(frozen=True)
class ListedAttack:
    """Result of one attack of a list.

    Attributes
    ----------
    name : str
        The attack; of an ensemble the member.
    rows : Tensor
        Indices (m,) int64 of the images that stood, ascending.
    points : Tensor
        Where the attack ended, (m, C, H, W) in the ball and in [0, 1].
    logits : Tensor
        Logits (m, K) of the points, in a pass of its own.
    passes : Tensor
        Forward passes of each image in the attack, (m,) int64.
    """

    name: str
    rows: Tensor
    points: Tensor
    logits: Tensor
    passes: Tensor


def attacks_in_turn(
    attacks: Iterable[AttackSettings],
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    standing: Tensor,
    ball: Ball,
    draws: Draws,
    classes: int,
    precision: str,
) -> Iterator[ListedAttack]:
    """Attack the images that stand, and after each attack go on with those that it has not fooled.

    Asserted: what an attack returns lies in the ball and in [0, 1].

    Parameters
    ----------
    attacks : iterable of AttackSettings
        In their order; ensembles are replaced by their members.
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], and (n,) int64.
    standing : Tensor
        Indices (m,) int64, ascending, of the images that are attacked.
    ball : Ball
        Norm and radius.
    draws : Draws
        Random numbers of the n images; each attack has a stream of its own, by its place in the list.
    classes : int
        Number of classes K.
    precision : str
        Arithmetic of the search.

    Yields
    ------
    ListedAttack
        Until no image stands.

    Raises
    ------
    InputError
        For an attack that needs more classes.
    """
    for number, member in enumerate(expand(attacks, classes)):
        if len(standing) == 0:
            return
        arguments = dict(member)
        name = arguments.pop("name")
        attack = confirmed_attack(BALL_ATTACKS[name].load(), misclassified, precision=precision)
        attack_draws = draws.stream(number)[standing]
        points, passes = attack(network, images[standing], labels[standing], ball=ball, draws=attack_draws, **arguments)
        points = points.detach()
        assert_allowed(points, images[standing], **ball)
        logits = logits_of(network, points)
        yield ListedAttack(name, standing, points, logits, passes)
        standing = standing[~misclassified(logits, labels[standing])]
