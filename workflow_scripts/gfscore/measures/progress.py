"""Finished parts of long work, kept on disk so that a job that was killed goes on where it stopped.

Also values of samples, which a larger or smaller subset of the same dataset can take over.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks import passes
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.tables.table import Table

PASSES = "passes"
"""Key of the counts of passes in the metadata of what is kept."""

Part = TypeVar("Part")


def in_parts(
    parts: Sequence[Part],
    compute: Callable[[Part], pd.DataFrame],
    *,
    table: Table,
    folder: str | Path,
    identity: Mapping[str, Any],
) -> pd.DataFrame:
    """Rows of all parts, one below the other; kept parts are read, the others computed and kept.

    A part that was kept under another identity, or is damaged, is computed again. Passes that made a kept part count as
    if they were made now (see gfscore.networks.passes). Prints one line per part with the time that is left. The caller
    removes the folder (`forget`) once the whole is safely written.

    Parameters
    ----------
    parts : sequence
        Descriptions of the parts.
    compute : callable
        compute(part): rows of a part, a DataFrame in the columns of the table.
    table : Table
        Columns and version.
    folder : path
        Where parts are kept.
    identity : mapping
        Everything that decides the numbers.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    kept_parts = Path(folder) / digest[:16]
    started = time.monotonic()
    computed = 0
    frames = []
    for index, chunk in enumerate(parts):
        path = kept_parts / f"{index:06d}.parquet"
        part_identity = {**identity, "part": str(chunk)}
        frame = _read_kept(path, table, part_identity)
        if frame is None:
            earlier = passes.counts()
            frame = compute(chunk)
            write_table(path, table, frame, identity={**part_identity, PASSES: passes.counts_since(earlier)})
            computed += 1
            seconds = (time.monotonic() - started) / computed * (len(parts) - index - 1)
            print(f"part {index + 1} of {len(parts)}: done, about {seconds:.0f} s left")
        else:
            print(f"part {index + 1} of {len(parts)}: kept from an earlier attempt")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def forget(folder: str | Path) -> None:
    """Remove the folder of `in_parts`, if there is one."""
    shutil.rmtree(folder, ignore_errors=True)


class KeptSamples:
    """Rows of the samples of one measure of one model, kept for any other subset of so many samples of each class.

    Values belong to a sample, its seed and the measure's other settings, so the size of a subset is no part of their
    identity; they may differ in the last bits from those computed in other batches, as sums depend on the batch size.
    Empty where the settings ask for no such subset, and where the file is missing or has another identity.

    Parameters
    ----------
    folder : path
        Where the rows are kept.
    table : Table
        Samples table of the measure.
    identity : mapping
        Identity of the measure's table.
    version : str
        Version of the measure's kind.
    """

    def __init__(self, folder: str | Path, table: Table, identity: Mapping[str, Any], *, version: str) -> None:
        """Read the rows that are kept."""
        settings = json.loads(identity["settings"])
        subset = settings.get("subset") or {}
        self.path = Path(folder) / "kept.parquet"
        self.nested = bool(subset.get("per_class"))
        self._table = table
        self._identity = dict(identity)
        self._identity["settings"] = json.dumps({**settings, "subset": None}, sort_keys=True)
        self._identity["version"] = version
        self._frame = _read_kept(self.path, table, self._identity) if self.nested else None

    def missing(self, sample_id: NDArray[np.str_]) -> NDArray[np.int64]:
        """Positions (m,) of the samples, by their names (n,), that have no rows."""
        if self._frame is None:
            return np.arange(len(sample_id))
        kept_ids = self._frame["sample_id"].to_numpy(dtype=str)
        return np.flatnonzero(~np.isin(sample_id, kept_ids))

    def completed(self, frame: pd.DataFrame | None, sample_id: NDArray[np.str_]) -> pd.DataFrame:
        """Rows of all samples in the order of their names (n,): those that are kept, and `frame`, those computed."""
        frames = [rows for rows in (self._frame, frame) if rows is not None]
        self._frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)

        position = pd.Series(np.arange(len(sample_id)), index=sample_id)
        chosen = self._frame[self._frame["sample_id"].isin(position.index)]
        # Several rows of one sample stay in their order.
        order = np.argsort(position[chosen["sample_id"]].to_numpy(), kind="stable")
        return chosen.iloc[order].reset_index(drop=True)

    def keep(self) -> None:
        """Write all rows, kept and computed; nothing where the settings ask for no subset of each class."""
        if self.nested:
            identity = {**self._identity, PASSES: passes.counts()}
            write_table(self.path, self._table, self._frame, identity=identity)


def _read_kept(path: Path, table: Table, identity: Mapping[str, Any]) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    try:
        frame = read_table(path, table, expect=identity, evidence=True)
        kept_identity = read_identity(path)
        if PASSES not in kept_identity:
            raise InputError(f"{path}: kept by an earlier version, which did not count passes")
    # What was cut off by a full disk, edited by hand, or is of other settings is computed again, which is cheap.
    except InputError as error:
        print(f"not used: {error}")
        return None
    passes.add(kept_identity[PASSES])
    return frame
