"""Tables behind the pictures: printed cells, the first rows of long ones, and where all rows stand."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gfscore.core import numbers
from gfscore.core.names import printable

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
