"""Every kind of table that a run leaves, by its name."""

from collections.abc import Iterator

from gfscore.audit.summary_tables import MODEL_SUMMARY, SENSITIVITY
from gfscore.audit.tables import TABLES
from gfscore.measures.samples import SAMPLES_TABLES, SCORES
from gfscore.tables.table import ATTRIBUTES, DATASET, LOGITS, Table

BEHIND = {"class_scores": MODEL_SUMMARY, "calibration": SENSITIVITY}
"""Tables whose columns follow from the metrics, by the one that they come behind."""


def _every_table() -> Iterator[Table]:
    yield from (DATASET, LOGITS, ATTRIBUTES, *SAMPLES_TABLES, SCORES)
    for name, table in TABLES.items():
        yield table
        if name in BEHIND:
            yield BEHIND[name]


CATALOGUE = {table.name: table for table in _every_table()}
"""Table by name, in the order of docs/tables.md."""
