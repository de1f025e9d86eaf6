"""Cache of data frames from run to run, keyed by a digest of their inputs and code; it may be deleted at any time."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.errors import InputError
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.tables.table import Table

WORTH_KEEPING = 1.0
"""Seconds of computation from which a frame is stored."""


class KeptFrames:
    """Folder of frames, each named after the SHA-256 of its inputs and of the code that computes it."""

    def __init__(self, folder: Path | str, *, code: Iterable[Path | str]) -> None:
        """`folder` need not exist; `code` are the source files that compute the frames."""
        self._folder = Path(folder)
        state = hashlib.sha256()
        for path in sorted(map(str, code)):
            state.update(path.encode() + b"\0" + Path(path).read_bytes() + b"\0")
        self._code = state.hexdigest()

    def get(self, table: Table, made_of: Mapping[str, Any], make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Frame of `table`: the stored one with the inputs `made_of` (plain values), else the result of `make`."""
        described = json.dumps([self._code, table.name, table.version, made_of], sort_keys=True)
        key = hashlib.sha256(described.encode()).hexdigest()
        path = self._folder / f"{key}.parquet"
        if path.is_file():
            try:
                return read_table(path, table, expect={"key": key})
            except InputError:
                print(f"{path}: damaged; computed again")
        started = time.monotonic()
        frame = make()
        if time.monotonic() - started > WORTH_KEEPING:
            write_table(path, table, frame, identity={"key": key})
        return frame
