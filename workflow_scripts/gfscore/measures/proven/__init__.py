"""Proven accuracy: whether a sample is proven to be classified correctly everywhere in a ball."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gfscore.attacks.apgd_ce import ApgdCe
from gfscore.attacks.declaration import Norm, Radius, attack_passes, ball_words
from gfscore.attacks.registry import BALL_ATTACKS, BallAttack, ball_mistakes, expand, modules_of
from gfscore.measures.declaration import Column, Kind, Measure, Mistake, NetworkSettings

BOUNDS_PER_PASS = 4
"""Bounds of single linear functions that take about as long as one forward pass."""


def _default_attacks() -> list[BallAttack]:
    # An attack only spares the search for a proof where it succeeds, so that one is enough.
    return [ApgdCe(name="apgd-ce")]


class Proven(NetworkSettings):
    """Proven accuracy."""

    kind: Literal["proven"] = "proven"
    norm: Norm = "linf"
    eps: Radius = 2 / 255
    attacks: Annotated[
        list[BallAttack],
        Field(description="Attacks that come first: no proof is searched for what they break. Each has its settings."),
    ] = Field(default_factory=_default_attacks)
    budget: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="Bounds of single linear functions that may be evaluated for one sample; branch and bound ends "
            "when they are used up.",
        ),
    ] = 20_000


def describe(settings: Proven) -> Measure:
    """Range, unit and meaning of the measure in its ball."""
    return Measure(
        title=f"Proven accuracy, {ball_words(settings.norm, settings.eps)}",
        value_range=(0.0, 1.0),
        unit="share of samples",
        binary=True,
        explanation=(
            "1 when it is proven that no point of the ball is classified otherwise, in real arithmetic, else 0. A "
            "sample without a proof may be robust, so it is a lower bound on the share of robust samples."
        ),
    )


def find_mistakes(settings: Proven, *, classes: float, thorough: bool) -> Iterator[Mistake]:
    """Yield distances beyond white, and attacks that do not search in the norm or need more classes than there are."""
    for keys, words in ball_mistakes(settings.attacks, norm=settings.norm, eps=settings.eps, classes=classes):
        yield Mistake(keys, words)


def forward_passes(settings: Proven, classes: int) -> float:
    """Forward passes of a sample that stays open, its bounds counted as passes."""
    members = expand(settings.attacks, classes)
    return 1 + sum(attack_passes(member) for member in members) + settings.budget / BOUNDS_PER_PASS


KIND = Kind(
    name="proven",
    settings=Proven,
    named_by=("norm", "eps"),
    describe=describe,
    find_mistakes=find_mistakes,
    needs="network",
    random_draws=True,
    gradients=lambda settings: True,
    attacks=True,
    fast_search=True,
    attack_modules=lambda settings: modules_of(settings.attacks, BALL_ATTACKS),
    predicts=True,
    function="gfscore.measures.proven.batch:measure_batch",
    require="gfscore.measures.proven.batch:require_bounds",
    columns=(
        Column(
            "status",
            "string",
            "proven; refuted, by a point that is surely classified otherwise; refuted_float32, by one that is in "
            "float32; open",
        ),
        Column("lower", "float64", "lower bound of the true logit less any other in the ball; null: none computed"),
        Column("lower32", "float64", "the same of logits computed in float32, by sums in any order; null: not proven"),
        Column("decided_by", "string", "prediction, attack, ibp, crown, alpha or branches; null: open"),
        Column("branches", "int64", "parts that the ball was split into"),
        Column("evaluations", "int64", "bounds of single linear functions computed"),
    ),
    evidence=(
        Column("certificate", "binary", "compressed certificate of a proof, for `gfscore verify`; null: not proven"),
        Column(
            "counterexample",
            "binary",
            "compressed pixels of the point that refutes the sample; null: none, or the sample itself",
        ),
    ),
    table_version=2,
    version=3,
    forward_passes=forward_passes,
    value="1 if no point of the ball is classified otherwise, for certain",
    passes=(
        "those of its attacks, then bounds up to `budget`, four of which take about as long as a pass; many samples "
        "are decided by a few hundred"
    ),
    most_at_once=64,
    most_cores=4,
    mem_mb=6000,
)
