"""The error that is raised when the input, not the code, is at fault."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

MOST_LISTED = 12
"""Names that a message lists beside the nearest one."""


class InputError(ValueError):
    """Input that cannot be audited: the message names the file, the value and the remedy."""


def unknown(what: str, name: object, choices: Collection[object]) -> str:
    """Error message for an unknown name.

    Parameters
    ----------
    what : str
        What the name should be of, such as "attack".
    name : object
        The unknown name.
    choices : collection
        The names that exist.

    Returns
    -------
    str
        The name, the nearest of the choices, and the others where they are few.
    """
    listed = f"known: {', '.join(map(str, choices)) or 'none'}"
    close = nearest(name, choices)
    if close is None:
        return f"{what} {name!r} is unknown; {listed}"
    message = f"{what} {name!r} is unknown; did you mean {close!r}?"
    if 1 < len(choices) <= MOST_LISTED:
        message += f" ({listed})"
    return message


def nearest(name: object, choices: Collection[object]) -> str | None:
    """The choice that is most like a name, None where none is like it."""
    matches = get_close_matches(str(name), [str(choice) for choice in choices], n=1, cutoff=0.4)
    return matches[0] if matches else None


def few(names: Sequence[str]) -> str:
    """The first five of a list of names, for a message."""
    listed = ", ".join(names[:5])
    return f"{listed}, ..." if len(names) > 5 else listed
