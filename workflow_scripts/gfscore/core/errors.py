"""The error that is raised when the input, not the code, is at fault."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches


class InputError(ValueError):
    """Input that cannot be audited: the message names the file, the value and the remedy."""


def unknown(what: str, name: object, known: Collection[object]) -> str:
    """Error message for an unknown name, with the nearest known one."""
    close = get_close_matches(str(name), [str(item) for item in known], n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(str, known)) or 'none'}"
    return f"{what} {name!r} is unknown; {hint}"


def few(names: Sequence[str]) -> str:
    """The first five of a list of names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
