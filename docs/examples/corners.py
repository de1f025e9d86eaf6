"""Random corners of the ball: the simplest attack without gradients, in l_inf, where corners are farthest away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import NO_GRADIENTS, Attack, AttackSettings, Form

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from gfscore.attacks.gradient_ascent import Ball
    from gfscore.statistics.draws import Draws


class Corners(AttackSettings):
    """Random corners of the ball, which needs no gradients."""

    name: Literal["corners"]
    tries: Annotated[int, Field(ge=1, description="Corners tried.")] = 100


def corners(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, tries: int
) -> tuple[Tensor, Tensor]:
    """Points (n, C, H, W) and forward passes spent on each image, (n,) int64; a fooled image leaves the batch."""
    from gfscore.attacks.goals import LOG_ODDS
    from gfscore.attacks.gradient_ascent import project
    from gfscore.attacks.search import Search, logits_of

    search = Search(images, LOG_ODDS)
    for number in range(tries):
        x, y = images[search.standing], labels[search.standing]
        if len(x) == 0:
            break
        # Each image's own, whatever is attacked beside it.
        corner = draws.stream(number)[search.standing].uniform(x.shape[1:]).sign() * ball["eps"]
        points = project(x + corner, x, **ball)
        search.spend(1)
        search.record_positions(points)
        search.note(points, logits_of(network, points), y)
    return search.result


ATTACK = Attack(
    name="corners",
    in_ball=Form(settings=Corners, function="gfscore.attacks.corners:corners"),
    norms=("linf",),
    gradients=NO_GRADIENTS,
)
