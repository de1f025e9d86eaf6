"""What an attack declares: its settings, where it searches, what it needs, and the function that computes it.

Imports nothing heavy, because declarations are read whenever a run is planned.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gfscore.core.settings import FEW_CHARACTERS, FRACTION, WHITE, Closed, as_number, longer_than_white

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

Steps = Annotated[int, Field(ge=1, description="Gradient steps.")]
Restarts = Annotated[int, Field(ge=1, description="Random starts; a sample must survive all.")]
Targets = Annotated[int, Field(ge=1, description="Most likely other classes aimed at.")]

Member = Mapping[str, Any]
"""An attack that an attack is made of: its name, and the arguments of its function."""

NO_GRADIENTS, ONE_STEP, FIRST_CROSSING, MANY_STEPS = range(4)
"""What an attack makes of gradients, in ascending order of what it should find."""


class AttackSettings(Closed):
    """Settings of an attack as an entry of a list of attacks; `name` is a literal in each."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Form:
    """How an attack searches: within a ball, or for the nearest point.

    Parameters
    ----------
    settings : type of AttackSettings
        Settings of its entry in a list of attacks.
    function : str
        What computes it, "module:name". Empty for an attack that is a list of attacks.
    members : callable, optional
        members(settings): the attacks that it is a list of, all in the same form. None for an attack with a function.
    """

    settings: type[AttackSettings]
    function: str = ""
    members: Callable[[Any], tuple[Member, ...]] | None = None

    def load(self) -> Callable[..., Any]:
        """Import the function that computes the attack."""
        return resolve_name(self.function)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack: all that measures, tables and pages need to know of it."""

    name: str
    """Name in the configuration: the name of its file, with - for _."""
    in_ball: Form | None = None
    """How it looks for any misclassified point of a ball, as the measure `adversarial` does; None where it cannot.

    function(network, images, labels, *, ball, draws, **settings): see gfscore.attacks.ball_attacks.
    """
    nearest: Form | None = None
    """How it looks for the nearest misclassified point, as the measure `minimal` does; None where it cannot.

    function(network, images, labels, *, norm, largest_distance, **settings): see gfscore.attacks.minimal_norm.
    """
    norms: tuple[str, ...] = ("linf", "l2")
    """Norms that it searches in."""
    gradients: int = MANY_STEPS
    """What it makes of gradients: NO_GRADIENTS for an attack that sees logits only, to MANY_STEPS."""
    fewest_classes: int = 2
    """Classes that its loss needs."""
    with_fewer: str = ""
    """Attack that replaces it where there are fewer classes."""

    @property
    def module(self) -> str:
        """Module that declares it."""
        return f"gfscore.attacks.{self.name.replace('-', '_')}"


def attack_passes(arguments: Mapping[str, Any]) -> float:
    """Forward passes of an image that an attack makes at most, a gradient counted as two more.

    Parameters
    ----------
    arguments : mapping
        Arguments of the attack's function by name. Counted are steps or queries, and how often the attack searches:
        restarts, targets, binary_search_steps.
    """
    if "queries" in arguments:
        return float(arguments["queries"])
    passes = 3.0 * arguments.get("steps", 1)
    for repeated in ("restarts", "targets", "binary_search_steps"):
        passes *= arguments.get(repeated) or 1
    return passes


def ball_words(norm: str, eps: float) -> str:
    """A ball in words, "l_inf 0.15", or "l_inf 8/255" where the radius is a whole number of steps of 8 bits."""
    radius = f"{eps:g}"
    steps = eps * WHITE
    if len(radius) > FEW_CHARACTERS and abs(steps - round(steps)) < 1e-9:
        radius = f"{round(steps)}/{WHITE}"
    return f"{NORMS[norm]} {radius}"


def beyond_white(settings: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the `keys` whose distance in l_inf is longer than from black to white, each with the remedy."""
    for key in keys:
        distance = settings.get(key) or 0
        if distance > 1:
            yield key, longer_than_white(distance)
