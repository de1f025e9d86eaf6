"""Distance to the nearest adversarial example that attacks find."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.declaration import NORMS, Distance, Norm, attack_passes, beyond_white
from gfscore.attacks.fmn import Fmn
from gfscore.attacks.registry import MINIMAL_ATTACKS, MinimalAttack, follow_gradients, modules_of, norm_mistakes
from gfscore.measures.declaration import Column, Kind, Measure, Mistake, NetworkSettings

FAR = {"l2": 3.0, "linf": 0.25}
"""Default of the largest distance searched, by norm; an invalid norm is an error of its own."""

PASSES_AROUND = 3
"""Passes of an image besides attack and bisection: before and after the bisection, and for the prediction."""


def _default_attacks() -> list[MinimalAttack]:
    return [Fmn(name="fmn")]


class Minimal(NetworkSettings):
    """Distance to the nearest adversarial example found."""

    kind: Literal["minimal"] = "minimal"
    norm: Annotated[
        Norm, Field(description="Norm of the perturbation; the attack-free score is compared with l2 only.")
    ] = "l2"
    largest_distance: Annotated[
        Distance,
        Field(
            default_factory=lambda earlier: FAR[earlier.get("norm", "l2")],
            description="Largest distance searched, the upper end of the range: samples without an adversarial example "
            "within it are censored there.",
        ),
    ]
    attacks: Annotated[
        list[MinimalAttack],
        Field(
            min_length=1,
            description="Minimal-norm attacks; each sample gets the smallest distance that any of them finds.",
        ),
    ] = Field(default_factory=_default_attacks)
    bisection_steps: Annotated[
        int,
        Field(
            ge=0,
            le=30,
            description="Halvings of the line from image to adversarial example; 12 leave a part in 4,000 of it.",
        ),
    ] = 12


def describe(settings: Minimal) -> Measure:
    """Range, unit and meaning of the measure in its norm, up to the largest distance searched."""
    return Measure(
        title=f"Distance to the nearest adversarial example found, {NORMS[settings.norm]}",
        value_range=(0.0, settings.largest_distance),
        unit=f"{NORMS[settings.norm]} distance, pixels in [0, 1]",
        explanation=(
            "Length of the smallest perturbation found that changes a right prediction; 0 when it is wrong already, "
            "and the largest distance searched where nothing was found. An upper bound on the true distance, "
            "unless that is beyond the largest distance searched."
        ),
    )


def find_mistakes(settings: Minimal, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield distances beyond white, and attacks that do not search in the norm."""
    if settings.norm == "linf":
        for key, words in beyond_white({"largest_distance": settings.largest_distance}, ("largest_distance",)):
            yield Mistake((key,), words)
    for words in norm_mistakes(settings.attacks, settings.norm):
        yield Mistake(("attacks",), words)


def forward_passes(settings: Minimal, _classes: int) -> float:
    """Forward passes of every attack, and of the bisections behind it."""
    passes = 0.0
    for attack in settings.attacks:
        passes += attack_passes(attack.model_dump()) + settings.bisection_steps + PASSES_AROUND
    return passes


KIND = Kind(
    name="minimal",
    settings=Minimal,
    named_by=("norm",),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    gradients=lambda settings: True,
    gradients_alone=lambda settings: follow_gradients(attack.name for attack in settings.attacks),
    attacks=True,
    fast_search=True,
    attack_modules=lambda settings: modules_of(settings.attacks, MINIMAL_ATTACKS),
    function="gfscore.measures.minimal.batch:measure_batch",
    columns=(
        Column("attack", "string", "attack that found the nearest example, clean for a sample that is wrong anyway"),
        Column("steps", "int64", "forward passes spent on the sample"),
    ),
    version=2,
    forward_passes=forward_passes,
    value="distance to the nearest adversarial example found; 0 if wrong",
    passes="steps of each attack with a gradient (DeepFool and FAB one per class), and bisection without",
)
