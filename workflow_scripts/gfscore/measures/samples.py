"""Columns of the samples tables: the common ones, and the columns of each kind of measure."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from gfscore.measures import KINDS
from gfscore.measures.declaration import CLEAN_PREDICTION
from gfscore.measures.declaration import Column as KindColumn
from gfscore.tables.table import LABEL, MEASURED, SAMPLE_ID, Column, Table

SampleColumns = dict[str, NDArray[Any]]
"""Arrays by the column of a samples table."""

SAMPLE_COLUMNS = (
    SAMPLE_ID,
    LABEL,
    Column("prediction", pa.int32(), "predicted class; a tie at the top counts against the true class"),
    Column("value", pa.float64(), "the measure, in its declared range"),
    Column("censored", pa.bool_(), "the value is a bound, not a measurement"),
)

ALREADY_WRONG = "clean"
"""What stands in place of an attack's name for a sample that is misclassified anyway."""

# value: Tolerance of one latent dimension; prediction: that on the reconstruction; censored: on either side.
# Of tied classes both predictions are the first, whatever the label.
_PROJECTION_COLUMNS = (
    CLEAN_PREDICTION,
    KindColumn("dimension", "string", "latent dimension of the mapper that is moved"),
    KindColumn(
        "up", "float64", "smallest move upwards that changes the prediction, 1 where none does; null without room"
    ),
    KindColumn(
        "down",
        "float64",
        "smallest move downwards, 1 where none does; up and down in sigma, or of the way to a nearer end",
    ),
    KindColumn("up_censored", "bool", "no move upwards changes the prediction; false without room to move"),
    KindColumn("down_censored", "bool", "no move downwards does"),
)


def _typed(columns: Iterable[KindColumn]) -> list[Column]:
    return [Column(name, pa.type_for_alias(alias), meaning) for name, alias, meaning in columns]


def _samples_table(
    name: str, version: int, columns: Iterable[KindColumn], evidence: Iterable[KindColumn] = ()
) -> Table:
    typed_columns = (*SAMPLE_COLUMNS, *_typed(columns))
    return Table(name=name, version=version, columns=typed_columns, evidence=tuple(_typed(evidence)))


def _tables_of_kinds() -> dict[str, Table]:
    tables = {}
    for name, kind in KINDS.items():
        if kind.kind_columns:
            title = f"samples of kind {name}"
            tables[name] = _samples_table(title, kind.table_version, kind.kind_columns, kind.evidence)
    return tables


def _columns_from_logits() -> list[Column]:
    columns = {}
    for kind in KINDS.values():
        if kind.needs == "logits":
            columns.update({column.name: column for column in kind.kind_columns})
    return _typed(columns.values())


_TABLES_OF_KINDS = _tables_of_kinds()
_PLAIN = _samples_table("samples", 1, ())

PROJECTION_TABLE = _samples_table("samples of kind projection", 2, _PROJECTION_COLUMNS)
"""Samples table of projections, which are no measure."""

SCORES = Table(name="scores", version=1, columns=(*MEASURED, *SAMPLE_COLUMNS, *_columns_from_logits()))
"""Samples tables of all models and measures from logits of an audit, one behind the other."""

SAMPLES_TABLES = (_PLAIN, *_TABLES_OF_KINDS.values(), PROJECTION_TABLE)
"""Every samples table. Several rows of one sample (a corruption, a severity, a target each) count as one sample: its
value is their mean."""


def table_of(kind: str) -> Table:
    """Samples table that a kind of measure writes."""
    return _TABLES_OF_KINDS.get(kind, _PLAIN)
