"""Columns of the samples tables: those that every measure writes, and each kind's own."""

import pyarrow as pa

from gfscore.measures import KINDS
from gfscore.measures.declaration import CLEAN_PREDICTION, Column
from gfscore.tables.table import LABEL, MEASURED, SAMPLE_ID, Table

SAMPLE_COLUMNS = (
    SAMPLE_ID,
    LABEL,
    ("prediction", pa.int32(), "predicted class; a tie at the top counts against the true class"),
    ("value", pa.float64(), "the measure, in its declared range"),
    ("censored", pa.bool_(), "the value is a bound, not a measurement"),
)

ALREADY_WRONG = "clean"
"""What stands in place of an attack's name for a sample that is misclassified anyway."""

# value: Tolerance of one latent dimension; prediction: that on the reconstruction; censored: on either side.
# Of tied classes both predictions are the first, whatever the label.
_OF_PROJECTION = (
    CLEAN_PREDICTION,
    Column("dimension", "string", "latent dimension of the mapper that is moved"),
    Column("up", "float64", "smallest move upwards that changes the prediction, 1 where none does; null without room"),
    Column("down", "float64", "smallest move downwards, likewise; both in sigma, or of the way to a nearer end"),
    Column("up_censored", "bool", "no move upwards changes the prediction; false without room to move"),
    Column("down_censored", "bool", "no move downwards does"),
)


def _table(name: str, version: int, own: tuple[Column, ...] = ()) -> Table:
    typed = ((column, pa.type_for_alias(kind), meaning) for column, kind, meaning in own)
    return Table(name=name, version=version, columns=(*SAMPLE_COLUMNS, *typed))


_OF_KIND = {
    name: _table(f"samples of kind {name}", kind.table_version, kind.own_columns)
    for name, kind in KINDS.items()
    if kind.own_columns
}
_PLAIN = _table("samples", 1)

PROJECTION_TABLE = _table("samples of kind projection", 2, _OF_PROJECTION)
"""Samples table of projections, which are no measure."""

_FROM_LOGITS = {
    column: (column, pa.type_for_alias(kind), meaning)
    for name in KINDS
    if KINDS[name].needs == "logits"
    for column, kind, meaning in KINDS[name].own_columns
}
SCORES = Table(name="scores", version=1, columns=(*MEASURED, *SAMPLE_COLUMNS, *_FROM_LOGITS.values()))
"""Samples tables of all models and measures from logits of an audit, one behind the other."""

SAMPLES_TABLES = (_PLAIN, *_OF_KIND.values(), PROJECTION_TABLE)
"""Every samples table. Several rows of one sample (a corruption, a severity, a target each) count as one sample: its
value is their mean."""


def table_of(kind: str) -> Table:
    """Samples table that a kind of measure writes."""
    return _OF_KIND.get(kind, _PLAIN)
