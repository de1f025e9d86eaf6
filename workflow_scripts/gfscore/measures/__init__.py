"""The measures: each gives one number per sample. One module or folder per kind, discovered by its file.

A kind is a module, or a folder where it is long, that holds a `KIND` (gfscore.measures.declaration.Kind) of the same
name as the file, and imports nothing heavy; no kind imports another. `declaration` defines what a kind declares, `job`
computes a measure of one model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import PlainSettings, Subset
from gfscore.measures.declaration import Kind, Measure, Settings

KINDS: Mapping[str, Kind[Any]] = declarations(__name__, "KIND")
"""Every kind of measure by its name, the value of `kind` in the configuration."""


@dataclass(frozen=True)
class NamedMeasure:
    """A measure of the configuration: its name, its kind, and its settings.

    Parameters
    ----------
    name : str
        Key of the measure in the configuration's section `measures`.
    kind : Kind
        What the kind of measure declares.
    settings : Settings
        Settings of the kind's class, with the defaults of what the configuration leaves out.
    """

    name: str
    kind: Kind[Any]
    settings: Settings

    @cached_property
    def description(self) -> Measure:
        """Range, unit, title and meaning of the measure."""
        return self.kind.describe(self.settings)

    @property
    def from_logits(self) -> bool:
        """Whether the measure is computed from the logits of a model alone."""
        return self.kind.needs == "logits"

    @property
    def derived(self) -> bool:
        """Whether the measure is made of others of the audit, without a job and a file of its own."""
        return self.kind.needs == "measures"

    def members(self, measures: Mapping[str, "NamedMeasure"]) -> list["NamedMeasure"]:
        """Measures of an audit that a derived one is made of; raises InputError where it cannot be made of them."""
        return [measures[name] for name in self.kind.members(self.settings, measures)]

    @property
    def subset(self) -> Subset | None:
        """Subset of the samples that is measured; None for all of them."""
        return getattr(self.settings, "subset", None)

    def entry(self) -> PlainSettings:
        """All settings as plain values, as params and the resolved configuration hold them."""
        return self.settings.explicit()


def named_measures(entries: Mapping[str, PlainSettings]) -> dict[str, NamedMeasure]:
    """Measures of the configuration's section `measures`, or of a part of it, by their names.

    Parameters
    ----------
    entries : mapping
        Settings by the name of the measure, each with its `kind`.

    Returns
    -------
    dict
        NamedMeasure by name, in the order of the entries.

    Raises
    ------
    InputError
        For an unknown kind.
    ValidationError
        For settings that the kind does not have (pydantic).
    """
    measures = {}
    for name, entry in entries.items():
        kind = kind_of(entry)
        measures[name] = NamedMeasure(name, kind, kind.parse(entry))
    return measures


def entries_of(measures: Mapping[str, NamedMeasure]) -> dict[str, PlainSettings]:
    """Settings of measures by name, as plain values."""
    return {name: measure.entry() for name, measure in measures.items()}


def names_of_kind(measures: Mapping[str, NamedMeasure], *kinds: str) -> list[str]:
    """Names of the measures of some kinds, in their order."""
    return [name for name, measure in measures.items() if measure.kind.name in kinds]


def kind_of(entry: PlainSettings) -> Kind[Any]:
    """Kind of an entry of the configuration's section `measures`; raises InputError for an unknown one."""
    if entry["kind"] not in KINDS:
        raise InputError(unknown_name("kind", entry["kind"], KINDS))
    return KINDS[entry["kind"]]


def measure_of(entry: PlainSettings) -> Measure:
    """Measure that an entry of the configuration's section `measures` describes."""
    kind = kind_of(entry)
    return kind.describe(kind.parse(entry))


def complete(entry: PlainSettings) -> PlainSettings:
    """Entry with the defaults of what it leaves out, as plain values."""
    return kind_of(entry).parse(entry).explicit()
