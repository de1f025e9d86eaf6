"""The error that is raised when the input, not the code, is at fault."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

MOST_LISTED = 12
"""Most choices that a message lists after it has named the nearest one."""


class InputError(ValueError):
    """Input that cannot be audited: the message names the file, the value and the remedy."""


def unknown_name(what: str, name: object, choices: Collection[object]) -> str:
    """Message that a name is unknown.

    Parameters
    ----------
    what : str
        Kind of thing that the name should belong to, such as "attack".
    name : object
        The unknown name.
    choices : collection
        The names that exist.

    Returns
    -------
    str
        With the nearest choice, and with all of them where none is near or they are few.
    """
    names = ", ".join(map(str, choices)) or "none"
    nearest_choice = nearest(name, choices)
    if nearest_choice is None:
        return f"{what} {name!r} is unknown; known: {names}"
    message = f"{what} {name!r} is unknown; did you mean {nearest_choice!r}?"
    if 1 < len(choices) <= MOST_LISTED:
        message += f" (known: {names})"
    return message


def nearest(name: object, choices: Collection[object]) -> str | None:
    """The choice that is spelt most like a name; None where none is similar."""
    matches = get_close_matches(str(name), [str(choice) for choice in choices], n=1, cutoff=0.4)
    return matches[0] if matches else None


def few(names: Sequence[str]) -> str:
    """The first five of a list of names, for a message."""
    listed = ", ".join(names[:5])
    return f"{listed}, ..." if len(names) > 5 else listed
