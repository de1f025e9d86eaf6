"""The page of a dashboard as text: template, style, scripts, charts and numbers in one file that asks no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gfscore.core.identity import UNCALIBRATED
from gfscore.show.dashboard.contents import page_contents
from gfscore.show.dashboard.packing import plain
from gfscore.show.dashboard.shared import shared_parts
from gfscore.show.dashboard.templates import environment, text_of
from gfscore.show.report import report_rows
from gfscore.show.report.comparison import sensitivity_views
from gfscore.show.report.under_attack import under_attack
from gfscore.show.words.measure_words import mean_scores_refuted_by_measure

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.audit_tables import AuditTables
    from gfscore.statistics.curves import ScoreCurves

SCRIPTS = (
    "numbers",
    "statistics",
    "data",
    "state",
    "drawing",
    "tables",
    "ranking",
    "classes",
    "model",
    "trust",
    "groups",
    "cells",
    "main",
)
"""Scripts of the page in the order that they need each other."""


def render_dashboard(
    tables: AuditTables,
    verdict: Mapping[str, Any],
    *,
    audit: str,
    title: str,
    measures: Mapping[str, Mapping[str, Any]],
    models: Iterable[Mapping[str, Any]],
    fp_lambda: float,
    provenance: Mapping[str, Mapping[str, Any]],
    summarised: str,
    sweeps: Mapping[str, ScoreCurves] | None = None,
    costs: pd.DataFrame | None = None,
    contact: str | None = None,
    shared: Mapping[str, Any] | None = None,
) -> str:
    """The page as text.

    Takes AuditTables, the contents of verdict.json, `audit` and `title`, its key and heading, `measures`, `models`,
    `fp_lambda`, `provenance` and `contact` as render_report does, `summarised`, the day of the class scores in
    words, `sweeps` and `costs` as page_contents does, and `shared`, what shared_parts returns, if it is made already.
    Every name is escaped.
    """
    shared = shared or shared_parts()
    contents = page_contents(
        tables, verdict, audit=audit, measures=measures, models=models, fp_lambda=fp_lambda, sweeps=sweeps, costs=costs
    )
    scores = tables.class_scores[tables.class_scores["calibration"] == UNCALIBRATED]
    return (
        environment()
        .get_template("dashboard.html")
        .render(
            audit=audit,
            title=title,
            dataset=scores["dataset"].iloc[0],
            models=len(contents["models"]),
            samples=_samples(scores),
            summarised=summarised,
            version=verdict["software"]["version"],
            measures=list(measures),
            kinds={settings["kind"] for settings in measures.values()},
            verdict=verdict["verdict"],
            rules=report_rows.judged_rules(verdict),
            sensitivity=sensitivity_views(tables.sensitivity, verdict["rules"]),
            refuted_scores=mean_scores_refuted_by_measure(tables.measures.get("falsification")),
            under_attack=under_attack(tables, verdict, measures),
            note=verdict["note"],
            excluded=verdict.get("excluded", []),
            warned=verdict.get("warned", []),
            label_errors=bool(scores["label_error_rate"].notna().any()),
            grouped=contents["groups"] is not None,
            projected=contents["projection"] is not None,
            provenance=provenance,
            contact=contact,
            bundle=shared["library"],
            style=text_of("dashboard.css"),
            script="".join(text_of(f"{name}.js") for name in SCRIPTS),
            charts=in_script(shared["charts"]),
            data=in_script(contents),
        )
    )


def in_script(value: Any) -> str:
    """JSON that can stand inside a script element: no name in it can end the element or open a comment."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _samples(scores):
    # Numbers of samples of one model and measure, which may take a part of them.
    totals = scores.groupby(["threat", "model", "measure"], sort=False)["n"].sum()
    per_class = scores["n"][scores["n"] > 0]
    return {
        "least": int(totals.min()),
        "total": int(totals.max()),
        "classes": int(scores["class_index"].nunique()),
        "fewest": int(per_class.min()),
        "most": int(per_class.max()),
    }
