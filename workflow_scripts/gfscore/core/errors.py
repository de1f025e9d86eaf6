"""The error that is raised when the input, not the code, is at fault."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

MOST_LISTED = 12
"""Names that a message lists beside the nearest one."""


class InputError(ValueError):
    """Input that cannot be audited: the message names the file, the value and the remedy."""


def unknown(what: str, name: object, known: Collection[object]) -> str:
    """Error message for an unknown name, with the nearest known one and the others where they are few."""
    close = nearest(name, known)
    listed = f"known: {', '.join(map(str, known)) or 'none'}"
    if close is None:
        return f"{what} {name!r} is unknown; {listed}"
    others = f" ({listed})" if 1 < len(known) <= MOST_LISTED else ""
    return f"{what} {name!r} is unknown; did you mean {close!r}?{others}"


def nearest(name: object, known: Collection[object]) -> str | None:
    """The known name that is most like another, None where none is like it."""
    return next(iter(get_close_matches(str(name), [str(item) for item in known], n=1, cutoff=0.4)), None)


def few(names: Sequence[str]) -> str:
    """The first five of a list of names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
