"""The tables of one audit, read together for the steps that present them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gfscore.audit.summary_tables import MODEL_SUMMARY, SENSITIVITY
from gfscore.audit.table_names import COMPARISONS, CONFUSIONS, MEASURE_TABLES
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.tables.parquet_tables import TableFile

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.tables.table import Table


@dataclass(frozen=True)
class AuditTables:
    """The tables of results/audits/<audit>/ as data frames.

    A table that an audit has no measure for is None. Without a temperature search, `calibration` and `sensitivity` are
    None and `calibration_results` (the contents of calibration.json) is empty. `comparison` holds the contents of
    comparison.json, `measures` the present ones of MEASURE_TABLES by name.
    """

    class_scores: pd.DataFrame
    model_summary: pd.DataFrame
    vulnerability: pd.DataFrame
    calibration: pd.DataFrame | None = None
    calibration_results: dict[str, Any] | None = None
    sensitivity: pd.DataFrame | None = None
    comparisons: pd.DataFrame | None = None
    model_comparisons: pd.DataFrame | None = None
    rank_intervals: pd.DataFrame | None = None
    lambda_swaps: pd.DataFrame | None = None
    metric_ranks: pd.DataFrame | None = None
    comparison: dict[str, Any] | None = None
    confusions: pd.DataFrame | None = None
    class_errors: pd.DataFrame | None = None
    similarities: pd.DataFrame | None = None
    measures: dict[str, pd.DataFrame] = field(default_factory=dict)

    def of(self, table: str, measure: str, calibration: str = UNCALIBRATED) -> pd.DataFrame:
        """Rows of one table for one measure and calibration, in the table's order."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)


def read_audit_tables(files: Mapping[str, Any], *, audit: str) -> AuditTables:
    """AuditTables of the audit named `audit` from a mapping of paths.

    `files` holds the tables by name, calibration_json and comparison_json; only class_scores, model_summary and
    vulnerability are required. Raises InputError for a file that is missing, damaged or of another audit.
    """

    def table(name: str, declared: Table | None = None) -> pd.DataFrame | None:
        if not files.get(name):
            return None
        file = TableFile(files[name], declared or TABLES[name], expect={"audit": audit})
        return None if file.identity.get("measured") is False else file.read()

    measures = {name: table(name) for name in MEASURE_TABLES}

    return AuditTables(
        class_scores=table("class_scores"),
        model_summary=table("model_summary", MODEL_SUMMARY),
        vulnerability=table("vulnerability"),
        calibration=table("calibration"),
        calibration_results=read_json(files["calibration_json"]) if files.get("calibration_json") else {},
        sensitivity=table("sensitivity", SENSITIVITY),
        comparison=read_json(files["comparison_json"]) if files.get("comparison_json") else {},
        **{name: table(name) for name in (*COMPARISONS, *CONFUSIONS)},
        measures={name: frame for name, frame in measures.items() if frame is not None},
    )
