"""What the sections of a page are made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels
from gfscore.show.audit_charts import UndrawnChart
from gfscore.show.page.charts import DrawnChart
from gfscore.show.page.tables import Column, Detail, table_of


@dataclass(frozen=True)
class Contents:
    """What sections are made from."""

    tables: AuditTables
    verdict: Verdict
    measures: Mapping[str, Mapping[str, Any]]
    measure: str
    models: Sequence[Mapping[str, Any]]
    charts: Sequence[DrawnChart]
    fp_lambda: float
    provenance: Mapping[str, Mapping[str, Any]]
    costs: pd.DataFrame | None
    contact: str | None
    published_samples: str | None
    shown: Sequence[str]
    """Sentences of the first screen, which no section repeats."""
    paired: bool = False
    undrawn: Sequence[UndrawnChart] = ()

    def of(self, name: str) -> pd.DataFrame | None:
        """Rows of a table at T = 1, with the names of their models as `label` and of their classes as `class`."""
        frame = getattr(self.tables, name, None)
        frame = self.tables.measures.get(name) if frame is None else frame
        if frame is None or frame.empty:
            return None
        if "calibration" in frame:
            frame = frame[frame["calibration"] == UNCALIBRATED]
        if {"dataset", "threat", "model"} <= set(frame) and frame["model"].notna().all():
            # Models of tasks have the names of those of the dataset.
            frame = frame.assign(label=model_labels(frame.assign(dataset="")))
        if {"class_index", "class_name"} <= set(frame):
            names = list(frame["class_name"].fillna("").unique())
            readable = dict(zip(names, readable_classes(names), strict=True))
            frame = frame.assign(**{"class": frame["class_name"].fillna("").map(readable)})
        return frame.reset_index(drop=True)

    def own(self, name: str) -> Any:
        """Rows of a table of the measure that the page is about; None where the audit has no such table."""
        frame = self.of(name)
        return None if frame is None else frame[frame["measure"] == self.measure]

    def listed(
        self, summary: str, frame: pd.DataFrame | None, name: str, title: str, columns: Iterable[Column], **how: Any
    ) -> Detail | None:
        """Rows of the table `name` in closed details, None where there are none; `text`, and what table_of takes."""
        text = how.pop("text", [])
        return None if frame is None else Detail(summary, text, table=table_of(frame, title, name, columns, **how))
