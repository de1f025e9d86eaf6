"""AutoAttack: a list of other attacks."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Member


class AutoAttack(AttackSettings):
    """AutoAttack (Croce and Hein 2020): apgd-ce, apgd-targeted, fab and square, as far as there are classes enough."""

    name: Literal["autoattack"]
    # Networks that draw random numbers, which the version rand is for, are refused.
    version: Annotated[Literal["standard"], Field(description="Version of the paper.")] = "standard"


MEMBERS: tuple[Member, ...] = (
    {"name": "apgd-ce", "steps": 100, "restarts": 1},
    {"name": "apgd-targeted", "steps": 100, "targets": 9},
    {"name": "fab", "steps": 100, "targets": 9},
    {"name": "square", "queries": 5000},
)
"""Members of the standard version (Croce and Hein 2020, section 6)."""

ATTACK = Attack(name="autoattack", in_ball=Form(settings=AutoAttack, members=lambda settings: MEMBERS))
