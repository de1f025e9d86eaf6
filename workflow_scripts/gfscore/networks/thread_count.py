"""How many threads the arithmetic of a network takes: by its size alone, so that values do not depend on the machine.

Another number of threads sums in another order. Imports nothing heavy, because every run of Snakemake reads it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SMALL = 4_000_000
"""Bytes of a checkpoint, a million weights in float32: a smaller network is slowed down by several threads."""

OF_LARGE = 4


def threads_for(manifest: Mapping[str, Any], path: Path | str | None = None) -> int:
    """Threads for a network that a manifest describes; `path` replaces the manifest's own, as in open_classifier."""
    files = [path or manifest["path"], *(file["path"] for file in manifest.get("files", []))]
    return threads_for_size(sum(Path(file).stat().st_size for file in files if Path(file).is_file()))


def threads_for_size(size: int) -> int:
    """The same for a checkpoint of so many bytes."""
    return 1 if size <= SMALL else OF_LARGE
