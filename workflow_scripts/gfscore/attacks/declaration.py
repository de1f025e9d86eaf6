"""What an attack declares: its settings, where it searches, what it needs, and the function that computes it.

Imports nothing heavy, because declarations are read whenever a run is planned.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gfscore.core.settings import FRACTION, WHITE, Closed, as_number, longer_than_white

Steps = Annotated[int, Field(ge=1, description="Gradient steps.")]
Restarts = Annotated[int, Field(ge=1, description="Random starts; a sample must survive all.")]
Targets = Annotated[int, Field(ge=1, description="Most likely other classes aimed at.")]

Member = Mapping[str, Any]
"""An attack that another one is made of: its name, and the arguments of its function."""

NOT_AT_ALL, ONE_STEP, FIRST_CROSSING, MANY_STEPS = range(4)
"""How far an attack follows gradients, in ascending order of what it should find."""


class AttackSettings(Closed):
    """Settings of an attack as an entry of a list of attacks; `name` is a literal in each."""

    name: str


def forward_passes(settings: Mapping[str, Any]) -> float:
    """Forward passes of an image that an attack makes at most, a gradient counted as two more.

    `settings`: steps or queries of the attack, and how often it searches: restarts, targets, binary_search_steps.
    """
    if "queries" in settings:
        return float(settings["queries"])
    passes = 3.0 * settings.get("steps", 1)
    for repeated in ("restarts", "targets", "binary_search_steps", "gradient_samples"):
        passes *= settings.get(repeated) or 1
    return passes


@dataclass(frozen=True, kw_only=True)
class Form:
    """How an attack searches: within a ball, or for the nearest point.

    `settings` are those of its entry; `function` computes it, "module:name". An attack that is a list of others names
    none, but gives its `members(settings)`, attacks that search in the same way.
    """

    settings: type[AttackSettings]
    function: str = ""
    members: Callable[[Any], tuple[Member, ...]] | None = None

    def load(self) -> Callable[..., Any]:
        """The function that computes it; imports what that needs."""
        return resolve_name(self.function)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack: all that measures, tables and pages need to know of it."""

    name: str
    """Its name in the configuration; that of its file, with - for _."""
    in_ball: Form | None = None
    """How it looks for any misclassified point of a ball, as the measure `adversarial` asks; None where it cannot.

    function(network, images, labels, *, ball, draws, **settings): see gfscore.attacks.ball_attacks.
    """
    nearest: Form | None = None
    """How it looks for the nearest misclassified point, as the measure `minimal` asks; None where it cannot.

    function(network, images, labels, *, norm, largest_distance, **settings): see gfscore.attacks.minimal_norm.
    """
    norms: tuple[str, ...] = ("linf", "l2")
    """Norms that it searches in."""
    follows: int = MANY_STEPS
    """How far it follows gradients: NOT_AT_ALL for an attack that sees logits only, to MANY_STEPS."""
    fewest_classes: int = 2
    """Classes that its loss needs."""
    with_fewer: str = ""
    """Attack that does instead with fewer classes."""

    @property
    def module(self) -> str:
        """Module that declares it."""
        return f"gfscore.attacks.{self.name.replace('-', '_')}"


SHORT = 4
"""Characters of a radius that is shown as it is."""

NORMS = {"linf": "l_inf", "l2": "l2"}
"""Norms by their name in settings, as text shows them."""

Norm = Annotated[Literal["linf", "l2"], Field(description="Norm of the perturbation.")]

Distance = Annotated[
    float,
    BeforeValidator(as_number),
    Field(gt=0),
    WithJsonSchema({"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": FRACTION}),
]
"""A positive distance in pixels of [0, 1], or a fraction of white such as "8/255"."""

Radius = Annotated[Distance, Field(description="Radius of the ball, pixels in [0, 1] or a fraction such as 8/255.")]


def ball_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Norm and eps of a measure's settings, as the attacks take them."""
    return {"norm": settings["norm"], "eps": settings["eps"]}


def ball_words(norm: str, eps: float) -> str:
    """A ball in words, "l_inf 0.15", or "l_inf 8/255" where the radius is so many steps of 8 bits."""
    plain, steps = f"{eps:g}", eps * WHITE
    whole = len(plain) > SHORT and abs(steps - round(steps)) < 1e-9
    return f"{NORMS[norm]} {f'{round(steps)}/{WHITE}' if whole else plain}"


def beyond_white(settings: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield those of the `keys` whose distance in l_inf is longer than from black to white, with what to do."""
    for key in keys:
        given = settings.get(key) or 0
        if given > 1:
            yield key, longer_than_white(given)
