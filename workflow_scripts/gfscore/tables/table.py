"""Declaration of the tables of results/: key columns that many share, and the tables of a dataset and its logits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

Column = tuple[str, pa.DataType, str]
"""Name, type and meaning."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Name, version and columns of a table; `version` is raised when the meaning of a column changes.

    `evidence` are columns of bytes behind the others. A file may lack them, and they are read only where asked for.
    """

    name: str
    version: int
    columns: tuple[Column, ...]
    evidence: tuple[Column, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order, without evidence."""
        return [name for name, _, _ in self.columns]

    def with_evidence(self, names: Iterable[str]) -> Table:
        """The table whose columns are these, then its evidence of the given names."""
        chosen = set(names)
        evidence = [column for column in self.evidence if column[0] in chosen]
        return replace(self, columns=(*self.columns, *evidence), evidence=())

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as Arrow describes them."""
        return pa.schema([pa.field(name, kind) for name, kind, _ in self.columns])


# ---- key columns ----

EVALUATED_DATASET = ("dataset", pa.string(), "data evaluated")

THREAT = ("threat", pa.string(), "threat model the classifier was made for")

CLASSIFIER = ("model", pa.string(), "classifier")

MEASURE = ("measure", pa.string(), "key of config.yaml's measures")

CALIBRATION = ("calibration", pa.string(), "none, or the objective that chose the temperature")

MODEL = (EVALUATED_DATASET, THREAT, CLASSIFIER)
"""Key columns of values of one model."""

MEASURED = (*MODEL, MEASURE)
"""Key columns of values of one model and measure."""

SUMMARISED = (
    *MEASURED,
    CALIBRATION,
    ("temperature", pa.float64(), "temperature of the score; null except for great"),
)
"""Key columns of values of one model, measure and temperature."""

CLASS = (
    ("class_index", pa.int32(), "class, 0..K-1"),
    ("class_name", pa.string(), "name of the class"),
)
"""Key columns of values of one class."""

CLASS_OR_ALL = (
    ("class_index", pa.int32(), "class, 0..K-1; -1 for all samples together"),
    ("class_name", pa.string(), "name of the class; all for all samples together"),
)
"""Key columns of values of one class, or of all samples."""

SAMPLE_ID = ("sample_id", pa.string(), "name of the sample within its dataset")

LABEL = ("label", pa.int32(), "true class, 0..K-1")


# ---- tables that belong to no measure and no audit ----

LOGITS = Table(
    name="logits",
    version=1,
    columns=(
        SAMPLE_ID,
        LABEL,
        ("logits", pa.list_(pa.float32()), "K unnormalised class scores"),
    ),
)

DATASET = Table(
    name="dataset",
    version=3,
    columns=(
        SAMPLE_ID,
        LABEL,
        ("image_digest", pa.string(), "first half of the SHA-256 of the image, in hexadecimal; null without images"),
        (
            "pixel_digest",
            pa.string(),
            "first half of the SHA-256 of its pixels after decoding and preprocessing: equal ones count once",
        ),
    ),
)
"""The samples of a dataset in order, for steps that need no images."""

ATTRIBUTES = Table(name="attributes", version=1, columns=(SAMPLE_ID,))
"""Further columns, one string per attribute, are named by config.yaml."""
