"""Finished parts of long work, kept on disk so that a job that was killed goes on where it stopped.

Also values of samples, which a larger or smaller subset of the same dataset can take over.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks import passes
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.tables.table import Table

PASSES = "passes"
"""Key of the counts of passes in the metadata of what is kept."""


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


class KeptSamples:
    """Rows of the samples of one measure of one model in `folder`, whatever subset with `per_class` they were made for.

    `identity` is that of the measure's table, `version` that of its kind. Holds nothing where there is nothing, where
    what is there has another identity, or where the settings ask for no such subset. Values belong to a sample, its
    seed and the measure's other settings, so the size of a subset is no part of their identity; they may differ in the
    last bits from those computed in other batches, as sums depend on the batch size.
    """

    def __init__(self, folder: str | Path, table: Table, identity: Mapping[str, Any], *, version: str) -> None:
        """Read what is there."""
        settings = json.loads(identity["settings"])
        self.path = Path(folder) / "kept.parquet"
        self.nested = bool((settings.get("subset") or {}).get("per_class"))
        self._table = table
        whole = json.dumps({**settings, "subset": None}, sort_keys=True)
        self._identity = {**identity, "settings": whole, "version": version}
        self._frame = _kept(self.path, table, self._identity) if self.nested else None

    def missing(self, sample_id: NDArray[np.str_]) -> NDArray[np.int64]:
        """Positions (m,) of the samples, by their names (n,), that have no rows."""
        if self._frame is None:
            return np.arange(len(sample_id))
        return np.flatnonzero(~np.isin(sample_id, self._frame["sample_id"].to_numpy(dtype=str)))

    def completed(self, frame: pd.DataFrame | None, sample_id: NDArray[np.str_]) -> pd.DataFrame:
        """Rows of all samples, in the order of their names (n,): those that are kept, and `frame`, those computed."""
        parts = [part for part in (self._frame, frame) if part is not None]
        self._frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        place = pd.Series(np.arange(len(sample_id)), index=sample_id)
        chosen = self._frame[self._frame["sample_id"].isin(place.index)]
        # Several rows of one sample stay in their order.
        order = np.argsort(place[chosen["sample_id"]].to_numpy(), kind="stable")
        return chosen.iloc[order].reset_index(drop=True)

    def keep(self) -> None:
        """Write all rows that are known by now; nothing happens where the settings ask for no such subset."""
        if self.nested:
            identity = self._identity | {PASSES: passes.made()}
            write_table(self.path, self._table, self._frame, identity=identity)


def _kept(path, table, identity):
    if not path.is_file():
        return None
    try:
        frame, own = read_table(path, table, expect=identity), read_identity(path)
        if PASSES not in own:
            raise InputError(f"{path}: kept by an earlier version, which did not count passes")
    # What was cut off by a full disk, edited by hand, or is of other settings is computed again, which is cheap.
    except InputError as error:
        print(f"not used: {error}")
        return None
    passes.add_kept(own[PASSES])
    return frame


def _digest(identity):
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
