"""Finished parts of a job, kept on disk so that it goes on where it stopped if it is killed.

Also values of samples, kept for later jobs on a larger or smaller subset of the same dataset.
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
"""Key of the counts of forward and backward passes in the metadata of a kept file."""

Part = TypeVar("Part")


def compute_in_parts(
    parts: Sequence[Part],
    compute: Callable[[Part], pd.DataFrame],
    *,
    table: Table,
    folder: str | Path,
    identity: Mapping[str, Any],
) -> pd.DataFrame:
    """Rows of all parts, one below the other; parts kept by an earlier job are read, the others computed and kept.

    A part that was kept under another identity, or is damaged, is computed again. The passes of a kept part are added
    to those of this process (see gfscore.networks.passes). Prints one line per part with the time that is left. The
    caller removes the folder (`remove_progress`) once the whole table is written.

    Parameters
    ----------
    parts : sequence
        Descriptions of the parts; their texts tell them apart.
    compute : callable
        compute(part): rows of a part, a DataFrame in the columns of the table.
    table : Table
        Columns and version.
    folder : path
        Where parts are kept.
    identity : mapping
        Everything that decides the numbers.

    Returns
    -------
    DataFrame
        In the columns of the table.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    parts_folder = Path(folder) / digest[:16]
    started = time.monotonic()
    computed = 0
    frames = []
    for index, part in enumerate(parts):
        path = parts_folder / f"{index:06d}.parquet"
        part_identity = {**identity, "part": str(part)}
        frame = _read_kept(path, table, part_identity)
        if frame is None:
            passes_before = passes.counts()
            frame = compute(part)
            write_table(path, table, frame, identity={**part_identity, PASSES: passes.counts_since(passes_before)})
            computed += 1
            seconds = (time.monotonic() - started) / computed * (len(parts) - index - 1)
            print(f"part {index + 1} of {len(parts)}: done, about {seconds:.0f} s left")
        else:
            print(f"part {index + 1} of {len(parts)}: kept from an earlier attempt")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def remove_progress(folder: str | Path) -> None:
    """Remove the folder that a job keeps its finished parts in, if there is one."""
    shutil.rmtree(folder, ignore_errors=True)


class KeptSamples:
    """Rows of one measure of one model, by sample, that jobs on smaller and larger subsets of a dataset share.

    Only for a subset with a number of samples per class (`subset: per_class`), which a larger one contains; for other
    settings nothing is read or written. The values of a sample depend on its seed and the measure's settings, not on
    the size of the subset, but for the last bits, as sums depend on the batch size.

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
        """Read the kept rows; none where the file is missing, damaged or has another identity."""
        settings = json.loads(identity["settings"])
        subset = settings.get("subset") or {}
        self.path = Path(folder) / "kept.parquet"
        self.shared = bool(subset.get("per_class"))
        self._table = table
        self._identity = dict(identity)
        self._identity["settings"] = json.dumps({**settings, "subset": None}, sort_keys=True)
        self._identity["version"] = version
        self._passes_before = passes.counts()
        self._frame = _read_kept(self.path, table, self._identity) if self.shared else None

    def missing(self, sample_id: NDArray[np.str_]) -> NDArray[np.int64]:
        """Positions (m,) of the samples without rows, among those of these identifiers (n,)."""
        if self._frame is None:
            return np.arange(len(sample_id))
        kept_ids = self._frame["sample_id"].to_numpy(dtype=str)
        return np.flatnonzero(~np.isin(sample_id, kept_ids))

    def complete(self, computed: pd.DataFrame | None, sample_id: NDArray[np.str_]) -> pd.DataFrame:
        """Add the computed rows, and return those of all samples in the order of their identifiers (n,)."""
        frames = [rows for rows in (self._frame, computed) if rows is not None]
        self._frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)

        position = pd.Series(np.arange(len(sample_id)), index=sample_id)
        rows = self._frame[self._frame["sample_id"].isin(position.index)]

        # Passes were counted for all rows together: those of samples that a smaller subset lacks are taken off.
        self._passes = passes.counts_since(self._passes_before)
        unused = 1 - rows["sample_id"].nunique() / self._frame["sample_id"].nunique()
        passes.add({name: -round(unused * count) for name, count in self._passes.items()})

        # Several rows of one sample stay in their order.
        order = np.argsort(position[rows["sample_id"]].to_numpy(), kind="stable")
        return rows.iloc[order].reset_index(drop=True)

    def write(self) -> None:
        """Write all rows, kept and computed, for later jobs."""
        if self.shared:
            identity = {**self._identity, PASSES: self._passes}
            write_table(self.path, self._table, self._frame, identity=identity)


def _read_kept(path: Path, table: Table, identity: Mapping[str, Any]) -> pd.DataFrame | None:
    # Rows of a kept file, whose passes are added to those of this process; None where they have to be computed.
    if not path.is_file():
        return None
    try:
        frame = read_table(path, table, expect=identity, evidence=True)
        kept_identity = read_identity(path)
        if PASSES not in kept_identity:
            raise InputError(f"{path}: kept by an earlier version, which did not count passes")
    # A file that was cut off by a full disk, edited by hand, or is of other settings: computing again is cheap.
    except InputError as error:
        print(f"not used: {error}")
        return None
    passes.add(kept_identity[PASSES])
    return frame
