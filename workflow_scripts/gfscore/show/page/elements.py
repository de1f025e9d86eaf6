"""Elements of a page: names of models and classes, packed arrays and tables."""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.core import numbers
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.mappings import positions
from gfscore.core.names import model_labels, printable, printable_all, shortened_all

# ---- names ----

LONGEST_MODEL = 17
LONGEST_CLASS = 17
"""Most characters of a name in a picture; tables and tooltips have the whole name."""


class ModelsAndClasses:
    """Models and classes of an audit in the order of its tables.

    Parameters
    ----------
    class_scores : DataFrame
        Table `class_scores`.

    Attributes
    ----------
    models : list of tuple of str
        Threat model and name of the M models.
    position : dict
        Position of each model in every array of the page.
    labels, short : list of str
        Whole names of the models, and short names for pictures.
    class_places : dict of int to int
        Position of each class index in every array of the page.
    classes, class_short : list of str
        Whole names of the K classes, and short names for pictures.
    """

    def __init__(self, class_scores: pd.DataFrame) -> None:
        rows = class_scores[class_scores["calibration"] == UNCALIBRATED]
        identities = rows[["dataset", "threat", "model"]].drop_duplicates(ignore_index=True)
        self.models: list[tuple[str, str]] = list(identities[["threat", "model"]].itertuples(index=False, name=None))
        self.position = positions(self.models)
        self.labels = printable_all(model_labels(identities))
        self.short = shortened_all(self.labels, LONGEST_MODEL)

        classes = rows.drop_duplicates("class_index").sort_values("class_index")
        self.class_places: dict[int, int] = positions(classes["class_index"])
        self.classes = printable_all(readable_classes(list(classes["class_name"])))
        self.class_short = shortened_all(self.classes, LONGEST_CLASS)

    def grid(self, rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
        """One column of class rows as (M, K), NaN where a model lacks a class."""
        models = [self.position[model] for model in zip(rows["threat"], rows["model"], strict=True)]
        classes = rows["class_index"].map(self.class_places).to_numpy(dtype=np.intp)
        result = np.full((len(self.models), len(self.classes)), np.nan)
        result[models, classes] = rows[column]
        return result

    def per_model(self, rows: pd.DataFrame) -> list[dict[str, object] | None]:
        """Rows of a table in the order of the models, as mappings; None for a model without a row."""
        by_model = {(row["threat"], row["model"]): row for row in rows.to_dict("records")}
        return [by_model.get(model) for model in self.models]

    def label(self, threat: str, model: str) -> str:
        """Whole name of a model."""
        return self.labels[self.position[threat, model]]


# ---- arrays ----


def packed(array: ArrayLike) -> dict[str, object]:
    """Array of numbers without rounding, for the script of the page (templates/data.js).

    Returns
    -------
    dict
        `shape`, and `f64`, base64 of little-endian float64, NaN included.
    """
    array = np.asarray(array, dtype="<f8")
    return {"shape": list(array.shape), "f64": base64.b64encode(array.tobytes()).decode("ascii")}


def finite(value: float | None) -> float | None:
    """A number as Python's float; None if it is missing or infinite."""
    if value is None or not np.isfinite(value):
        return None
    return float(value)


def plain(value: Any) -> Any:
    """Value for JSON: numpy scalars as Python's, NaN and infinite numbers as None, lists and dicts item by item."""
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


# ---- tables: the first rows of long ones, and where all rows stand ----

MOST_ROWS = 60

Printed = Callable[[Any], str]


def text(value: Any) -> str:
    """Name on one line; a dash where there is none."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return printable(value)


def yes(value: Any) -> str:
    """Whether something holds."""
    return "yes" if value else "no"


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and a function that prints a cell from one or more columns of the frame."""

    title: str
    printed: Callable[..., str]
    columns: tuple[str, ...]
    number: bool = True

    def is_filled(self, frame: pd.DataFrame) -> bool:
        """Whether a frame has the columns, and values in them."""
        if not set(self.columns) <= set(frame.columns):
            return False
        return bool(frame[list(self.columns)].notna().any(axis=None))

    def cells(self, frame: pd.DataFrame) -> list[str]:
        """Printed cells of a frame."""
        values = frame[list(self.columns)].itertuples(index=False, name=None)
        return [self.printed(*row) for row in values]


@dataclass(frozen=True)
class TableView:
    """A table as a template writes it."""

    name: str
    file: str
    columns: list[Column]
    rows: list[list[str]]
    left_out: int = 0
    caption: str = ""


def named(title: str, column: str) -> Column:
    """Column of names."""
    return Column(title, text, (column,), number=False)


def counted(title: str, column: str) -> Column:
    """Column of counts."""
    return Column(title, numbers.count, (column,))


def valued(title: str, column: str, printed: Printed = numbers.number) -> Column:
    """Column of numbers."""
    return Column(title, printed, (column,))


def bounded(title: str, low: str, high: str, highest: float | None = None) -> Column:
    """Column of intervals, rounded outwards, from the columns of their ends; no end is above `highest`."""
    return Column(title, lambda first, last: numbers.interval(first, last, highest), (low, high))


MODEL = named("Model", "label")
CLASS = named("Class", "class")
MEASURE = named("Measure", "measure")
N = counted("n", "n")
VALUE = valued("Value", "value")
INTERVAL = bounded("Interval", "low", "high")
"""Columns that many tables have."""

AS_FAILURES = "Undecided samples count as failures in single numbers; intervals allow for every value of theirs."
"""Caption of a table of a measure that has undecided samples."""


def table_of(
    frame: pd.DataFrame, name: str, file: str, columns: Iterable[Column], *, caption: str = "", most: int = MOST_ROWS
) -> TableView:
    """View of the first rows of a frame.

    Parameters
    ----------
    frame : DataFrame
    name : str
        Title for readers of screens.
    file : str
        Name of the CSV file with all rows, without its ending.
    columns : iterable of Column
        Columns of the table; empty ones, and ones that the frame lacks, are left out.
    caption : str
        Note above the table.
    most : int
        Largest number of rows.
    """
    filled = [column for column in columns if column.is_filled(frame)]
    cells = [column.cells(frame.head(most)) for column in filled]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return TableView(name, file, filled, rows, max(0, len(frame) - most), caption)


@dataclass(frozen=True)
class Detail:
    """A closed HTML element `details`: its summary line, and its content."""

    summary: str
    text: list[str] = field(default_factory=list)
    charts: Sequence[Any] = ()
    table: TableView | None = None
    tables: Sequence[TableView] = ()
    terms: list[tuple[str, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


def terms_of(mapping: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values as terms."""
    return [(printable(name), text(value)) for name, value in mapping.items()]
