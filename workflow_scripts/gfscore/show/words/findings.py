"""Findings: what charts and audits say, as data, and the one place where sentences are made of them.

Imports nothing heavy, because declarations of charts are read by every run of Snakemake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from gfscore.core import numbers
from gfscore.core.names import class_phrase, enumeration, printable, shortened


@dataclass(frozen=True)
class Finding:
    """One statement: its kind, a key of SENTENCES, what it is about, its numbers, and the confidence behind it.

    `subject` holds names (of models, classes, measures), one or several, by their role; `numbers` hold numbers by
    theirs. `confidence` is None where the statement is of the samples at hand.
    """

    kind: str
    subject: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None

    @property
    def sentence(self) -> str:
        """The finding in words."""
        text = _WORDS.format(SENTENCES[self.kind], **self.subject, **self.numbers)
        return text[:1].upper() + text[1:] if text.startswith(("class ", "no ", "all ")) else text


MOST_NAMED = 3
LONGEST = 32


class _Words(Formatter):
    """Formats {role:how}: numbers to three significant digits, names as people read them."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """A number or name of a finding as text; `format_spec` is a key of HOW, or empty."""
        if format_spec:
            return HOW[format_spec](value)
        return _names(value) if isinstance(value, str | tuple) else numbers.number(value)


def _names(value, phrase=lambda name: shortened(name, LONGEST)):
    names = (value,) if isinstance(value, str) else value
    return enumeration(map(phrase, names))


def _counted(noun):
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return lambda value: f"{int(value):,} {noun if value == 1 else plural}"


HOW = {
    "low": numbers.lower_bound,
    "high": numbers.upper_bound,
    "signed": numbers.signed,
    "setting": numbers.setting,
    "count": numbers.count,
    "points": lambda value: f"{100 * value:.0f} points",
    "times": lambda value: f"{numbers.number(value)} times",
    "percent": lambda value: f"{100 * value:.3g}%",
    "class": lambda value: _names(value, class_phrase),
    "text": printable,
    "models": _counted("model"),
    "classes": _counted("class"),
    "pairs": _counted("pair"),
}
"""How a number or name is written."""

_WORDS = _Words()

SENTENCES = {
    # classes
    "weakest_class": "{cls:class} is the weakest class in {times:count} of {models:models}, significantly in {sure:count}",
    "weakest_class_open": "{cls:class} scores lowest in {times:count} of {models:models}, significantly in none",
    "weakest_classes": "{classes:classes} score lowest equally often, in {times:count} of {models:models} each",
    "weakest_class_of_one": "{cls:class} is significantly the weakest class, at {value}",
    "weakest_class_of_one_open": "{cls:class} scores lowest ({value}), but {suspects:classes} may be the weakest",
    "classes_alike": "no class differs from another beyond its interval; {cls:class} scores lowest ({value})",
    "mean_rdi_few": "{models:models}: too few to show a relation between mean and disparity",
    "mean_rdi_none": "no clear relation between mean and RDI over {models:models} (Spearman {rho:signed})",
    "mean_rdi_less": "Models with a higher mean are less equal by RDI (Spearman {rho:signed})",
    "mean_rdi_more": "Models with a higher mean are more equal by RDI (Spearman {rho:signed})",
    "mean_rdi_less_against_nrgc": "Models with a higher mean are less equal by RDI (Spearman {rho:signed}), but more "
    "equal by NRGC ({rho_nrgc:signed})",
    "mean_rdi_more_against_nrgc": "Models with a higher mean are more equal by RDI (Spearman {rho:signed}), but less "
    "equal by NRGC ({rho_nrgc:signed})",
    "classes_equal": "all classes have the same value in every model",
}
"""Sentence of each kind of finding, a format of its subject and numbers; `how` is a key of HOW."""
