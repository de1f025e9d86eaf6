"""The page of an audit as text: one self-contained file, readable without a server, a network or JavaScript."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.calibration.evidence import read_sweeps
from gfscore.audit.metrics import METRICS
from gfscore.audit.settings import TrainedModel
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import Verdict
from gfscore.measures import NamedMeasure
from gfscore.projection.mappers.pictures import Pictures, read_all_pictures
from gfscore.show.charts.declaration import Subject
from gfscore.show.page import ranking
from gfscore.show.page.elements import ModelsAndClasses, packed, plain
from gfscore.show.page.first_screen import WORST_CLASS, FirstScreen, first_screen
from gfscore.show.page.html import compressed, environment, style_and_script, width_of
from gfscore.show.page.provenance import provenance_of
from gfscore.show.page.sections import QUESTIONS, Contents, sections_of
from gfscore.show.page.sections.contents import drawn_charts
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


def drawn_page(
    folder: AuditFolder,
    settings: PageSettings,
    *,
    sweeps: Path | str | None = None,
    pictures: Iterable[Path | str] = (),
) -> str:
    """Text of report.html; equal files, settings and versions of the software give an equal text.

    Parameters
    ----------
    folder : AuditFolder
        Tables and verdict of the audit.
    settings : PageSettings
    sweeps : path, optional
        Table of that name, with the scores over the temperature.
    pictures : iterable of path
        Pictures of the audit's mappers.

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
    """The page as text; every name is escaped.

    Parameters
    ----------
    tables : AuditTables
    verdict : Verdict
        With its findings.
    settings : PageSettings
    provenance : mapping
        Names and values by heading.
    sweeps : mapping of str to ScoreCurves, optional
        By "threat/model".
    costs : DataFrame, optional
        The table of that name.
    pictures : mapping, optional
        Arrays of the audit's mappers, by mapper.
    """
    measures = settings.measures
    index = ModelsAndClasses(tables.class_scores)
    screen = first_screen(tables, verdict, measures, index)
    subject = Subject(tables, measures, settings.fp_lambda, guessing=verdict.guessing, pictures=pictures or {})
    charts, undrawn = drawn_charts(subject)

    judged = {(rule.measure, rule.statistic) for rule in verdict.rules}
    by_worst_class = (screen.measure, WORST_CLASS) in judged
    metrics = ranking.ranking_data(tables, index, measures, settings.fp_lambda)
    ranked = ranking.ranking_view(metrics, index, screen.measure, by_worst_class=by_worst_class)
    temperatures = ranking.temperature_grid(tables, sweeps, index)
    differences = {name: ranking.paired_differences(tables, name, index) for name in measures}
    pairs = ranking.pair_view(differences[screen.measure], index, screen.chosen, screen.measure)

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
        paired=pairs is not None,
        undrawn=undrawn,
    )
    sections = sections_of(contents)

    packed_differences = {}
    for measure, pairs_of_measure in differences.items():
        packed_differences[measure] = None if pairs_of_measure is None else pairs_of_measure.packed()
    data = _data_of_screen(screen, verdict, index)
    data["painted"] = screen.measure if by_worst_class or not verdict.rules else None
    data["chosen"] = screen.chosen
    data["ranking"] = metrics
    data["measure"] = screen.measure
    data["metric"] = ranked.metric
    data["metrics"] = _metrics()
    data["fp_lambda"] = settings.fp_lambda
    data["swaps"] = {name: ranking.swaps(tables, index, name) for name in measures}
    data["temperatures"] = temperatures
    data["pairs"] = packed_differences
    data["cells"] = {chart.id: chart.cells for chart in charts if chart.cells}
    data["values"] = {name: packed(index.grid(tables.of("class_scores", name), "value")) for name in measures}
    return (
        environment()
        .get_template("page.html")
        .render(
            **vars(screen),
            **style_and_script(),
            ranking=ranked,
            metrics=list(METRICS.values()),
            temperatures=temperatures["temperatures"] if temperatures else None,
            pairs=pairs,
            data=compressed(plain(data)),
            title=settings.title,
            sections=sections,
            ids={section.id for section in sections},
            questions=QUESTIONS,
            fp_lambda=settings.fp_lambda,
            VERBS=VERBS,
            width_of=width_of,
        )
    )


# ---- numbers from which the page's script makes others ----


def _data_of_screen(screen: FirstScreen, verdict: Verdict, index: ModelsAndClasses) -> dict[str, object]:
    evidence = []
    for rows in screen.evidence.rows:
        evidence.append([row.plain() for row in rows])
    strip = [row.plain() for row in screen.strip.rows]
    return {
        "models": _names(index.labels, index.short),
        "classes": _names(index.classes, index.class_short),
        "evidence": {"scale": screen.evidence.scale.plain(), "rows": evidence},
        "strip": {"scale": screen.strip.scale.plain(), "rows": strip},
        "same_scale": bool(verdict.rules) and screen.evidence.scale.threshold is not None,
    }


def _names(labels: Sequence[str], short: Sequence[str]) -> list[dict[str, str]]:
    return [{"label": label, "short": name} for label, name in zip(labels, short, strict=True)]


def _metrics() -> Mapping[str, object]:
    result = {}
    for metric in METRICS.values():
        result[metric.name] = {
            "title": metric.title,
            "better": metric.better,
            "direction": metric.direction,
            "lambda": "lam" in metric.needs,
        }
    return result
