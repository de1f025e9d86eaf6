"""The measures: each gives one number per sample. One module or folder per kind, found by itself.

A kind is a module, or a folder where it is long, that holds a `KIND` (gfscore.measures.declaration.Kind) named as its
file is, and imports nothing heavy; none imports another. Beside them stand declaration, and what runs them: job and
progress.
"""

from collections.abc import Mapping
from typing import Any

from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown
from gfscore.measures.declaration import Kind, Measure

KINDS: Mapping[str, Kind[Any]] = declarations(__name__, "KIND")
"""Every kind of measure by its name, the value of `kind` in the configuration."""


def kind_of(entry: Mapping[str, Any]) -> Kind[Any]:
    """Kind of an entry of the configuration's section `measures`; raises InputError for an unknown one."""
    if entry["kind"] not in KINDS:
        raise InputError(unknown("kind", entry["kind"], KINDS))
    return KINDS[entry["kind"]]


def measure_of(entry: Mapping[str, Any]) -> Measure:
    """Measure that an entry of the configuration's section `measures` describes; what it leaves out has its default."""
    kind = kind_of(entry)
    return kind.describe(kind.parse(entry))


def complete(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Entry with the defaults of what it leaves out, as plain values."""
    return kind_of(entry).parse(entry).explicit()


def from_logits(entry: Mapping[str, Any]) -> bool:
    """Whether a measure is computed from the logits of a model alone."""
    return kind_of(entry).needs == "logits"


def reference_measure(measures: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Name of the first measure that is computed from logits alone, or None; takes entries by name."""
    return next((name for name, entry in measures.items() if from_logits(entry)), None)
