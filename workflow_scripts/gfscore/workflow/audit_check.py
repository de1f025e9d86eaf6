"""Integrity check of the files of a finished audit, from its folder alone."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pandas as pd

from gfscore.audit.audit_changes import require_one_run
from gfscore.audit.table_names import OTHER_FILES, TABLES_OF_AUDIT
from gfscore.core.digests import changed_files, require_checksum
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.tables.csv_files import csv_text
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.catalogue import CATALOGUE

IDENTIFYING_FILES = ("verdict.json", "class_scores.parquet", "model_summary.parquet")
"""Files by which a folder is taken for an audit: it holds at least one of them."""

MAX_LISTED = 3
"""Faults that an error message lists."""

T = TypeVar("T")


def faults_of_audit(folder: Path | str, *, figures: bool = True) -> list[str]:
    """Faults of the files of results/audits/<audit>, by their checksums and by comparison with each other.

    - Tables: the checksums of Parquet's data pages.
    - JSON files, HTML pages and the configuration: the checksum in each of them.
    - CSV files: byte for byte what is written from the Parquet file.
    - Figures: checksums.json in their folder.
    - verdict.json and model_summary hold the same values, and all tables are of one audit.

    This detects damage and careless edits, but not an edit whose checksums were computed again.

    Parameters
    ----------
    folder : Path or str
        Folder of one audit.
    figures : bool
        Whether the folder must have figures.

    Returns
    -------
    list of str
        Sentences that name files.

    Raises
    ------
    InputError
        For a folder that holds no audit.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name a folder results/audits/<audit>")
    if not any((folder / name).exists() for name in IDENTIFYING_FILES):
        raise InputError(
            f"{folder}: holds no audit: neither a verdict nor tables; name a folder results/audits/<audit>"
        )

    faults = []
    # CSV files are checked against their tables.
    for name in (*(f"{table}.parquet" for table in TABLES_OF_AUDIT), *OTHER_FILES):
        if not (folder / name).is_file():
            faults.append(f"{folder / name}: missing")
    _check_tables(folder, faults)
    for path in sorted(folder.glob("*.json")):
        _read_or_add_fault(faults, read_json, path)
    for path in sorted(folder.glob("*.html")):
        _read_or_add_fault(faults, require_checksum, path)
    if (folder / "config.yaml").is_file():
        _read_or_add_fault(faults, require_checksum, folder / "config.yaml")
    if (folder / "figures").is_dir():
        faults += _read_or_add_fault(faults, changed_files, folder / "figures") or []
    elif figures:
        faults.append(f"{folder / 'figures'}: missing")
    return list(dict.fromkeys(faults))


def _read_or_add_fault(faults: list[str], reader: Callable[..., T], *arguments: object) -> T | None:
    # Result of a reader; None if it raises InputError, whose message is added to the faults.
    try:
        return reader(*arguments)
    except InputError as error:
        # Without the remedy, which somebody who only received the folder cannot follow.
        faults.append(str(error).rpartition("; ")[0])
        return None


def require_unchanged_audit(folder: Path | str) -> None:
    """Raise InputError, listing the first faulty files, unless an audit's files are as the workflow wrote them."""
    faults = faults_of_audit(folder)
    if not faults:
        return
    listed = "; ".join(faults[:MAX_LISTED])
    if len(faults) > MAX_LISTED:
        listed += f"; and {len(faults) - MAX_LISTED} more"
    raise InputError(
        f"{listed}: a crate may hold only files as the workflow wrote them; move your own files elsewhere, delete the "
        "named files of the audit, and run the same command again"
    )


# ---- tables ----


def _check_tables(folder: Path, faults: list[str]) -> None:
    paths_by_audit: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = _read_or_add_fault(faults, _table_of_audit, path)
        if table is None:
            continue
        frame, audit = table
        paths_by_audit.setdefault(audit, []).append(path)
        _read_or_add_fault(faults, _require_same_csv, path.with_suffix(".csv"), csv_text(frame).encode())
        if path.stem == "model_summary" and (folder / "verdict.json").is_file():
            _read_or_add_fault(faults, require_one_run, folder, frame)
    for path in sorted(folder.glob("*.csv")):
        if not path.with_suffix(".parquet").is_file():
            faults.append(f"{path}: has no Parquet file beside it")

    names = sorted(paths_by_audit)
    if len(names) > 1:
        fewest = min(names, key=lambda name: len(paths_by_audit[name]))
        faults.append(f"{paths_by_audit[fewest][0]}: of the audit {fewest!r}; the tables are of {', '.join(names)}")


def _table_of_audit(path: Path) -> tuple[pd.DataFrame, str]:
    # Rows of a table, and the name of its audit.
    identity = read_identity(path)
    table, version = identity.get("table"), identity.get("table_version")
    if table != path.stem or table not in CATALOGUE:
        raise InputError(f"{path}: contains the table {table!r}; rename the file accordingly")
    if version != CATALOGUE[table].version:
        raise InputError(
            f"{path}: not checked: it has version {version!r} of this table, and this gfscore reads "
            f"{CATALOGUE[table].version}; use the gfscore version that verdict.json names in `software`"
        )
    return read_table(path, CATALOGUE[table]), str(identity.get("audit"))


def _require_same_csv(path: Path, expected: bytes) -> None:
    if not path.is_file():
        raise InputError(f"{path}: missing; run the audit again")
    if path.read_bytes() != expected:
        raise InputError(f"{path}: edited or damaged: differs from its Parquet file; make both again")
