"""DeepFool: steps to the nearest boundary of the linearised network, until one is crossed."""

from typing import Literal

from gfscore.attacks.declaration import FIRST_CROSSING, Attack, AttackSettings, Form, Steps


class DeepFool(AttackSettings):
    """DeepFool (Moosavi-Dezfooli et al. 2016)."""

    name: Literal["deepfool"]
    steps: Steps = 50


ATTACK = Attack(
    name="deepfool",
    nearest=Form(settings=DeepFool, function="gfscore.attacks.minimal_norm:deepfool"),
    gradients=FIRST_CROSSING,
)
