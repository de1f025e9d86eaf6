"""The tables of one audit, read together for the steps that show them."""

from dataclasses import dataclass

from gfscore.files import read_json
from gfscore.tables import read_table


@dataclass(frozen=True)
class AuditTables:
    """What results/audits/<audit>/ holds, as data frames.

    `calibration` and `sensitivity` are None, and `calibration_results` (the contents of calibration.json) empty, in an
    audit that searches no temperature.
    """

    class_scores: object
    model_summary: object
    vulnerability: object
    calibration: object = None
    calibration_results: dict | None = None
    sensitivity: object = None

    def of(self, table, measure, calibration="none"):
        """Rows of one table for one measure and calibration, "none" being T = 1; the order stays."""
        frame = getattr(self, table)
        return frame[(frame["measure"] == measure) & (frame["calibration"] == calibration)].reset_index(drop=True)


def read_audit_tables(files, *, audit):
    """AuditTables of the audit named `audit` from a mapping of paths.

    `files` has class_scores, model_summary and vulnerability, and calibration, calibration_json and sensitivity, which
    may be absent or empty. Raises InputError for a file that is missing, damaged or of another audit.
    """

    def table(name):
        return read_table(files[name], name, expect={"audit": audit}) if files.get(name) else None

    return AuditTables(
        class_scores=table("class_scores"),
        model_summary=table("model_summary"),
        vulnerability=table("vulnerability"),
        calibration=table("calibration"),
        calibration_results=read_json(files["calibration_json"]) if files.get("calibration_json") else {},
        sensitivity=table("sensitivity"),
    )
