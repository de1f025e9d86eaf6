"""A finding: what an audit shows, before any word is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REFUTES, WEAKEST, DIFFERS, OPEN = range(4)
"""Ranks of findings: what refutes the verdict or a score; the weakest class; differences between models; what is not
decided."""

KINDS = {
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
"""Rank of each kind of finding, and the section of the page that shows where it comes from; among those of one rank the
earlier stands first."""


@dataclass(frozen=True)
class Finding:
    """What an audit shows: its kind, a key of KINDS; names of models, classes and measures; numbers; confidence.

    `subject` and `numbers` hold what the template of the kind names. `confidence` is that of the claim, None where it
    rests on none, such as a number that was counted.
    """

    kind: str
    subject: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None

    @property
    def rank(self) -> int:
        """REFUTES, WEAKEST, DIFFERS or OPEN."""
        return KINDS[self.kind][0]

    @property
    def section(self) -> str:
        """Section of the page that shows it."""
        return KINDS[self.kind][1]
