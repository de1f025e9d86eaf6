"""Long work in parts: each finished part is kept on disk, so that a job that was killed goes on where it stopped."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.errors import InputError
from gfscore.networks import passes
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.tables.table import Table

PASSES = "passes"
"""Key of a part's counts of passes in its metadata."""


def in_parts(
    parts: Sequence[Hashable],
    compute: Callable[[Any], pd.DataFrame],
    *,
    table: Table,
    folder: str | Path,
    identity: Mapping[str, Any],
) -> pd.DataFrame:
    """Data frame of all parts, one below the other: those found in `folder` are read, the others computed and kept.

    `parts` are hashable descriptions, `compute(part)` gives the data frame of one in the columns of `table`,
    `identity` everything that decides the numbers: a part that was kept under another identity, or is damaged, is
    computed again. Passes that made a kept part count as if they were made now (see
    gfscore.networks.passes). Prints one line per part with the time that is left. The caller removes the folder
    (`forget`) once the whole is safely written.
    """
    kept = Path(folder) / _digest(identity)
    frames, started, computed = [], time.monotonic(), 0
    for index, part in enumerate(parts):
        path = kept / f"{index:06d}.parquet"
        mine = {**identity, "part": str(part)}
        frame = _kept(path, table, mine)
        if frame is None:
            before = passes.made()
            frame = compute(part)
            write_table(path, table, frame, identity=mine | {PASSES: passes.made_since(before)})
            computed += 1
            left = (time.monotonic() - started) / computed * (len(parts) - index - 1)
            print(f"part {index + 1} of {len(parts)}: done, about {left:.0f} s left")
        else:
            print(f"part {index + 1} of {len(parts)}: kept from an earlier attempt")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def forget(folder: str | Path) -> None:
    """Remove what `in_parts` kept; nothing happens where there is nothing."""
    shutil.rmtree(folder, ignore_errors=True)


def _kept(path, table, identity):
    if not path.is_file():
        return None
    try:
        frame, own = read_table(path, table, expect=identity), read_identity(path)
        if PASSES not in own:
            raise InputError(f"{path}: kept by an earlier version, which did not count passes")
    # A part cut off by a full disk, or edited by hand, is computed again, which is cheap.
    except InputError as error:
        print(f"not used: {error}")
        return None
    passes.add_kept(own[PASSES])
    return frame


def _digest(identity):
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
