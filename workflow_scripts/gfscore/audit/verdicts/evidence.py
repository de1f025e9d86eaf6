"""Which files a verdict rests on, by their digests."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file


def digests_of(files: Iterable[Path | str]) -> dict[str, str]:
    """SHA-256 (hex) of files by their paths."""
    return {str(file): sha256_of_file(file) for file in files}


def require_current(verdict: Mapping[str, Any], *, source: Path | str) -> None:
    """Raise InputError unless the files that a verdict, read from `source`, rests on are those that are there now."""
    if "made_from" not in verdict:
        raise InputError(f"{source}: of an earlier version; delete it and run the same command again, to judge anew")
    for file, digest in verdict["made_from"].items():
        if not Path(file).is_file() or sha256_of_file(file) != digest:
            raise InputError(
                f"{source}: rests on another {file} than is there now; delete it and run the same command again, to "
                "judge anew"
            )
