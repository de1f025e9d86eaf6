"""AutoAttack: a list of other attacks."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Member


class AutoAttack(AttackSettings):
    """AutoAttack (Croce and Hein 2020): apgd-ce, apgd-targeted, fab and square, as far as there are classes enough."""

    name: Literal["autoattack"]
    version: Annotated[
        Literal["standard", "rand"], Field(description="rand for networks that draw random numbers themselves.")
    ] = "standard"


VERSIONS: dict[str, tuple[Member, ...]] = {
    "standard": (
        {"name": "apgd-ce", "steps": 100, "restarts": 1},
        {"name": "apgd-targeted", "steps": 100, "targets": 9},
        {"name": "fab", "steps": 100, "targets": 9},
        {"name": "square", "queries": 5000},
    ),
    "rand": (
        {"name": "apgd-ce", "steps": 100, "restarts": 1, "gradient_samples": 20},
        {"name": "apgd-dlr", "steps": 100, "restarts": 1, "gradient_samples": 20},
    ),
}
"""Members by version (Croce and Hein 2020, section 6)."""

ATTACK = Attack(
    name="autoattack", in_ball=Form(settings=AutoAttack, members=lambda settings: VERSIONS[settings.version])
)
