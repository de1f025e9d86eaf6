"""A finding: what an audit shows, before any word is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REFUTES, WEAKEST, DIFFERS, OPEN = range(4)
"""Ranks of findings: what refutes the verdict or a score; the weakest class; differences between models; what is not
decided."""

RANKS = {
    "passing_model_falls": REFUTES,
    "order_reversed": REFUTES,
    "no_attack": REFUTES,
    "score_refuted": REFUTES,
    "certificates_refuted": REFUTES,
    "gradients_masked": REFUTES,
    "classes_without_samples": WEAKEST,
    "weakest_class": WEAKEST,
    "no_weakest_class": WEAKEST,
    "groups_differ": WEAKEST,
    "best_models": DIFFERS,
    "no_best_model": DIFFERS,
    "metrics_disagree": DIFFERS,
    "undecided_models": OPEN,
    "calibration_fails": OPEN,
}
"""Rank of each kind of finding; among those of one rank the earlier stands first."""

SECTIONS = {
    "passing_model_falls": "trust",
    "order_reversed": "trust",
    "no_attack": "trust",
    "score_refuted": "trust",
    "certificates_refuted": "trust",
    "gradients_masked": "trust",
    "classes_without_samples": "class",
    "weakest_class": "class",
    "no_weakest_class": "class",
    "groups_differ": "whom",
    "best_models": "which",
    "no_best_model": "which",
    "metrics_disagree": "which",
    "undecided_models": "sure",
    "calibration_fails": "trust",
}
"""Section of the page that shows where a finding comes from."""


@dataclass(frozen=True)
class Finding:
    """What an audit shows: its kind, a key of RANKS; names of models, classes and measures; numbers; confidence.

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
        return RANKS[self.kind]

    @property
    def section(self) -> str:
        """Section of the page that shows it."""
        return SECTIONS[self.kind]
