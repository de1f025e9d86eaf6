"""Number of threads for a network, which depends on its size alone, so that values do not depend on the machine.

The number of threads changes the order of sums.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SMALL = 4_000_000
"""Size of a checkpoint in bytes (a million float32 weights) up to which several threads slow down a network."""

OF_LARGE = 4


def threads_for(manifest: Mapping[str, Any], path: Path | str | None = None) -> int:
    """Threads for the network of a manifest; `path` replaces that of the manifest, as in open_classifier."""
    return threads_for_size(checkpoint_size(manifest, path))


def checkpoint_size(manifest: Mapping[str, Any], path: Path | str | None = None) -> int:
    """Size in bytes of the files of a manifest's network; `path` replaces that of the manifest."""
    files = [path or manifest["path"], *(file["path"] for file in manifest.get("files", []))]
    return sum(Path(file).stat().st_size for file in files if Path(file).is_file())


def threads_for_size(size: int) -> int:
    """Threads for a checkpoint of `size` bytes."""
    return 1 if size <= SMALL else OF_LARGE
