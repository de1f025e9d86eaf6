"""The page of an audit as text: one self-contained file, readable without a server, a network or JavaScript."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.calibration.evidence import read_sweeps
from gfscore.audit.metrics import METRICS
from gfscore.audit.step_params import TrainedModel
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import WORST_CLASS, Verdict
from gfscore.core.names import printable
from gfscore.measures import NamedMeasure
from gfscore.projection.mappers.pictures import Pictures, read_all_pictures
from gfscore.show.charts.declaration import Subject
from gfscore.show.page import ranking
from gfscore.show.page.elements import ModelsAndClasses, packed, plain
from gfscore.show.page.first_screen import FirstScreen, first_screen
from gfscore.show.page.html import compressed, environment, style_and_script
from gfscore.show.page.provenance import provenance_of
from gfscore.show.page.sections import Contents, sections_of
from gfscore.show.page.sections.contents import drawn_charts
from gfscore.show.page.tracks import width_of
from gfscore.statistics.curves import ScoreCurves

VERBS = {
    "PASS": ("passes", "pass"),
    "FAIL": ("fails", "fail"),
    "INCONCLUSIVE": ("stays undecided", "stay undecided"),
}
"""Verdict -> what one model does, and what several do."""


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """What a page says besides the tables and the verdict of an audit.

    Parameters
    ----------
    title : str
        Heading of the page.
    measures : mapping of str to NamedMeasure
        Measures by name, in the audit's order.
    models : sequence of TrainedModel
        Models with their training method and architecture.
    fp_lambda : float
        Lambda of FP.
    published_samples : str, optional
        Samples on which published accuracies were measured.
    """

    title: str
    measures: Mapping[str, NamedMeasure]
    models: Sequence[TrainedModel]
    fp_lambda: float
    published_samples: str | None = None


def page_of_folder(
    folder: AuditFolder,
    settings: PageSettings,
    *,
    sweeps: Path | str | None = None,
    pictures: Iterable[Path | str] = (),
) -> str:
    """Read the files of an audit, and make the text of its page, report.html.

    The text depends on the files, the settings and the versions of the software alone.

    Parameters
    ----------
    folder : AuditFolder
        Tables and verdict of the audit.
    settings : PageSettings
    sweeps : path, optional
        File of the table `sweeps`: scores of each class over the temperature.
    pictures : iterable of path
        Files with pictures of the audit's mappers.

    Raises
    ------
    InputError
        For a file that is missing, damaged or of another audit.
    """
    return render_page(
        folder.tables(),
        folder.verdict(),
        settings,
        provenance=provenance_of(folder),
        sweeps=None if sweeps is None else read_sweeps(sweeps, audit=folder.audit),
        costs=folder.table("costs"),
        pictures=read_all_pictures(pictures),
    )


def render_page(
    tables: AuditTables,
    verdict: Verdict,
    settings: PageSettings,
    *,
    provenance: Mapping[str, Mapping[str, str]],
    sweeps: Mapping[str, ScoreCurves] | None = None,
    costs: pd.DataFrame | None = None,
    pictures: Mapping[str, Pictures] | None = None,
) -> str:
    """Make the text of a page from what has been read; every name in it is escaped.

    Parameters
    ----------
    tables : AuditTables
    verdict : Verdict
        With its findings.
    settings : PageSettings
    provenance : mapping
        Names and values by heading.
    sweeps : mapping of str to ScoreCurves, optional
        Scores of each class over the temperature, by model as "threat/model".
    costs : DataFrame, optional
        The audit's table `costs`: time and passes of each step.
    pictures : mapping, optional
        Arrays by name, of each of the audit's mappers.
    """
    measures = settings.measures
    index = ModelsAndClasses(tables.class_scores)
    screen = first_screen(tables, verdict, measures, index)
    subject = Subject(
        tables,
        measures,
        settings.fp_lambda,
        guessing=verdict.guessing,
        left_out=len(verdict.excluded),
        pictures=pictures or {},
    )
    charts, undrawn = drawn_charts(subject)

    judged = {(rule.measure, rule.statistic) for rule in verdict.rules}
    by_worst_class = (screen.measure, WORST_CLASS) in judged
    metrics_of_models = ranking.ranking_data(tables, index, measures, settings.fp_lambda)
    ranking_view = ranking.ranking_view(metrics_of_models, index, screen.measure, by_worst_class=by_worst_class)
    temperatures = ranking.temperature_grid(tables, sweeps, index)
    differences = {name: ranking.paired_differences(tables, name, index) for name in measures}
    pair_view = ranking.pair_view(differences[screen.measure], index, screen.chosen, screen.measure)

    contents = Contents(
        tables=tables,
        verdict=verdict,
        measures=measures,
        measure=screen.measure,
        models=settings.models,
        charts=charts,
        fp_lambda=settings.fp_lambda,
        provenance=provenance,
        costs=costs,
        published_samples=settings.published_samples,
        screen_sentences=[*screen.qualifications, *(finding.sentence for finding in screen.findings)],
        paired=pair_view is not None,
        undrawn=undrawn,
    )
    sections = sections_of(contents)

    packed_differences = {}
    for name, pairs in differences.items():
        packed_differences[name] = None if pairs is None else pairs.packed()
    data = {
        **_data_of_first_screen(screen, verdict, index),
        "ranking": metrics_of_models,
        "measure": screen.measure,
        "metric": ranking_view.metric,
        "metrics": _data_of_metrics(),
        "fp_lambda": settings.fp_lambda,
        "swaps": {name: ranking.swaps(tables, index, name) for name in measures},
        "temperatures": temperatures,
        "pairs": packed_differences,
        "cells": {chart.id: chart.cells for chart in charts if chart.cells},
        "values": {name: packed(index.grid(tables.of_measure("class_scores", name), "value")) for name in measures},
    }
    return (
        environment()
        .get_template("page.html")
        .render(
            **style_and_script(),
            screen=screen,
            ranking=ranking_view,
            metrics=list(METRICS.values()),
            temperatures=temperatures["temperatures"] if temperatures else None,
            undecided=[printable(name) for name in measures if tables.undecided(name)],
            pairs=pair_view,
            data=compressed(plain(data)),
            title=settings.title,
            sections=sections,
            ids={section.id for section in sections},
            fp_lambda=settings.fp_lambda,
            VERBS=VERBS,
            width_of=width_of,
        )
    )


# ---- what the page's script computes with: DATA in templates/*.js ----


def _data_of_first_screen(screen: FirstScreen, verdict: Verdict, index: ModelsAndClasses) -> dict[str, object]:
    evidence = []
    for rows in screen.evidence.rows:
        evidence.append([row.plain() for row in rows])
    strip = [row.plain() for row in screen.strip.rows]
    # Only a threshold of the worst class is one of class values.
    tau_of_classes = not verdict.rules or verdict.rules[0].statistic == WORST_CLASS
    return {
        "models": _names(index.labels, index.short),
        "classes": _names(index.classes, index.class_short),
        "evidence": {"scale": screen.evidence.scale.plain(), "rows": evidence},
        "strip": {"scale": screen.strip.scale.plain(), "rows": strip, "more_is_better": screen.strip.more_is_better},
        "same_scale": screen.evidence.judged_first,
        "painted": screen.measure if tau_of_classes else None,
        "chosen": screen.chosen,
    }


def _names(labels: Sequence[str], short: Sequence[str]) -> list[dict[str, str]]:
    return [{"label": label, "short": name} for label, name in zip(labels, short, strict=True)]


def _data_of_metrics() -> dict[str, object]:
    metrics: dict[str, object] = {}
    for metric in METRICS.values():
        metrics[metric.name] = {
            "title": metric.title,
            "better": metric.better,
            "direction": metric.direction,
            "unitless": metric.unitless,
            "lambda": "lam" in metric.needs,
        }
    return metrics
