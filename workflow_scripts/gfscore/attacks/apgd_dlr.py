"""Auto-PGD on the difference of logits ratio, which does not change when logits are scaled."""

from typing import Literal

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Restarts, Steps


class ApgdDlr(AttackSettings):
    """Auto-PGD on the difference of logits ratio, which compares the first with the third logit."""

    name: Literal["apgd-dlr"]
    steps: Steps = 100
    restarts: Restarts = 1


ATTACK = Attack(
    name="apgd-dlr",
    in_ball=Form(settings=ApgdDlr, function="gfscore.attacks.ball_attacks:auto_pgd_on_logits_ratio"),
    fewest_classes=3,
    with_fewer="apgd-ce",
)
