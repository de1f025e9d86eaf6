"""All tables that a run writes, by name."""

from collections.abc import Iterator

from gfscore.audit.model_summary import MODEL_SUMMARY, SENSITIVITY
from gfscore.audit.tables import TABLES
from gfscore.measures.samples import SAMPLES_TABLES, SCORES
from gfscore.tables.table import ATTRIBUTES, DATASET, LOGITS, Table

FOLLOWED_BY = {"class_scores": MODEL_SUMMARY, "calibration": SENSITIVITY}
"""Tables whose columns depend on the metrics, by the table after which they are listed."""


def _every_table() -> Iterator[Table]:
    yield from (DATASET, LOGITS, ATTRIBUTES, *SAMPLES_TABLES, SCORES)
    for name, table in TABLES.items():
        yield table
        if name in FOLLOWED_BY:
            yield FOLLOWED_BY[name]


CATALOGUE = {table.name: table for table in _every_table()}
"""Table by name, in the order of docs/tables.md."""
