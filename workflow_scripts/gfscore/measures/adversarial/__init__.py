"""Adversarial accuracy: whether a sample is classified correctly and withstands every attack within a ball."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.apgd_ce import ApgdCe
from gfscore.attacks.declaration import Norm, Radius, attack_passes, ball_words
from gfscore.attacks.registry import BALL_ATTACKS, BallAttack, ball_mistakes, expand, follow_gradients, modules_of
from gfscore.attacks.square import Square
from gfscore.measures.declaration import Column, Kind, Measure, Mistake, NetworkSettings


def _default_attacks() -> list[BallAttack]:
    # One with gradients and one without: examples that only Square finds are a sign of masked gradients.
    return [ApgdCe(name="apgd-ce"), Square(name="square")]


class Adversarial(NetworkSettings):
    """Adversarial accuracy."""

    kind: Literal["adversarial"] = "adversarial"
    norm: Norm = "linf"
    eps: Radius = 8 / 255
    attacks: Annotated[
        list[BallAttack],
        Field(
            min_length=1,
            description="Attacks, run in this order on the samples that still stand; each has its own settings.",
        ),
    ] = Field(default_factory=_default_attacks)
    counterexamples: Annotated[
        bool,
        Field(
            description="Whether to store the point that broke each sample, for `gfscore verify`: images like those of "
            "the dataset, which whoever gets the table gets as well."
        ),
    ] = False


def describe(settings: Adversarial) -> Measure:
    """Range, unit and meaning of the measure in its ball."""
    return Measure(
        title=f"Adversarial accuracy, {ball_words(settings.norm, settings.eps)}",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation=(
            "1 when the sample is classified correctly and every attack of the list fails, else 0. Attacks that fail "
            "prove nothing, so it is an upper bound on the share of robust samples."
        ),
    )


def find_mistakes(settings: Adversarial, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield mistakes: a radius beyond the pixel range, attacks without this norm or for more classes."""
    for keys, words in ball_mistakes(settings.attacks, norm=settings.norm, eps=settings.eps, classes=classes):
        yield Mistake(keys, words)


def forward_passes(settings: Adversarial, classes: int) -> float:
    """Largest number of forward passes of one sample, which is that of a sample that withstands all attacks."""
    members = expand(settings.attacks, classes)
    return 1 + sum(attack_passes(member) for member in members)


def follows_gradients_alone(settings: Adversarial) -> bool:
    """Whether all attacks follow gradients, members of ensembles too."""
    return follow_gradients(member["name"] for member in expand(settings.attacks, math.inf))


KIND = Kind(
    name="adversarial",
    settings=Adversarial,
    named_by=("norm", "eps"),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    random_draws=True,
    gradients=lambda settings: True,
    gradients_alone=follows_gradients_alone,
    attacks=True,
    fast_search=True,
    attack_modules=lambda settings: modules_of(settings.attacks, BALL_ATTACKS),
    predicts=True,
    function="gfscore.measures.adversarial.batch:measure_batch",
    columns=(
        Column("attack", "string", "attack that succeeded first, clean for a sample that is wrong anyway; null: none"),
        Column("distance", "float64", "norm of the perturbation that succeeded; null: none"),
        Column("steps", "int64", "forward passes spent on the sample"),
    ),
    evidence=(
        Column(
            "counterexample",
            "binary",
            "with `counterexamples: true`, compressed pixels of the point that broke the sample, confirmed in float32; "
            "null: none, or the sample itself",
        ),
    ),
    version=3,
    forward_passes=forward_passes,
    value="1 if it is right and every attack within the ball fails",
    passes=(
        "up to steps x restarts of each attack, with a gradient each; `square` up to its queries, without; fewer for "
        "samples that fall early"
    ),
)
