"""Auto-PGD on the cross-entropy."""

from typing import Literal

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Restarts, Steps


class ApgdCe(AttackSettings):
    """Auto-PGD on the cross-entropy (Croce and Hein 2020)."""

    name: Literal["apgd-ce"]
    steps: Steps = 100
    restarts: Restarts = 1


ATTACK = Attack(
    name="apgd-ce", in_ball=Form(settings=ApgdCe, function="gfscore.attacks.ball_attacks:auto_pgd_on_cross_entropy")
)
