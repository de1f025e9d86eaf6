"""Carlini and Wagner's attack: the least weighted sum of squared distance and margin."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Attack, AttackSettings, Form


class CarliniWagner(AttackSettings):
    """Carlini and Wagner 2017."""

    name: Literal["carlini-wagner"]
    steps: Annotated[
        int,
        Field(
            ge=1,
            description="Steps of the optimiser for each weight; about 600 of length 0.01, or 100 of 0.05: 100 of 0.01 "
            "end up to 3.5 times too far.",
        ),
    ] = 600
    binary_search_steps: Annotated[int, Field(ge=1, description="Searches for the weight of the distance.")] = 9
    step_size: Annotated[float, Field(gt=0, description="Length of a step of the optimiser.")] = 0.01


ATTACK = Attack(
    name="carlini-wagner",
    nearest=Form(settings=CarliniWagner, function="gfscore.attacks.libraries:carlini_wagner"),
    norms=("l2",),
)
