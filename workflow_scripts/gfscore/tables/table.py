"""Declaration of a table of results/; key columns of several tables; the tables of a dataset and its logits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """Declaration of a column: its name, its Arrow type, and its meaning for docs/tables.md."""

    name: str
    type: pa.DataType
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """Declaration of a table.

    Attributes
    ----------
    name : str
        Name in docs/tables.md and in the identity of its files.
    version : int
        Raised when the meaning of a column changes.
    columns : tuple of Column
        Columns that every file has, in order.
    evidence : tuple of Column
        Columns of bytes after `columns`. A file may lack them; they are read only where their names are asked for.
    """

    name: str
    version: int
    columns: tuple[Column, ...]
    evidence: tuple[Column, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order, without evidence."""
        return [column.name for column in self.columns]

    def with_evidence(self, names: Iterable[str]) -> Table:
        """The same table with some columns of its evidence, by name, as ordinary columns after the others."""
        chosen = set(names)
        evidence = [column for column in self.evidence if column.name in chosen]
        return replace(self, columns=(*self.columns, *evidence), evidence=())

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as Arrow describes them."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])


# ---- key columns ----

EVALUATED_DATASET = Column("dataset", pa.string(), "data evaluated")

THREAT = Column("threat", pa.string(), "threat model the classifier was made for")

CLASSIFIER = Column("model", pa.string(), "classifier")

MEASURE = Column("measure", pa.string(), "key of config.yaml's measures")

CALIBRATION = Column("calibration", pa.string(), "none, or the objective that chose the temperature")

MODEL = (EVALUATED_DATASET, THREAT, CLASSIFIER)
"""Key columns of tables with values by model."""

MEASURED = (*MODEL, MEASURE)
"""Key columns of tables with values by model and measure."""

SUMMARISED = (
    *MEASURED,
    CALIBRATION,
    Column("temperature", pa.float64(), "temperature of the score; null except for great"),
)
"""Key columns of tables with values by model, measure and calibration."""

CLASS = (
    Column("class_index", pa.int32(), "class, 0..K-1"),
    Column("class_name", pa.string(), "name of the class"),
)
"""Key columns of tables with values by class."""

CLASS_OR_ALL = (
    Column("class_index", pa.int32(), "class, 0..K-1; -1 for all samples together"),
    Column("class_name", pa.string(), "name of the class; all for all samples together"),
)
"""Key columns of tables with values by class and of all samples together."""

SAMPLE_ID = Column("sample_id", pa.string(), "name of the sample within its dataset")

LABEL = Column("label", pa.int32(), "true class, 0..K-1")


# ---- tables that belong to no measure and no audit ----

LOGITS = Table(
    name="logits",
    version=1,
    columns=(
        SAMPLE_ID,
        LABEL,
        Column("logits", pa.list_(pa.float32()), "K unnormalised class scores"),
    ),
)

DATASET = Table(
    name="dataset",
    version=3,
    columns=(
        SAMPLE_ID,
        LABEL,
        Column(
            "image_digest", pa.string(), "first half of the SHA-256 of the image, in hexadecimal; null without images"
        ),
        Column(
            "pixel_digest",
            pa.string(),
            "first half of the SHA-256 of its pixels after decoding and preprocessing: equal ones count once",
        ),
    ),
)
"""The samples of a dataset in its order, for steps that need no images."""

ATTRIBUTES = Table(name="attributes", version=1, columns=(SAMPLE_ID,))
"""Values of attributes: further columns of text, one per attribute, as config.yaml names them."""
