"""Projected gradient descent: gradient steps of one length from random points of the ball."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Attack, AttackSettings, Distance, Form, Restarts, Steps


class Pgd(AttackSettings):
    """Projected gradient ascent from random starts (Madry et al. 2018)."""

    name: Literal["pgd"]
    steps: Steps = 20
    step_size: Annotated[
        Distance | None, Field(description="Length of one step; null for 2.5 radii over all steps.")
    ] = None
    restarts: Restarts = 1


ATTACK = Attack(name="pgd", in_ball=Form(settings=Pgd, function="gfscore.attacks.ball_attacks:pgd"))
