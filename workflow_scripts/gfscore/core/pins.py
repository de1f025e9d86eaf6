"""Comparison of data with the digest that config.yaml requires."""

from pathlib import Path

from gfscore.core.errors import InputError


def require_pinned(digest: str, pinned: str | None, *, where: Path | str, remedy: str) -> None:
    """Raise InputError, naming `where` and `remedy`, if a digest is pinned and `digest` differs from it."""
    if pinned is not None and pinned.lower() != digest:
        raise InputError(f"{where}: the data have digest {digest}, but config.yaml pins {pinned.lower()}; {remedy}")
