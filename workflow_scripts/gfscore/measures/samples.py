"""Columns of the samples tables: those that every measure writes, and each kind's own."""

import pyarrow as pa

from gfscore.measures import KINDS
from gfscore.measures.declaration import CLEAN_PREDICTION, Column

SAMPLE_COLUMNS = (
    ("sample_id", pa.string(), "name of the sample within its dataset"),
    ("label", pa.int32(), "true class, 0..K-1"),
    ("prediction", pa.int32(), "predicted class; a tie at the top counts against the true class"),
    ("value", pa.float64(), "the measure, in its declared range"),
    ("censored", pa.bool_(), "the value is a bound, not a measurement"),
)

ALREADY_WRONG = "clean"
"""What stands in place of an attack's name for a sample that is misclassified anyway."""

PROJECTION_TABLE = "samples of kind projection"
"""Name of the samples table of projections, which are no measure."""

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


def table_of(kind: str) -> str:
    """Name of the samples table that a kind of measure writes, a key of gfscore.tables.parquet_tables.TABLES."""
    return f"samples of kind {kind}" if KINDS[kind].own_columns else "samples"


def _columns(own: tuple[Column, ...]) -> tuple:
    return (*SAMPLE_COLUMNS, *((name, pa.type_for_alias(kind), meaning) for name, kind, meaning in own))


SAMPLES_TABLES = {
    "samples": (1, SAMPLE_COLUMNS),
    **{
        table_of(name): (kind.table_version, _columns(kind.own_columns))
        for name, kind in KINDS.items()
        if kind.own_columns
    },
    PROJECTION_TABLE: (2, _columns(_OF_PROJECTION)),
}
"""Version and columns of every samples table, by its name.

Several rows of one sample (a corruption, a severity, a target each) count as one sample: its value is their mean.
"""
