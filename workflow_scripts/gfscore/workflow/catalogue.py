"""Every kind of table that a run leaves, by its name."""

from gfscore.audit.summary_tables import MODEL_SUMMARY, SENSITIVITY
from gfscore.tables.declared import TABLES, Table

BEHIND = {"class_scores": MODEL_SUMMARY, "calibration": SENSITIVITY}
"""Tables that stand with their owners, by the one that they come behind."""


def _every_table() -> dict[str, Table]:
    found = {}
    for name, table in TABLES.items():
        found[name] = table
        if name in BEHIND:
            found[BEHIND[name].name] = BEHIND[name]
    return found


CATALOGUE = _every_table()
"""Table by name, in the order of docs/tables.md."""
