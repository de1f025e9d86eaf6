"""Digests of data that config.yaml insists on."""

from pathlib import Path

from gfscore.core.errors import InputError


def require_pinned(digest: str, pinned: str | None, *, where: Path | str, remedy: str) -> None:
    """Raise InputError, naming `where` the digest was found and what to do, unless it is the pinned one, or none is."""
    if pinned is not None and pinned.lower() != digest:
        raise InputError(f"{where}: the data have digest {digest}, but config.yaml pins {pinned.lower()}; {remedy}")
