"""Auto-PGD towards one wrong class after the other."""

from typing import Literal

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Steps, Targets


class ApgdTargeted(AttackSettings):
    """Auto-PGD on the targeted difference of logits ratio, which compares with the fourth logit."""

    name: Literal["apgd-targeted"]
    steps: Steps = 100
    targets: Targets = 9


ATTACK = Attack(
    name="apgd-targeted",
    in_ball=Form(settings=ApgdTargeted, function="gfscore.attacks.ball_attacks:auto_pgd_targeted"),
    fewest_classes=4,
    with_fewer="apgd-dlr",
)
