"""What a page is put together from: names of models and classes, packed arrays, tracks and tables."""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.core import numbers
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels, printable, shortened_all

LONGEST_MODEL, LONGEST_CLASS = 17, 17
"""Letters of names in pictures; tables and tooltips have all of them."""


class ModelsAndClasses:
    """Models and classes of an audit in the order of its tables: keys, whole names and short ones."""

    def __init__(self, class_scores: pd.DataFrame) -> None:
        """Read both from the table class_scores."""
        rows = class_scores[class_scores["calibration"] == UNCALIBRATED]
        identities = rows[["dataset", "threat", "model"]].drop_duplicates(ignore_index=True)
        self.models: list[tuple[str, str]] = list(identities[["threat", "model"]].itertuples(index=False, name=None))
        self.position = {model: place for place, model in enumerate(self.models)}
        self.labels = [printable(label) for label in model_labels(identities)]
        self.short = shortened_all(self.labels, LONGEST_MODEL)
        first = rows.drop_duplicates("class_index").sort_values("class_index")
        self.class_places: dict[int, int] = {index: place for place, index in enumerate(first["class_index"])}
        self.classes = [printable(name) for name in readable_classes(list(first["class_name"]))]
        self.class_short = shortened_all(self.classes, LONGEST_CLASS)

    def grid(self, rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
        """One column of class rows as (M, K), NaN where a model lacks a class."""
        result = np.full((len(self.models), len(self.classes)), np.nan)
        places = [self.position[model] for model in zip(rows["threat"], rows["model"], strict=True)]
        result[places, [self.class_places[index] for index in rows["class_index"]]] = rows[column]
        return result

    def per_model(self, rows: pd.DataFrame) -> list[dict[str, Any] | None]:
        """Rows of a table in the order of the models, as mappings; None for a model without a row."""
        found = {(row["threat"], row["model"]): row for row in rows.to_dict("records")}
        return [found.get(model) for model in self.models]

    def label(self, threat: str, model: str) -> str:
        """Whole name of a model."""
        return self.labels[self.position[threat, model]]


# ---- arrays ----


def packed(array: ArrayLike) -> dict[str, Any]:
    """Array of numbers as a mapping of its shape and base64 text, NaN included; page/data.js unpacks it."""
    array = np.asarray(array, dtype="<f8")
    return {"shape": list(array.shape), "f64": base64.b64encode(array.tobytes()).decode("ascii")}


def finite(value: Any) -> float | None:
    """A number as Python's float, None for one that is missing or infinite."""
    return None if value is None or not np.isfinite(value) else float(value)


def plain(value: Any) -> Any:
    """Value for JSON: numpy scalars as Python's, what is not finite as None, lists item by item."""
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


# ---- tracks ----


STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """The common scale of rows: its two ends, where its ticks stand, what it measures, and a threshold or None."""

    low: float
    high: float
    title: str
    threshold: float | None = None

    @property
    def ticks(self) -> list[float]:
        """Round numbers on the scale, at most MOST_TICKS of them."""
        width = self.high - self.low
        step = next((step for step in STEPS if width / step < MOST_TICKS), width)
        first = int(-(-self.low // step))
        found = [round(place * step, 10) for place in range(first, first + MOST_TICKS + 1)]
        return [value for value in found if value <= self.high + 1e-9]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"ticks": self.ticks}


@dataclass(frozen=True)
class Track:
    """One row: a name, short and whole; a value and its interval; a band; a tick; the value as text.

    `band` is (low, high), with `proven` whether its lower end is known; `key` is what choosing the row chooses; `word`
    is the verdict on it.
    """

    name: str
    short: str
    value: float | None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    proven: bool = False
    tick: float | None = None
    key: int | None = None
    word: str | None = None
    aside: str = ""
    highest: float | None = None

    @property
    def text(self) -> str:
        """The value as it is printed."""
        return numbers.number(self.value)

    @property
    def about(self) -> str:
        """The row in words, for tooltips and readers of screens."""
        between = "" if numbers.is_missing(self.low) else f", {numbers.interval(self.low, self.high, self.highest)}"
        tick = "" if numbers.is_missing(self.tick) else f"; clean accuracy {numbers.number(self.tick)}"
        return f"{self.name}: {self.text}{between}{tick}"

    def plain(self) -> dict[str, Any]:
        """For JSON: what the scripts draw a row from."""
        names = ("name", "short", "value", "low", "high", "band", "proven", "tick", "key", "word", "aside")
        return {name: getattr(self, name) for name in names} | {"text": self.text, "about": self.about}


# ---- tables ----


MOST_ROWS = 60

Printed = Callable[[Any], str]


def text(value: Any) -> str:
    """Name on one line; a dash where there is none."""
    return "–" if value is None or (isinstance(value, float) and math.isnan(value)) else printable(value)


def yes(value: Any) -> str:
    """Whether something holds."""
    return "yes" if value else "no"


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, how its cells are printed, and from which columns of the frame."""

    title: str
    printed: Callable[..., str]
    columns: tuple[str, ...]
    number: bool = True


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
    """Column of intervals, rounded outwards."""
    return Column(title, lambda first, last: numbers.interval(first, last, highest), (low, high))


MODEL, CLASS, MEASURE = named("Model", "label"), named("Class", "class"), named("Measure", "measure")
N, VALUE, INTERVAL = counted("n", "n"), valued("Value", "value"), bounded("Interval", "low", "high")
"""Columns that many tables have."""


def table_of(
    frame: pd.DataFrame, name: str, file: str, columns: Iterable[Column], *, caption: str = "", most: int = MOST_ROWS
) -> TableView:
    """View of the first `most` rows of a frame; columns that it lacks, or that hold nothing, are left out."""
    kept = [
        column
        for column in columns
        if set(column.columns) <= set(frame.columns) and bool(frame[list(column.columns)].notna().any(axis=None))
    ]
    shown = frame.head(most)
    cells = [
        [column.printed(*values) for values in shown[list(column.columns)].itertuples(index=False, name=None)]
        for column in kept
    ]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return TableView(name, file, kept, rows, max(0, len(frame) - most), caption)


@dataclass(frozen=True)
class Detail:
    """What stands in closed details: one line that says what is inside, and that."""

    summary: str
    text: list[str] = field(default_factory=list)
    charts: Sequence[Any] = ()
    table: TableView | None = None
    more: Sequence[TableView] = ()
    terms: list[tuple[str, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


def terms_of(mapping: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values as terms."""
    return [(printable(name), text(value)) for name, value in mapping.items()]
