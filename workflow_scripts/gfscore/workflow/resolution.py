"""The state of resolving a configuration: what was asked for, what became of it, and what is wrong so far.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import LONGEST_NAME, NAME_FORM, never
from gfscore.workflow.config_files import DEFAULT, Marked, MarkedList, Place, listed, mark_of, shown
from gfscore.workflow.setting_mistakes import NAMES_MAY, Mistake, mistakes_of


@dataclass(frozen=True)
class Resolution:
    """A configuration with every value written, and what of it was asked for.

    `config` maps sections to plain values, complete and in a fixed order; `asked` holds those that somebody wrote, each
    with its mark, at the same places.
    """

    config: dict[str, Any]
    asked: Marked

    def origin(self, place: Place) -> str:
        """Where a value comes from: a file's name, --config, or "default"."""
        part: Any = self.asked
        step: Any
        for step in place:
            known = step in part if isinstance(part, Marked) else isinstance(part, MarkedList) and step < len(part)
            if not known:
                return DEFAULT
            part = part[step]
        mark = mark_of(self.asked, place)
        return mark.file if mark else DEFAULT


def told(mistakes: list[Mistake], asked: Any) -> str:
    """Message that lists mistakes with file and line."""
    return listed(
        ": ".join([str(mark), *rest]) if mark else ": ".join(rest)
        for place, words in mistakes
        for mark, rest in [(mark_of(asked, place), [*map(str, _shortened(place)), words])]
    )


def _shortened(place: Place) -> Place:
    # A model by the name that audits give it.
    if place[:1] == ("models",) and len(place) > 3:
        return ("models", "/".join(map(str, place[1:4])), *place[4:])
    return place


@dataclass
class State:
    """What is resolved so far: `config` of `asked`, with its `mistakes`.

    `asked` is changed on the way: measures and files of models that audits name by themselves become entries, and what
    a zoo shares is laid under its entries.
    """

    asked: Marked
    config: dict[str, Any]
    mistakes: list[Mistake] = field(default_factory=list)

    def stop_at_mistakes(self) -> None:
        """Raise InputError where anything is wrong so far."""
        if self.mistakes:
            raise InputError(told(self.mistakes, self.asked))

    def refuse(self, words: str, *place: str | int) -> None:
        """Note a mistake at a place."""
        self.mistakes.append(Mistake(place, words))

    def require_mapping(self, *place: str) -> None:
        """See to it that a mapping stands at a place: an empty one for nothing, and for what else stands there."""
        part: Any = self.asked
        for step in place[:-1]:
            part = part[step]
        entry = part.get(place[-1])
        if not isinstance(entry, Marked):
            if entry is not None:
                self.refuse(f"{shown(entry)} does not fit; give a mapping", *place)
            part[place[-1]] = Marked()

    def entries(self, section: str, *above: str) -> Iterator[tuple[str, Marked]]:
        """Entries of a section, or of a part of one, whose names can be names."""
        part = self.asked[section]
        for step in above:
            part = part[step]
        for name in list(part):
            if not NAME_FORM.fullmatch(name) or len(name) > LONGEST_NAME:
                self.refuse(f"name {name!r} {NAMES_MAY}; rename it", section, *above, name)
                continue
            self.require_mapping(section, *above, name)
            yield name, part[name]

    def parsed(self, model: type[BaseModel], entry: Any, place: Place) -> Any:
        """Settings of an entry, None for one with mistakes."""
        try:
            return model.model_validate(entry)
        except ValidationError as error:
            self.mistakes += mistakes_of(error, model, entry, place)
        return None

    def chosen(self, what: str, entry: Mapping[str, Any], known: Mapping[str, Any], place: Place) -> Any:
        """Of several kinds of entries the one that an entry names, or that claims it; None for none."""
        name = entry.get(what)
        if name is None:
            claiming = [one for one in known.values() if getattr(one, "claims", never)(entry)]
            if len(claiming) == 1:
                return claiming[0]
            choice = ", ".join(one.name for one in claiming or known.values())
            self.refuse(f"is missing; give one of {choice}", *place, what)
        elif not isinstance(name, str) or name not in known:
            self.refuse(unknown(what, name, known), *place, what)
        else:
            return known[name]
        return None
