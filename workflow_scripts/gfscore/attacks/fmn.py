"""Fast minimum-norm attack: gradient steps in a ball whose radius follows the boundary."""

from typing import Literal

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Steps


class Fmn(AttackSettings):
    """Fast minimum-norm attack (Pintor et al. 2021)."""

    name: Literal["fmn"]
    steps: Steps = 100


ATTACK = Attack(name="fmn", nearest=Form(settings=Fmn, function="gfscore.attacks.minimal_norm:fmn"))
