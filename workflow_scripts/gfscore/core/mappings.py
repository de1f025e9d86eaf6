"""Selecting entries of mappings, and making mappings from names to objects or positions."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Protocol, TypeVar


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name."""


Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")
Named = TypeVar("Named", bound=HasName)


def only(mapping: Mapping[Name, Value], names: Iterable[Name]) -> dict[Name, Value]:
    """Entries of these names, in their order; KeyError for a name that the mapping does not have."""
    return {name: mapping[name] for name in names}


def without(mapping: Mapping[Name, Value], names: Collection[object]) -> dict[Name, Value]:
    """Entries of all names but these."""
    return {name: value for name, value in mapping.items() if name not in names}


def positions(names: Iterable[Name]) -> dict[Name, int]:
    """Index of each name in a sequence, from 0; of a repeated name the last one."""
    return {name: position for position, name in enumerate(names)}


def of_distinct_keys(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Mapping of the pairs of a JSON object, for `object_pairs_hook`; ValueError for a key that stands twice."""
    mapping: dict[str, object] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} stands twice")
        mapping[key] = value
    return mapping


def by_name(things: Iterable[Named]) -> dict[str, Named]:
    """Objects by their `name`."""
    return {thing.name: thing for thing in things}
