"""What a chart declares about itself, and the subject that it is asked about. Imports nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from gfscore.audit.findings.finding import Finding
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels, printable
from gfscore.measures import NamedMeasure, names_of_kind
from gfscore.measures.declaration import Measure

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from gfscore.audit.tables import AuditTables
    from gfscore.audit.values import SampleValues

Section = Literal["which", "class", "sure", "trust", "whom", "help", "how"]
SECTIONS: tuple[Section, ...] = ("which", "class", "sure", "trust", "whom", "help", "how")
SCORE = "great"
"""Kind of the measures that disparity charts are about, where an audit has one."""


class NothingToDraw(Exception):
    """An audit has nothing for a chart."""


def some(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows; NothingToDraw where there are none."""
    if rows.empty:
        raise NothingToDraw
    return rows


def labelled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a table, counted anew, with further columns.

    `label` names models, shortly where that is unambiguous, and alike in every task; `class` holds readable names of
    classes, and what else `class_name` says where a row is about all. Both are null in rows that name none.
    """
    rows = rows.reset_index(drop=True)
    if {"dataset", "threat", "model"} <= set(rows):
        of_model = rows["model"].notna()
        rows = rows.assign(label=None)
        rows.loc[of_model, "label"] = model_labels(rows[of_model].assign(dataset=""))
    if {"class_index", "class_name"} <= set(rows):
        classes = rows[rows["class_index"] >= 0].drop_duplicates("class_index")
        readable = readable_classes(classes["class_name"].astype(str))
        names = dict(zip(classes["class_index"], readable, strict=True))
        rows["class"] = rows["class_index"].map(names).astype(object).fillna(rows["class_name"])
    return rows


@dataclass(frozen=True)
class Subject:
    """An audit, and one of its measures where a chart is about one: all that charts are made from.

    Attributes
    ----------
    tables : AuditTables
    measures : mapping of str to NamedMeasure
        All measures of the audit by name.
    fp_lambda : float
        Weight lambda of RDI in FP.
    measure : str or None
        Name of the measure that a chart is about.
    guessing : collection of str
        Labels "threat/model" of models that may be guessing.
    left_out : int
        Number of models that take no part, which corrections for several models count (see AuditValues.left_out).
    measured : mapping of str to sequence of SampleValues
        Values of each score, one per model, for charts that draw samples at random, with `seed`.
    pictures : mapping of str to mapping of str to ndarray
        Arrays of each mapper of the audit; see gfscore.projection.mappers.pictures.
    seed : int
    """

    tables: AuditTables
    measures: Mapping[str, NamedMeasure]
    fp_lambda: float
    measure: str | None = None
    guessing: Collection[str] = ()
    left_out: int = 0
    measured: Mapping[str, Sequence[SampleValues]] = field(default_factory=dict)
    pictures: Mapping[str, Mapping[str, NDArray[np.generic]]] = field(default_factory=dict)
    seed: int = 0
    cache: dict[tuple[str | None, str, bool], pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    """What `rows` has selected, of every measure: several charts look at the same rows."""

    def about(self, measure: str | None) -> Subject:
        """Subject of the same audit about another measure."""
        return replace(self, measure=measure)

    @cached_property
    def meaning(self) -> Measure:
        """What values of the measure mean."""
        return self.measures[str(self.measure)].description

    @property
    def kind(self) -> str:
        """Kind of the measure."""
        return self.measures[str(self.measure)].kind.name

    @property
    def scored(self) -> bool:
        """Whether the audit is about this measure: an attack-free score, or any measure of an audit without one."""
        scores = names_of_kind(self.measures, SCORE)
        return self.measure in (scores or self.measures)

    def rows(self, table: str, *, tasks: bool = False) -> pd.DataFrame:
        """Rows of a table of the audit, of the subject's measure at T = 1; NothingToDraw where there are none.

        Rows of the audit's own dataset, or with `tasks` of every task, which the column dataset names; `labelled`.
        """
        key = (self.measure, table, tasks)
        if key not in self.cache:
            self.cache[key] = self._rows(table, tasks)
        return self.cache[key].copy()

    def _rows(self, table, tasks):
        frame = self.tables.uncalibrated(table)
        if self.measure is not None and "measure" in frame:
            frame = frame[frame["measure"] == self.measure]
        if "dataset" in frame and frame["dataset"].nunique() > 1 and not tasks:
            frame = frame[frame["dataset"] == self.tables.class_scores["dataset"].iloc[0]]
        return labelled(some(frame))

    def facts(self) -> dict[str, str]:
        """Texts by the names that titles and notes of charts have in braces."""
        scores = self.tables.class_scores
        facts = {"dataset": printable(scores["dataset"].iloc[0]), "fp_lambda": f"{self.fp_lambda:g}"}
        if self.measure is not None:
            facts |= {
                "measure": printable(self.measure),
                "measure_title": self.meaning.title,
                "unit": self.meaning.unit,
                "short_unit": self.meaning.unit.split(",")[0],
            }
        return facts


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A question about an audit, the data that answer it, how they are drawn, and the finding."""

    name: str
    """Name of its file; files of a chart of one measure are called <name>_<measure>."""

    title: str
    """What people call it."""

    question: str
    """What it answers."""

    section: Section
    """Where it stands on the page: which model, which class, how sure, can it be trusted, for whom, what would help,
    how it was done."""

    tables: tuple[str, ...]
    """Tables of an audit that it is made from."""

    about: Literal["measure", "score", "audit"] = "measure"
    """Whether there is one for every measure, for the measures that the audit is about, or one."""

    data: Callable[[Subject], pd.DataFrame]
    """Tidy frame of what is drawn: one row per mark, one column per quantity; NothingToDraw without anything for it.

    A column `n` holds samples; `model`, or the count `models`, says how many models rows are about."""

    draw: Callable[[pd.DataFrame, Axes], None] | Callable[[pd.DataFrame, Figure], None]
    """Draws the frame on axes, or with `panels` on an empty figure, by the helpers of gfscore.show.drawing.

    Titles of axes and of the scale of colours are formats of Subject.facts."""

    panels: bool = False
    """Whether `draw` takes a figure, on which it makes small panels."""

    cells: tuple[str, str, str] | None = None
    """Columns of the rows, columns and values of a heatmap whose cells answer the page's threshold and search."""

    rows: str | None = None
    """Column whose values are rows of a chart that may have very many, of which the first are printed."""

    finding: Callable[[pd.DataFrame], Finding]
    """What the frame says; every number in it is one of the frame, or counts or relates numbers of it."""

    sentences: Mapping[str, str] = field(default_factory=dict)
    """Sentences of kinds of findings that are its own (see gfscore.audit.findings.words.SENTENCES)."""

    shows: str
    """What marks are, in half a sentence; a format of Subject.facts."""

    note: str
    """How to read it, a format of Subject.facts and {confidence}."""

    as_failures: bool = False
    """Whether it is made of the smallest values that undecided samples allow; its title says so where there are any."""

    undecided: str = ""
    """How to read what undecided samples leave open; said where a `most` of the frame is above its `value`."""

    per_class: bool = False
    """Whether `n` are samples of a class."""

    order: float = math.inf
    """Place within its section; equal ones stand by name."""

    figure: bool = True
    """Whether it is among an audit's figures; others are drawn by the page alone."""

    @property
    def place(self) -> tuple[int, float, str]:
        """Sort key of charts: section, order, name."""
        return SECTIONS.index(self.section), self.order, self.name
