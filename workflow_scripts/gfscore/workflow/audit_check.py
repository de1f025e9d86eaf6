"""Integrity check of the files of a finished audit, from its folder alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gfscore.audit.audit_changes import require_one_run
from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.core.digests import CHECKSUMS, changed_files, require_checksum, sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.tables.csv_files import csv_text
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pandas import DataFrame

EXPECTED = (
    *(f"{name}.parquet" for name in TABLES_OF_AUDIT),
    *("models.json", "verdict.json", "calibration.json", "comparison.json"),
    *("report.html", "config.yaml"),
)
"""Files of every complete audit, besides those that are checked against them, such as CSV files."""

CRATE = Path("exports/ro-crate")

MAX_LISTED = 3


@dataclass
class Checked:
    """Result of a check: `counts` by kind of file, `faults` (sentences that name files), `unchecked` (paths)."""

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unchecked: list[Path] = field(default_factory=list)

    def read(self, kind: str, reader: Callable[..., Any], *arguments: Any) -> Any:
        """Result of the reader; None if it raises InputError, which is added to the faults."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        try:
            return reader(*arguments)
        except InputError as error:
            # Without the remedy, to make the file again, which somebody who received the folder cannot follow.
            self.faults.append(str(error).rpartition("; ")[0])
            return None


def check_audit(folder: Path | str, *, figures: bool = True) -> Checked:
    """Check the files of results/audits/<audit> against their checksums and each other: Checked.

    Without `figures` the folder need not have any.

    Tables are read with the checksums of their pages, JSON files, HTML pages and the configuration with their own, each
    CSV is made again from its Parquet file and compared byte for byte, figures are compared with checksums.json beside
    them, the crate, where there is one, with the digests in its metadata. verdict.json and model_summary must hold the
    same values, and all tables be of one audit. This finds damage and careless edits; who makes the checksums again is
    not found. Raises InputError for a folder that holds no audit.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name a folder results/audits/<audit>")
    if not any((folder / name).exists() for name in ("verdict.json", "class_scores.parquet", "model_summary.parquet")):
        raise InputError(
            f"{folder}: holds no audit: neither a verdict nor tables; name a folder results/audits/<audit>"
        )
    checked = Checked()
    checked.faults += [f"{folder / name}: missing" for name in EXPECTED if not (folder / name).is_file()]
    audit = _check_tables(folder, checked)
    for path in sorted(folder.glob("*.json")):
        checked.read("JSON files, by their own checksums", read_json, path)
    for path in sorted(folder.glob("*.html")):
        checked.read("pages, by the checksums in their last lines", require_checksum, path)
    if (folder / "config.yaml").is_file():
        checked.read("configuration, by the checksum in its last line", require_checksum, folder / "config.yaml")
    if figures or (folder / "figures").exists():
        _check_figures(folder / "figures", checked)
    _check_crate(folder, audit, checked)
    known = {".parquet", ".csv", ".json", ".html"}
    checked.unchecked += [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.name.startswith(".")
        and not (path.parent == folder and (path.suffix in known or path.name == "config.yaml"))
        and path.parent != folder / "figures"
        and not {folder / CRATE, folder / "previous"} & {*path.parents}
    ]
    checked.faults = list(dict.fromkeys(checked.faults))
    return checked


def require_unchanged_audit(folder: Path | str) -> None:
    """Raise InputError, listing the first faulty files, unless an audit's files are as the workflow wrote them."""
    faults = check_audit(folder).faults
    if faults:
        more = f"; and {len(faults) - MAX_LISTED} more" if len(faults) > MAX_LISTED else ""
        raise InputError(
            f"{'; '.join(faults[:MAX_LISTED])}{more}: a crate may hold only files as the workflow wrote them; move "
            "your own files elsewhere, delete the named files of the audit, and run the same command again"
        )


def _check_tables(folder: Path, checked: Checked) -> str | None:
    # Returns the name of the audit according to the readable tables.
    audits: dict[Path, Any] = {}
    for path in sorted(folder.glob("*.parquet")):
        frame = checked.read("tables (Parquet), by the checksums of their pages", _table, path, audits)
        csv = path.with_suffix(".csv")
        if frame is None:
            continue
        checked.read("tables (CSV), made again from Parquet", _require_equal_csv, csv, frame)
        if path.stem == "model_summary" and (folder / "verdict.json").is_file():
            checked.read("verdict, by the values of model_summary", _require_one_run, folder, frame)
    checked.faults += [
        f"{csv}: has no Parquet file beside it"
        for csv in sorted(folder.glob("*.csv"))
        if not csv.with_suffix(".parquet").is_file()
    ]
    names = sorted({str(name) for name in audits.values()})
    if len(names) > 1:
        by_name = {name: [path for path, audit in audits.items() if str(audit) == name] for name in names}
        fewest = min(by_name, key=lambda name: len(by_name[name]))
        checked.faults.append(f"{by_name[fewest][0]}: of the audit {fewest!r}; the tables are of {', '.join(names)}")
    return names[0] if len(names) == 1 else None


def _table(path: Path, audits: dict[Path, Any]) -> DataFrame:
    identity = read_identity(path)
    table = identity.get("table")
    if table != path.stem or table not in CATALOGUE:
        raise InputError(f"{path}: contains the table {table!r}; rename the file accordingly")
    if identity.get("table_version") != CATALOGUE[table].version:
        raise InputError(
            f"{path}: not checked: it has version {identity.get('table_version')!r} of this table, and this gfscore "
            f"reads {CATALOGUE[table].version}; use the gfscore version that verdict.json names in `software`"
        )
    audits[path] = identity.get("audit")
    return read_table(path, CATALOGUE[table])


def _require_equal_csv(path: Path, frame: DataFrame) -> None:
    if not path.is_file():
        raise InputError(f"{path}: missing; run the audit again")
    found, expected = path.read_bytes(), csv_text(frame).encode()
    if found == expected:
        return
    pairs = zip(found.split(b"\n"), expected.split(b"\n"), strict=False)
    line = next((line for line, (one, other) in enumerate(pairs, 1) if one != other), "the last")
    raise InputError(f"{path}: edited or damaged: differs from its Parquet file, first in line {line}; make both again")


def _require_one_run(folder: Path, frame: DataFrame) -> None:
    try:
        require_one_run(folder, frame)
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / 'verdict.json'}: is not a verdict ({error}); make it again") from error


def _check_figures(folder: Path, checked: Checked) -> None:
    if not folder.is_dir():
        checked.faults.append(f"{folder}: missing")
        return
    kind = f"figures, by {CHECKSUMS} beside them"
    checked.faults += checked.read(kind, changed_files, folder) or []
    checked.counts[kind] = sum(path.suffix in (".svg", ".pdf", ".png") for path in folder.iterdir())


def _check_crate(folder: Path, audit: str | None, checked: Checked) -> None:
    # Copies in the crate must have the digests in its metadata, and so must the originals in the audit.
    crate = folder / CRATE
    path = crate / "ro-crate-metadata.json"
    if not path.is_file():
        return
    try:
        entities = json.loads(path.read_text(encoding="utf-8"))["@graph"]
        recorded = {unquote(item["@id"]): item["sha256"] for item in entities if "sha256" in item}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        checked.faults.append(f"{path}: is not readable as the metadata of a crate")
        return
    checked.counts["files of the crate, by the digests in its metadata"] = len(recorded)
    start = f"results/audits/{audit}/"
    for name, digest in recorded.items():
        copy = crate / name
        # The metadata of a foreign crate may name any path of this machine.
        if not copy.resolve().is_relative_to(crate.resolve()):
            checked.faults.append(f"{path}: names a file outside the crate, {name}")
        elif not copy.is_file() or sha256_of_file(copy) != digest:
            checked.faults.append(f"{copy}: {'edited or damaged' if copy.is_file() else 'missing'}, as the crate says")
        elif name.startswith(start):
            original = folder / name.removeprefix(start)
            if not original.is_file() or sha256_of_file(original) != digest:
                checked.faults.append(
                    f"{original}: {'differs from' if original.is_file() else 'missing, unlike'} its copy in the crate"
                )
