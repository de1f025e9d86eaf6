"""Targets resisted: the share of the other classes that a sample cannot be turned into within a ball."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import Distance, Norm, Radius, Steps, ball_words, beyond_white
from gfscore.measures.declaration import Column, Kind, Measure, Mistake, NetworkSettings

TARGETS_AT_ONCE = 9
"""Copies of the batch that are attacked together, each towards another class."""


class Targeted(NetworkSettings):
    """Targets resisted."""

    kind: Literal["targeted"] = "targeted"
    norm: Norm = "linf"
    eps: Radius = 8 / 255
    step_size: Annotated[
        Distance | None, Field(description="Length of one step; null for 2.5 radii over all steps.")
    ] = None
    steps: Steps = 20
    restarts: Annotated[int, Field(ge=1, description="Random starts towards each class.")] = 1


def describe(settings: Targeted) -> Measure:
    """Range, unit and meaning of the measure in its ball."""
    return Measure(
        title=f"Targets resisted, {ball_words(settings.norm, settings.eps)}",
        value_range=(0.0, 1.0),
        unit="share of the other classes",
        explanation=(
            "Share of the other classes that a targeted attack could not make the classifier predict. An upper bound: "
            "a stronger attack may succeed."
        ),
        several_copies=True,
    )


def find_mistakes(settings: Targeted, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield distances beyond white."""
    if settings.norm == "linf":
        for key, words in beyond_white(settings.model_dump(), ("eps", "step_size")):
            yield Mistake((key,), words)


KIND = Kind(
    name="targeted",
    settings=Targeted,
    named_by=("norm", "eps"),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    random_draws=True,
    gradients=lambda settings: True,
    gradients_alone=lambda settings: True,
    attacks=True,
    fast_search=True,
    function="gfscore.measures.targeted.batch:measure_batch",
    columns=(
        Column("target", "int32", "class that the attack aims at"),
        Column("distance", "float64", "norm of the perturbation, successful or not"),
    ),
    version=4,
    images_at_once=lambda settings, batch_size, classes: batch_size * min(TARGETS_AT_ONCE, classes - 1),
    forward_passes=lambda settings, classes: 3 * (classes - 1) * settings.steps * settings.restarts,
    value="share of the other classes that a targeted attack within the ball could not reach",
    passes="up to (K - 1) x steps x restarts, with a gradient each",
)
