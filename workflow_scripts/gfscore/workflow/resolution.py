"""State of resolving a configuration: what the user wrote, the resolved values, and the mistakes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import LONGEST_NAME, NAME_FORM, never
from gfscore.workflow.config_files import DEFAULT, Marked, MarkedList, Place, listed, mark_of, shown
from gfscore.workflow.setting_mistakes import NAMES_MAY, ConfigMistake, mistakes_of


@dataclass(frozen=True)
class Resolution:
    """A complete configuration, and the values that the user wrote.

    `config` maps sections to plain values, in a fixed order; `written` has the values that the user wrote, with their
    marks, at the same paths. `files` are the configuration files, later ones overriding earlier ones, and `given` the
    values of --config, which override them.
    """

    config: dict[str, Any]
    written: Marked
    files: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def origin(self, place: Place) -> str:
        """Origin of a value: name of a file, --config, or "default"."""
        part: Any = self.written
        step: Any
        for step in place:
            known = step in part if isinstance(part, Marked) else isinstance(part, MarkedList) and step < len(part)
            if not known:
                return DEFAULT
            part = part[step]
        mark = mark_of(self.written, place)
        return mark.file if mark else DEFAULT


def message_of(mistakes: list[ConfigMistake], written: Any) -> str:
    """Message that lists mistakes with file and line."""
    return listed(
        ": ".join([str(mark), *rest]) if mark else ": ".join(rest)
        for place, message in mistakes
        for mark, rest in [(mark_of(written, place), [*map(str, _displayed_place(place)), message])]
    )


def _displayed_place(place: Place) -> Place:
    # Models as zoo/threat/name, the form that audits use.
    if place[:1] == ("models",) and len(place) > 3:
        return ("models", "/".join(map(str, place[1:4])), *place[4:])
    return place


@dataclass
class State:
    """Intermediate state: resolved values `config` from `written`, and `mistakes` so far.

    `written` is changed: measures and model files that audits name directly become entries, and the defaults of a zoo
    are merged into its entries.
    """

    written: Marked
    config: dict[str, Any]
    mistakes: list[ConfigMistake] = field(default_factory=list)

    def stop_at_mistakes(self) -> None:
        """Raise InputError if there are mistakes so far."""
        if self.mistakes:
            raise InputError(message_of(self.mistakes, self.written))

    def add_mistake(self, message: str, *place: str | int) -> None:
        """Add a mistake at a path."""
        self.mistakes.append(ConfigMistake(place, message))

    def require_mapping(self, *place: str) -> None:
        """Ensure a mapping at a path: replace null, or any other value (which is a mistake), with an empty one."""
        part: Any = self.written
        for step in place[:-1]:
            part = part[step]
        entry = part.get(place[-1])
        if not isinstance(entry, Marked):
            if entry is not None:
                self.add_mistake(f"{shown(entry)} does not fit; give a mapping", *place)
            part[place[-1]] = Marked()

    def entries(self, section: str, *above: str) -> Iterator[tuple[str, Marked]]:
        """Yield the entries with valid names of a section, or of a part of one."""
        part = self.written[section]
        for step in above:
            part = part[step]
        for name in list(part):
            if not NAME_FORM.fullmatch(name) or len(name) > LONGEST_NAME:
                self.add_mistake(f"name {name!r} {NAMES_MAY}; rename it", section, *above, name)
                continue
            self.require_mapping(section, *above, name)
            yield name, part[name]

    def parsed(self, model: type[BaseModel], entry: Any, place: Place) -> Any:
        """Parsed settings of an entry; None if it has mistakes."""
        try:
            return model.model_validate(entry)
        except ValidationError as error:
            self.mistakes += mistakes_of(error, model, entry, place)
        return None

    def choose(self, what: str, entry: Mapping[str, Any], known: Mapping[str, Any], place: Place) -> Any:
        """The kind or source (`what`) in `known` that an entry names or that claims it; None, a mistake, if none."""
        name = entry.get(what)
        if name is None:
            claiming = [one for one in known.values() if getattr(one, "claims", never)(entry)]
            if len(claiming) == 1:
                return claiming[0]
            choice = ", ".join(one.name for one in claiming or known.values())
            self.add_mistake(f"is missing; give one of {choice}", *place, what)
        elif not isinstance(name, str) or name not in known:
            self.add_mistake(unknown(what, name, known), *place, what)
        else:
            return known[name]
        return None
