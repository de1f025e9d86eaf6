"""A complete configuration and where its values come from, and the draft that it is made of step by step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import LONGEST_NAME, NAME_FORM, Entry, PlainSettings, never
from gfscore.workflow.config_files import DEFAULT, KeyPath, Marked, mark_of, shown
from gfscore.workflow.mistakes import NAMES_MAY, ConfigMistake, holds, message_of, mistakes_of


class Declaration(Protocol):
    """A kind or source that an entry may be of."""

    @property
    def name(self) -> str:
        """Value of `kind` or `source` in entries."""

    @property
    def settings(self) -> type[Entry]:
        """Class of the settings of its entries."""


M = TypeVar("M", bound=BaseModel)
D = TypeVar("D", bound=Declaration)


@dataclass(frozen=True)
class Resolution:
    """A complete configuration, and the values that the user wrote.

    Parameters
    ----------
    config : dict
        Sections as plain values, in a fixed order.
    written : Marked
        Values that the user wrote, with their marks, at the same paths.
    files : tuple of str
        Configuration files, later ones overriding earlier ones.
    overrides : mapping
        Values of --config, which override the files.
    """

    config: dict[str, Any]
    written: Marked
    files: tuple[str, ...] = ()
    overrides: PlainSettings = field(default_factory=dict)

    def origin(self, key_path: KeyPath) -> str:
        """Origin of a value: name of a file, --config, or "default"."""
        value: Any = self.written
        for step in key_path:
            if not holds(value, step):
                return DEFAULT
            value = value[step]
        mark = mark_of(self.written, key_path)
        return mark.file if mark else DEFAULT


@dataclass
class Draft:
    """A configuration that is being completed or checked, and the mistakes in it.

    Parameters
    ----------
    written : Marked
        What the user wrote. It is changed: measures and model files that audits name directly become entries, and the
        defaults of a zoo are merged into its entries.
    config : dict
        Resolved values so far.
    mistakes : list of ConfigMistake
        Mistakes so far.
    """

    written: Marked
    config: dict[str, Any]
    mistakes: list[ConfigMistake] = field(default_factory=list)

    def stop_at_mistakes(self) -> None:
        """Raise InputError if there are mistakes so far."""
        if self.mistakes:
            raise InputError(message_of(self.mistakes, self.written))

    def add_mistake(self, message: str, *key_path: str | int) -> None:
        """Add a mistake at a path."""
        self.mistakes.append(ConfigMistake(key_path, message))

    def require_mapping(self, *key_path: str) -> None:
        """Ensure a mapping at a path: replace null, or any other value (which is a mistake), with an empty one."""
        section = self.written
        for step in key_path[:-1]:
            section = section[step]
        entry = section.get(key_path[-1])
        if isinstance(entry, Marked):
            return
        if entry is not None:
            self.add_mistake(f"{shown(entry)} does not fit; give a mapping", *key_path)
        section[key_path[-1]] = Marked()

    def entries(self, *key_path: str) -> Iterator[tuple[str, Marked]]:
        """Yield the entries with valid names of a section, or of a mapping within one."""
        section = self.written
        for step in key_path:
            section = section[step]
        for name in list(section):
            if not NAME_FORM.fullmatch(name) or len(name) > LONGEST_NAME:
                self.add_mistake(f"name {name!r} {NAMES_MAY}; rename it", *key_path, name)
                continue
            self.require_mapping(*key_path, name)
            yield name, section[name]

    def parsed(self, model: type[M], entry: object, key_path: KeyPath) -> M | None:
        """Settings of an entry, an object of `model`; None if the entry has mistakes."""
        try:
            return model.model_validate(entry)
        except ValidationError as error:
            self.mistakes += mistakes_of(error, model, entry, key_path)
        return None

    def choose(self, key: str, entry: PlainSettings, choice: Mapping[str, D], key_path: KeyPath) -> D | None:
        """Kind or source of an entry.

        Parameters
        ----------
        key : str
            "kind" or "source".
        entry : mapping
            Names the kind or source under the key, or is claimed by one.
        choice : mapping
            Declarations by name.
        key_path : tuple
            Path of the entry.

        Returns
        -------
        object
            One of the choice; None, with a mistake, where the entry determines none.
        """
        name = entry.get(key)
        if name is None:
            claiming = []
            for declared in choice.values():
                claims = getattr(declared, "claims", never)
                if claims(entry):
                    claiming.append(declared)
            if len(claiming) == 1:
                return claiming[0]
            names = ", ".join(declared.name for declared in claiming or choice.values())
            self.add_mistake(f"is missing; give one of {names}", *key_path, key)
            return None
        if not isinstance(name, str) or name not in choice:
            self.add_mistake(unknown_name(key, name, choice), *key_path, key)
            return None
        return choice[name]

    def explicit(
        self, key: str, entry: PlainSettings, choice: Mapping[str, D], key_path: KeyPath
    ) -> dict[str, Any] | None:
        """All settings of an entry as plain values; None where it has mistakes. Parameters as of `choose`."""
        declared = self.choose(key, entry, choice, key_path)
        if declared is None:
            return None
        settings = self.parsed(declared.settings, entry, key_path)
        return None if settings is None else settings.explicit()
