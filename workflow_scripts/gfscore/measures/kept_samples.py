"""Values of samples that a larger or smaller subset of the same dataset can take over.

Values belong to a sample, its seed and the measure's other settings, so the size of a subset is no part of their
identity. They may differ in the last bits from those computed in other batches, as sums depend on the batch size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks import passes
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.tables.table import Table


class KeptSamples:
    """Rows of the samples of one measure of one model in `folder`, whatever subset with `per_class` they were made for.

    `identity` is that of the measure's table, `version` that of its kind. Holds nothing where there is nothing, where
    what is there has another identity, or where the settings ask for no such subset.
    """

    def __init__(self, folder: str | Path, table: Table, identity: Mapping[str, Any], *, version: str) -> None:
        """Read what is there."""
        settings = json.loads(identity["settings"])
        self.path = Path(folder) / "kept.parquet"
        self.nested = bool((settings.get("subset") or {}).get("per_class"))
        self._table = table
        whole = json.dumps({**settings, "subset": None}, sort_keys=True)
        self._identity = {**identity, "settings": whole, "version": version}
        self._frame = self._read() if self.nested and self.path.is_file() else None

    def _read(self):
        try:
            frame, own = read_table(self.path, self._table, expect=self._identity), read_identity(self.path)
            passes.add_kept(own["passes"])
        # Damaged, or of other settings: it is computed anew.
        except (InputError, KeyError) as error:
            print(f"not used: {error}")
            return None
        return frame

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
            identity = self._identity | {"passes": passes.made()}
            write_table(self.path, self._table, self._frame, identity=identity)
