"""Forms of charts: what a chart looks like, as data, drawn by Vega-Lite on pages and in files (`vega`, `saving`).

Imports nothing heavy, because every run of Snakemake reads declarations of charts.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
else:
    # For annotations alone. A frame is a tidy data frame, one row per mark, one column per quantity.
    Frame = Any


@dataclass(frozen=True)
class Axis:
    """Column of numbers on an axis, or on a scale of colours, and what is written beside it.

    `title` is a format of what the chart is about: {unit}, {short_unit}, {measure}, {dataset} (see Subject.facts).
    """

    column: str
    title: str
    log: bool = False
    reverse: bool = False
    zero: bool = False
    """Whether the axis begins at 0 where no value is below it."""
    whole: bool = False
    """Whether values are counts or places, which have no decimals."""
    end: float | None = None
    """Where the axis ends; None: at the data."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Names of columns of a tidy frame by what they are drawn as. Categories stand in the order of the frame's rows."""

    panel: str | None = None
    """Column that makes a small panel of each of its values."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that it draws."""
        values = [getattr(self, item.name) for item in fields(self) if item.name not in TEXTS]
        named = [value.column if isinstance(value, Axis) else value for value in values]
        return tuple(dict.fromkeys(value for value in named if isinstance(value, str)))


TEXTS = ("scale", "limits", "row_title", "column_title", "sides", "corner")
"""Fields that hold no column."""


@dataclass(frozen=True, kw_only=True)
class Heatmap(Form):
    """Values of rows by columns as colours, numbered where there is room. A cell without a value stays empty."""

    row: str
    column: str
    value: Axis
    scale: Literal["values", "differences"] = "values"
    """Dark low, bright high; or two hues around 0."""
    limits: Literal["measure", "share", "data"] = "data"
    """What colours span: the values and at least half of the measure's range; 0 to 1; the values and 0."""
    aside: str | None = None
    """Value of a whole row, written behind it."""
    dot: str | None = None
    """Whether a cell rests on little, which puts a dot into its corner."""
    box: str | None = None
    """Whether a cell is framed: "sure" (solid), "open" (dotted), or null."""
    row_title: str | None = None
    column_title: str | None = None
    live: bool = False
    """Whether the page's threshold fades cells that reach it, and its search leaves the columns that it finds."""
    apart: bool = False
    """Whether each panel has columns of its own."""


@dataclass(frozen=True, kw_only=True)
class Matrix(Heatmap):
    """A heatmap whose cells are square."""

    diagonal: str | None = None
    """Value of the cells on the diagonal, written without a colour."""


@dataclass(frozen=True, kw_only=True)
class Intervals(Form):
    """One value per row with its interval."""

    row: str
    value: Axis
    low: str
    high: str
    tick: str | None = None
    """What chance alone gives, an upright tick."""
    colour: str | None = None
    """Categories that share a row, each with a colour and a shape."""
    hollow: str | None = None
    """Whether a value rests on little."""
    bold: str | None = None
    """Whether a row stands out."""
    aside: str | None = None
    """Text behind a row."""
    rule: float | None = None
    """Where a line crosses all rows."""
    apart: bool = False
    """Whether each panel has a scale of its own."""


@dataclass(frozen=True, kw_only=True)
class Bars(Form):
    """A bar per row at the mean of its values, which are dots, filled where `sure`."""

    row: str
    value: Axis
    sure: str | None = None
    rule: str | None = None
    """Column that holds one number: where a dashed line crosses all rows."""


@dataclass(frozen=True, kw_only=True)
class Curves(Form):
    """Lines over a common axis, with a band on one or both sides."""

    x: Axis
    y: Axis
    line: str
    low: str | None = None
    high: str | None = None
    bold: str | None = None
    """Whether a line stands out."""
    dot: str | None = None
    """Whether a point is marked."""
    shade: str | None = None
    """Whether the stretch of x around a point is shaded."""
    rule: float | None = None
    """Where an upright dashed line stands."""
    points: bool = False
    """Whether every value is a point of its line."""
    names: bool = True
    """Whether names stand at the ends of the lines."""
    apart: bool = False
    """Whether each panel has a scale of its own."""


@dataclass(frozen=True, kw_only=True)
class Scatter(Form):
    """One named point per row with its intervals along both axes."""

    x: Axis
    y: Axis
    name: str
    x_low: str | None = None
    x_high: str | None = None
    y_low: str | None = None
    y_high: str | None = None
    state: str | None = None
    """Column of the keys of `sides`."""
    sides: tuple[tuple[str, Literal["accent", "open", "contrast"]], ...] = ()
    """What states there are, and how their points look: circles, hollow triangles, triangles."""
    diagonal: bool = False
    """Whether both axes are one, with the line of equal values."""
    corner: str = ""
    """What lies above that line."""


@dataclass(frozen=True, kw_only=True)
class Radar(Form):
    """Values around a circle with their band."""

    spoke: str
    value: Axis
    low: str
    high: str
    reference: str | None = None
    """Values of all panels together, a dashed line."""


@dataclass(frozen=True, kw_only=True)
class Pictures(Form):
    """Small images by rows and columns; `picture` holds PNG files as data: addresses."""

    row: str
    column: str
    picture: str
    column_title: str | None = None
