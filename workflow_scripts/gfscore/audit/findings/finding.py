"""A finding: what an audit or a chart of it shows. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gfscore.audit.findings.words import in_words
from gfscore.core.settings import Record
from gfscore.statistics.tolerances import TIE_TOLERANCE

REFUTES = 0
"""Rank of findings that refute the verdict or a score."""

WEAKEST = 1
"""Rank of findings on the weakest class or group."""

DIFFERS = 2
"""Rank of findings on differences between models."""

OPEN = 3
"""Rank of findings on what is not decided."""

REMEDY = 4
"""Rank of findings on what would help."""

RANKED = {
    "passing_model_falls": (REFUTES, "trust"),
    "order_reversed": (REFUTES, "trust"),
    "no_attack": (REFUTES, "trust"),
    "passes_on_attacks": (OPEN, "trust"),
    "score_refuted": (REFUTES, "trust"),
    "certificates_refuted": (REFUTES, "trust"),
    "gradients_masked": (REFUTES, "trust"),
    "classes_without_samples": (WEAKEST, "class"),
    "weakest_class": (WEAKEST, "class"),
    "no_weakest_class": (WEAKEST, "class"),
    "groups_differ": (WEAKEST, "whom"),
    "best_models": (DIFFERS, "which"),
    "no_best_model": (DIFFERS, "which"),
    "metrics_disagree": (DIFFERS, "which"),
    "few_samples": (OPEN, "sure"),
    "undecided_models": (OPEN, "sure"),
    "calibration_fails": (OPEN, "trust"),
    "calibration_useless": (OPEN, "trust"),
    "remedy_helps": (REMEDY, "help"),
    "remedy_not_shown": (REMEDY, "help"),
}
"""Rank of each kind of finding of an audit, and the section of the page that shows it; equal ranks keep this order."""


@dataclass(frozen=True)
class Finding:
    """One statement of an audit or of a chart, before any word is made of it.

    Parameters
    ----------
    kind : str
        Key of SENTENCES.
    subject : mapping
        Names of models, classes and measures, one or several, by their role.
    numbers : mapping
        Numbers by their role, among which `tied` counts others that are equal to the one named; see `as_failures`.
    confidence : float, optional
        None where the statement is about the samples at hand.
    """

    kind: str
    subject: Mapping[str, object] = field(default_factory=dict)
    numbers: Mapping[str, object] = field(default_factory=dict)
    confidence: float | None = None

    @property
    def sentence(self) -> str:
        """The finding in words, without a full stop."""
        return in_words(self.kind, self.subject, self.numbers, self.confidence)

    @property
    def rank(self) -> int:
        """REFUTES, WEAKEST, DIFFERS, OPEN or REMEDY, of a finding of an audit."""
        return RANKED[self.kind][0]

    @property
    def section(self) -> str:
        """Section of the page that shows it, of a finding of an audit."""
        return RANKED[self.kind][1]

    def as_failures(self) -> Finding:
        """The same of values that count undecided samples as failures, which its sentence says."""
        return replace(self, numbers={**self.numbers, "as_failures": True})


class FindingInWords(Record):
    """A finding of an audit as verdict.json holds it, with its rank, its section of the page and its sentence."""

    kind: str
    section: str
    rank: int
    subject: dict[str, bool | str | list[str] | None]
    numbers: dict[str, bool | int | float | None]
    confidence: float | None
    sentence: str

    @classmethod
    def of(cls, finding: Finding) -> FindingInWords:
        """The finding with its sentence."""
        # Numbers of numpy as numbers of Python.
        numbers = {}
        for name, value in finding.numbers.items():
            numbers[name] = value.item() if hasattr(value, "item") else value
        return cls(
            kind=finding.kind,
            section=finding.section,
            rank=finding.rank,
            subject=dict(finding.subject),
            numbers=numbers,
            confidence=finding.confidence,
            sentence=finding.sentence,
        )


def first_findings(findings: Sequence[FindingInWords], most: int) -> list[FindingInWords]:
    """The `most` findings that stand first: the first of each rank, then the second of each, in the order of rank."""
    seen: dict[int, int] = {}
    places = []
    for position, finding in enumerate(findings):
        number = seen.get(finding.rank, 0)
        seen[finding.rank] = number + 1
        places.append((number, position))

    chosen = sorted(position for _, position in sorted(places)[:most])
    return [findings[position] for position in chosen]


def others_equal(values: Iterable[float], value: float) -> dict[str, float]:
    """Number of further `values` that are equal to `value`, as a number `tied` of a finding; empty where none is."""
    tied = ties(values, value)
    return {"tied": tied} if tied else {}


def ties(values: Iterable[float], value: float) -> int:
    """Number of `values` that are equal to `value`, which is one of them, without it."""
    return int(sum(abs(other - value) <= TIE_TOLERANCE for other in values)) - 1
