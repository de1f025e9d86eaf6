"""Balls that perturbations stay in, as settings name them: a norm, and a radius in pixels of [0, 1].

Imports nothing heavy, because the configuration is checked with it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gfscore.core.settings import FRACTION, WHITE, as_number, longer_than_white

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
