"""The tables of one audit, read together for the steps that show them."""

from dataclasses import dataclass, field

from gfscore.audit.summary_tables import MODEL_SUMMARY, SENSITIVITY
from gfscore.audit.table_names import COMPARISONS, CONFUSIONS, MEASURE_TABLES
from gfscore.audit.tables import TABLES
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.tables.parquet_tables import read_table


@dataclass(frozen=True)
class AuditTables:
    """What results/audits/<audit>/ holds, as data frames.

    `calibration` and `sensitivity` are None, and `calibration_results` (the contents of calibration.json) empty, in an
    audit that searches no temperature. The tables of COMPARISONS are None, and `comparison` (the contents of
    comparison.json) empty, where they were not asked for; so are those of CONFUSIONS. `measures` maps the names of the
    tables of MEASURE_TABLES that the audit has to data frames.
    """

    class_scores: object
    model_summary: object
    vulnerability: object
    calibration: object = None
    calibration_results: dict | None = None
    sensitivity: object = None
    comparisons: object = None
    model_comparisons: object = None
    rank_intervals: object = None
    lambda_swaps: object = None
    metric_ranks: object = None
    comparison: dict | None = None
    confusions: object = None
    class_errors: object = None
    similarities: object = None
    measures: dict = field(default_factory=dict)

    def of(self, table, measure, calibration=UNCALIBRATED):
        """Rows of one table for one measure and calibration, in their order."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)


def read_audit_tables(files, *, audit):
    """AuditTables of the audit named `audit` from a mapping of paths.

    `files` has class_scores, model_summary and vulnerability, and calibration, calibration_json and sensitivity, which
    may be absent or empty, as may comparison_json and the tables of COMPARISONS, CONFUSIONS and MEASURE_TABLES.
    Raises InputError for a file that is missing, damaged or of another audit.
    """

    def table(name, declared=None):
        return read_table(files[name], declared or TABLES[name], expect={"audit": audit}) if files.get(name) else None

    return AuditTables(
        class_scores=table("class_scores"),
        model_summary=table("model_summary", MODEL_SUMMARY),
        vulnerability=table("vulnerability"),
        calibration=table("calibration"),
        calibration_results=read_json(files["calibration_json"]) if files.get("calibration_json") else {},
        sensitivity=table("sensitivity", SENSITIVITY),
        comparison=read_json(files["comparison_json"]) if files.get("comparison_json") else {},
        **{name: table(name) for name in (*COMPARISONS, *CONFUSIONS)},
        measures={name: table(name) for names in MEASURE_TABLES.values() for name in names if files.get(name)},
    )
