"""Fast adaptive boundary attack: the nearest point of the linearised decision boundary, again and again."""

from typing import Literal

from gfscore.attacks.declaration import Attack, AttackSettings, Form, Steps, Targets


class FabInBall(AttackSettings):
    """Fast adaptive boundary attack (Croce and Hein 2020): adversarial examples within the ball."""

    name: Literal["fab"]
    steps: Steps = 100
    targets: Targets = 9


class NearestFab(AttackSettings):
    """Fast adaptive boundary attack (Croce and Hein 2020)."""

    name: Literal["fab"]
    steps: Steps = 100


ATTACK = Attack(
    name="fab",
    in_ball=Form(settings=FabInBall, function="gfscore.attacks.libraries:fab_in_ball"),
    nearest=Form(settings=NearestFab, function="gfscore.attacks.libraries:nearest_fab"),
)
