"""Evidence interval: robust accuracy in a ball, between what is proven and what attacks have not refuted.

It combines one measure of kind `proven` with those of kind `adversarial` in the same ball and on the same samples. A
sample is robust if that is proven, not robust if an attack breaks it, and open if neither is known.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gfscore.attacks.declaration import Norm, Radius, ball_words
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.lazy import np
from gfscore.core.names import enumeration
from gfscore.core.settings import Name
from gfscore.measures.declaration import Kind, Measure, Settings

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.measures import NamedMeasure

PROVEN = "proven"
ATTACKED = "adversarial"
"""Kinds of measures that an evidence interval combines."""

REFUTED = ("refuted", "refuted_float32")
"""Values of the column `status` of kind `proven` for a sample that its own attack refutes."""


class Robust(Settings):
    """Robust accuracy, between what is proven and what attacks leave."""

    kind: Literal["robust"] = "robust"
    norm: Norm = "linf"
    eps: Radius = 2 / 255
    members: Annotated[
        list[Name],
        Field(
            description="Measures that are combined: one of kind proven, others of kind adversarial. Empty for all "
            "measures of the audit in this ball, on the same samples as the proven one."
        ),
    ] = Field(default_factory=list)


def describe(settings: Robust) -> Measure:
    """Range, unit and meaning of the measure in its ball."""
    return Measure(
        title=f"Robust accuracy, {ball_words(settings.norm, settings.eps)}",
        value_range=(0.0, 1.0),
        unit="share of samples, proven at least",
        binary=True,
        undecided=True,
        explanation=(
            "1 when it is proven that no point of the ball is classified otherwise, 0 when an attack finds one that "
            "is; a sample of which neither is known is open, and counts as 0 in the value and in lower bounds, as 1 in "
            "upper ones."
        ),
    )


# ---- members ----


def members_of(settings: Robust, measures: Mapping[str, "NamedMeasure"]) -> list[str]:
    """Names of the measures that an evidence interval is made of.

    Parameters
    ----------
    settings : Robust
        The ball, and perhaps the members.
    measures : mapping
        Measures of the audit by name.

    Returns
    -------
    list of str
        The measure of kind `proven`, then all of kind `adversarial`.

    Raises
    ------
    InputError
        Unless there are one proof and at least one attack in the ball, on the same samples.
    """
    ball = ball_words(settings.norm, settings.eps)
    for name in settings.members:
        if name not in measures:
            raise InputError(unknown_name("measure of the audit", name, measures))
        if not _is_evidence(settings, measures[name], PROVEN, ATTACKED):
            raise InputError(
                f"{name!r} says nothing of {ball}: members are measures of kind {PROVEN} and {ATTACKED} with this norm "
                "and eps; leave it out"
            )

    candidates = settings.members or list(measures)
    proofs = []
    attacks = []
    for name in candidates:
        if _is_evidence(settings, measures[name], PROVEN):
            proofs.append(name)
        elif _is_evidence(settings, measures[name], ATTACKED):
            attacks.append(name)
    for kind, names in ((PROVEN, proofs), (ATTACKED, attacks)):
        if not names:
            raise InputError(f"needs a measure of kind {kind} in {ball}; name one among `measures` of the audit")
    if len(proofs) > 1:
        raise InputError(
            f"needs one measure of kind {PROVEN}, and {enumeration(proofs)} are {len(proofs)}; choose by `members`"
        )

    comparable = [name for name in attacks if measures[name].subset == measures[proofs[0]].subset]
    incomparable = [name for name in attacks if name not in comparable]
    if not comparable or (settings.members and incomparable):
        raise InputError(
            f"{proofs[0]} and {enumeration(incomparable)} are of different samples; give them the same `subset`, or "
            "leave this measure out"
        )
    return [*proofs, *comparable]


def entries_for(measures: Mapping[str, "NamedMeasure"]) -> Iterator[dict[str, Any]]:
    """Yield entries of the evidence intervals that are added to an audit with these measures.

    There is one for each ball with a proof and attacks on the same samples, unless the audit names one in that ball.
    """
    entry_of_ball = {}
    named_balls = []
    for measure in measures.values():
        if measure.kind.name == PROVEN:
            entry = measure.entry()
            entry_of_ball[_ball_of(measure.settings)] = {"norm": entry["norm"], "eps": entry["eps"]}
        if measure.kind.name == KIND.name:
            named_balls.append(_ball_of(measure.settings))
    for ball, entry in entry_of_ball.items():
        if ball in named_balls:
            continue
        try:
            members_of(Robust.model_validate(entry), measures)
        except InputError:
            continue
        yield {"kind": KIND.name, **entry}


def _ball_of(settings: Any) -> tuple[str, float]:
    return settings.norm, settings.eps


def _is_evidence(settings: Robust, measure: "NamedMeasure", *kinds: str) -> bool:
    # Whether a measure is of one of these kinds, in the ball of the evidence interval.
    return measure.kind.name in kinds and _ball_of(measure.settings) == _ball_of(settings)


# ---- values ----


def evidence_interval(
    tables: Sequence["pd.DataFrame"], *, settings: Robust, sources: Sequence[Path | str]
) -> dict[str, Any]:
    """Whether each sample is robust, as far as proofs and attacks tell.

    Parameters
    ----------
    tables : sequence of DataFrame
        Samples tables of the members in the order of `members_of`, each with the same N samples as its index. Where a
        member has no row of a sample, all its columns are missing.
    settings : Robust
        Not used: the tables are of its ball already.
    sources : sequence of path
        Files of the tables, which errors name.

    Returns
    -------
    dict
        Columns of a samples table (N,): prediction; value, 1 where proven, else 0; censored, whether the sample is
        open.

    Raises
    ------
    InputError
        For a sample that is proven robust and that an attack breaks: one of the two is wrong.
    """
    proofs = tables[0]
    proven = proofs["value"].eq(1).to_numpy()
    attacked = proofs["status"].isin(REFUTED).to_numpy()
    for table, source in zip(tables[1:], sources[1:], strict=True):
        refuted = table["value"].eq(0).to_numpy()
        contradicted = proven & refuted
        if contradicted.any():
            raise InputError(
                f"{sources[0]} and {source}: the sample {proofs.index[contradicted.argmax()]!r} is proven robust, "
                f"and yet an attack breaks it ({int(contradicted.sum())} samples in all). Either the files are of two "
                "networks, or the margin of the proof "
                "(`lower` in the first file) is as small as the rounding errors of float32, or the proof is wrong. "
                "Measure the attack again with `counterexamples: true`, which keeps the point, and please report it; "
                "until it is explained, leave one of the two measures out"
            )
        attacked = attacked | refuted
    return {
        "prediction": proofs["prediction"].to_numpy(),
        "value": proven.astype(np.float64),
        "censored": ~proven & ~attacked,
    }


KIND = Kind(
    name="robust",
    settings=Robust,
    named_by=("norm", "eps"),
    describe=describe,
    needs="measures",
    members=members_of,
    entries_for=entries_for,
    function="gfscore.measures.robust:evidence_interval",
    value="1 if it is proven, 0 if an attack within the ball succeeds, else anything between",
    passes="none: made of a `proven` and one or more `adversarial` in the same ball",
)
