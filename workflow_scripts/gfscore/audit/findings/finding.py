"""A finding: what an audit or a chart of it shows, before any word is made of it. Imports nothing heavy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gfscore.audit.findings.words import in_words

REFUTES, WEAKEST, DIFFERS, OPEN = range(4)
"""Ranks of findings: what refutes the verdict or a score; the weakest class; differences between models; what is not
decided."""

RANKED = {
    "passing_model_falls": (REFUTES, "trust"),
    "order_reversed": (REFUTES, "trust"),
    "no_attack": (REFUTES, "trust"),
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
}
"""Rank of each kind of finding of an audit, and the section of the page that shows where it comes from; among those of
one rank the earlier stands first."""


TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Finding:
    """One statement of an audit or of a chart: its kind, a key of SENTENCES, what it is about, numbers, confidence.

    `subject` holds names (of models, classes, measures), one or several, by their role; `numbers` hold numbers by
    theirs, among which `tied` counts others that are equal to the one named. `confidence` is None where the statement
    is of the samples at hand.
    """

    kind: str
    subject: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None

    @property
    def sentence(self) -> str:
        """The finding in words, without a full stop."""
        return in_words(self.kind, self.subject, self.numbers, self.confidence)

    @property
    def rank(self) -> int:
        """REFUTES, WEAKEST, DIFFERS or OPEN, of a finding of an audit."""
        return RANKED[self.kind][0]

    @property
    def section(self) -> str:
        """Section of the page that shows it, of a finding of an audit."""
        return RANKED[self.kind][1]


def others_equal(values: Iterable[float], value: float) -> dict[str, float]:
    """How many of `values` beside one are equal to `value`, as a number of a finding; nothing where none is."""
    equal = sum(abs(other - value) <= TIE_TOLERANCE for other in values) - 1
    return {"tied": equal} if equal > 0 else {}
