"""Square attack: random search over squares, which needs no gradients."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import NO_GRADIENTS, Attack, AttackSettings, Form


class Square(AttackSettings):
    """Random search with squares (Andriushchenko et al. 2020), which only sees logits."""

    name: Literal["square"]
    queries: Annotated[int, Field(ge=1, description="Forward passes.")] = 1000


ATTACK = Attack(
    name="square",
    in_ball=Form(settings=Square, function="gfscore.attacks.square_search:square"),
    gradients=NO_GRADIENTS,
)
