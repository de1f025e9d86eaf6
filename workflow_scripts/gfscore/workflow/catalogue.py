"""All tables that a run writes, by name."""

from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.declines import RELEASE_VALUES
from gfscore.core.mappings import by_name
from gfscore.measures.samples import SAMPLES_TABLES, SCORES
from gfscore.tables.table import ATTRIBUTES, DATASET, LOGITS

CATALOGUE = by_name((DATASET, LOGITS, ATTRIBUTES, *SAMPLES_TABLES, SCORES, RELEASE_VALUES, *TABLES.values()))
"""Table by name, in the order of docs/tables.md."""
