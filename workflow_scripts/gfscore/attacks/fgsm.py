"""Fast gradient sign method: one gradient step to the edge of the ball."""

from typing import Literal

from gfscore.attacks.declaration import ONE_STEP, Attack, AttackSettings, Form


class Fgsm(AttackSettings):
    """One gradient step (Goodfellow et al. 2015)."""

    name: Literal["fgsm"]


ATTACK = Attack(
    name="fgsm", in_ball=Form(settings=Fgsm, function="gfscore.attacks.ball_attacks:fgsm"), gradients=ONE_STEP
)
