"""Attacks as measures name them: the settings of each, and what it needs.

Imports nothing heavy, because the configuration is checked with it.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from gfscore.attacks.balls import Distance
from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import Closed

Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, Field(ge=1, description="Gradient steps.")]
Restarts = Annotated[int, Field(ge=1, description="Random starts; a sample must survive all.")]
Targets = Annotated[int, Field(ge=1, description="Most likely other classes aimed at.")]


class Attack(Closed):
    """Settings of one attack; what it needs stands in its class.

    `gradients`: whether it follows gradients; `fewest_classes` that it is defined for; `norms` that it searches in.
    """

    gradients: ClassVar[bool] = True
    fewest_classes: ClassVar[int] = 2
    norms: ClassVar[tuple[str, ...]] = ("linf", "l2")


class Fgsm(Attack):
    """One gradient step (Goodfellow et al. 2015)."""

    name: Literal["fgsm"]


class Pgd(Attack):
    """Projected gradient ascent from random starts (Madry et al. 2018)."""

    name: Literal["pgd"]
    steps: Steps = 20
    step_size: Annotated[
        Distance | None, Field(description="Length of one step; null for 2.5 radii over all steps.")
    ] = None
    restarts: Restarts = 1


class ApgdCe(Attack):
    """Auto-PGD on the cross-entropy (Croce and Hein 2020)."""

    name: Literal["apgd-ce"]
    steps: Steps = 100
    restarts: Restarts = 1


class ApgdDlr(Attack):
    """Auto-PGD on the difference of logits ratio, which compares the first with the third logit."""

    fewest_classes: ClassVar[int] = 3

    name: Literal["apgd-dlr"]
    steps: Steps = 100
    restarts: Restarts = 1


class ApgdTargeted(Attack):
    """Auto-PGD on the targeted difference of logits ratio, which compares with the fourth logit."""

    fewest_classes: ClassVar[int] = 4

    name: Literal["apgd-targeted"]
    steps: Steps = 100
    targets: Targets = 9


class FabInBall(Attack):
    """Fast adaptive boundary attack (Croce and Hein 2020), what it finds within the ball."""

    name: Literal["fab"]
    steps: Steps = 100
    targets: Targets = 9


class Square(Attack):
    """Random search with squares (Andriushchenko et al. 2020), which only sees logits."""

    gradients: ClassVar[bool] = False

    name: Literal["square"]
    queries: Annotated[Count, Field(description="Forward passes.")] = 1000


class AutoAttack(Attack):
    """AutoAttack (Croce and Hein 2020): apgd-ce, apgd-targeted, fab and square, as far as there are classes enough."""

    name: Literal["autoattack"]
    version: Annotated[
        Literal["standard", "rand"], Field(description="rand for networks that draw random numbers themselves.")
    ] = "standard"


BallAttack = Annotated[
    Fgsm | Pgd | ApgdCe | ApgdDlr | ApgdTargeted | FabInBall | Square | AutoAttack, Field(discriminator="name")
]
"""Attack within a ball."""


class Fmn(Attack):
    """Fast minimum-norm attack (Pintor et al. 2021)."""

    name: Literal["fmn"]
    steps: Steps = 100


class DeepFool(Attack):
    """DeepFool (Moosavi-Dezfooli et al. 2016)."""

    name: Literal["deepfool"]
    steps: Steps = 50


class NearestFab(Attack):
    """Fast adaptive boundary attack (Croce and Hein 2020)."""

    name: Literal["fab"]
    steps: Steps = 100


class CarliniWagner(Attack):
    """Carlini and Wagner 2017."""

    norms: ClassVar[tuple[str, ...]] = ("l2",)

    name: Literal["carlini-wagner"]
    steps: Annotated[
        int,
        Field(
            ge=1,
            description="Steps of the optimiser for each weight; about 600 of length 0.01, or 100 of 0.05: 100 of 0.01 "
            "end up to 3.5 times too far.",
        ),
    ] = 600
    binary_search_steps: Annotated[Count, Field(description="Searches for the weight of the distance.")] = 9
    step_size: Annotated[float, Field(gt=0, description="Length of a step of the optimiser.")] = 0.01


MinimalAttack = Annotated[Fmn | DeepFool | NearestFab | CarliniWagner, Field(discriminator="name")]
"""Attack that looks for the nearest misclassified point."""


def _by_name(*attacks: type[Attack]) -> dict[str, type[Attack]]:
    return {attack.model_fields["name"].annotation.__args__[0]: attack for attack in attacks}  # type: ignore[union-attr]


BALL_ATTACKS = _by_name(Fgsm, Pgd, ApgdCe, ApgdDlr, ApgdTargeted, FabInBall, Square, AutoAttack)
"""Settings of the attacks within a ball, by name."""

MINIMAL_ATTACKS = _by_name(Fmn, DeepFool, NearestFab, CarliniWagner)
"""Settings of the minimal-norm attacks, by name."""

_MEMBERS = {name: attack for name, attack in BALL_ATTACKS.items() if attack is not AutoAttack}

WHITE_BOX = tuple(name for name, attack in _MEMBERS.items() if attack.gradients)
"""Attacks that follow gradients."""

BLACK_BOX = tuple(name for name, attack in _MEMBERS.items() if not attack.gradients)
"""Attacks that only see logits."""

VERSIONS: dict[str, tuple[dict[str, Any], ...]] = {
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
"""Members of AutoAttack (Croce and Hein 2020, section 6), rand for networks that draw random numbers themselves."""


def complete(entry: Mapping[str, Any], known: Mapping[str, type[Attack]]) -> dict[str, Any]:
    """Entry of a list of attacks with its defaults, from BALL_ATTACKS or MINIMAL_ATTACKS.

    Raises InputError for an unknown attack, an unknown setting, and a value that a setting cannot have.
    """
    name = entry["name"]
    if name not in known:
        raise InputError(unknown("attack", name, known))
    own = [key for key in known[name].model_fields if key != "name"]
    for key in entry:
        if key != "name" and key not in own:
            raise InputError(f"attack {name!r} has no setting {key!r}; it has {', '.join(own) or 'none'}")
    try:
        return known[name].model_validate(dict(entry)).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"attack {name!r}: {where}: {first['msg']}; got {first['input']!r}") from error


def expand(entries: Iterable[Mapping[str, Any]], classes: float) -> list[dict[str, Any]]:
    """Entries of a list of attacks with AutoAttack replaced by its members, in the order in which they run.

    `classes` K limits targets to K - 1. With 3 classes, for which the targeted difference of logits ratio is not
    defined, AutoAttack runs apgd-dlr in place of apgd-targeted; with 2 it leaves both out. Settings that are not given
    have their defaults. Raises InputError as `complete` does, and for an attack that needs more classes.
    """
    found = []
    for entry in entries:
        for member in _members(complete(entry, BALL_ATTACKS), classes):
            fewest = BALL_ATTACKS[member["name"]].fewest_classes
            if classes < fewest:
                instead = "apgd-ce" if classes == 2 else "apgd-ce or apgd-dlr"
                raise InputError(
                    f"attack {member['name']!r} needs at least {fewest} classes, and here are {classes}: its loss "
                    f"compares that many logits; use {instead}"
                )
            limited = {"targets": min(member["targets"], classes - 1)} if "targets" in member else {}
            found.append(member | limited)
    return found


def _members(entry: dict[str, Any], classes: float) -> list[dict[str, Any]]:
    if entry["name"] != "autoattack":
        return [entry]
    members = []
    for member in VERSIONS[entry["version"]]:
        if classes >= BALL_ATTACKS[member["name"]].fewest_classes:
            members.append(member)
        elif member["name"] == "apgd-targeted" and classes >= ApgdDlr.fewest_classes:
            members.append({"name": "apgd-dlr", "steps": member["steps"], "restarts": 1})
    return members
