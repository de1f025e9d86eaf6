"""The report of an audit: one self-contained page, readable without a server, a network or JavaScript."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.audit.metrics import AGAINST_CHANCE, MAIN, METRICS
from gfscore.core import numbers
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import printable
from gfscore.show.report import report_rows
from gfscore.show.report.calibration import calibration_view
from gfscore.show.report.comparison import comparison_views, sensitivity_views
from gfscore.show.report.environment import environment_of
from gfscore.show.report.errors import errors_views
from gfscore.show.report.groups import groups_view
from gfscore.show.report.measures import measures_view
from gfscore.show.report.projection import projection_view
from gfscore.show.report.similarities import similarity_views
from gfscore.show.report.source_claims import CALIBRATION, refuted_here
from gfscore.show.report.svg import inline_figure
from gfscore.show.report.under_attack import under_attack
from gfscore.show.words.measure_words import mean_scores_refuted_by_measure
from gfscore.statistics.ranking import EXACT_UP_TO
from gfscore.statistics.scale import SCALE
from gfscore.statistics.sign_flips import ENOUGH

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

TEMPLATES = Path(__file__).parent / "templates"
LONG_WORD = 22


def render_report(
    tables: AuditTables,
    verdict: Mapping[str, Any],
    figures: Mapping[str, str],
    *,
    title: str,
    measures: Mapping[str, Mapping[str, Any]],
    models: Collection[Mapping[str, Any]],
    published_samples: str | None = None,
    fp_lambda: float,
    provenance: Mapping[str, Mapping[str, Any]],
    contact: str | None = None,
) -> str:
    """The page as text.

    Takes AuditTables, the contents of verdict.json, and `figures`, SVG texts by name, as Drawing.name says.
    `title` heads the page; `measures` maps each measure to its settings, the audit's order; `models` are mappings with
    dataset, threat, model and, where known, method (or training.method), architecture and source; `published_samples`
    says on which samples of the dataset published accuracies were measured, "full", "subset" or None for neither;
    `fp_lambda` is lambda of FP; `provenance` maps headings to mappings of names to values (digests, versions);
    `contact` is who answers questions. Every name is escaped.
    """
    drawn = {name: inline_figure(svg, prefix=f"f{index}-") for index, (name, svg) in enumerate(figures.items())}
    headline = report_rows.headline_of(measures)
    rules = {measure: [rule for rule in verdict["rules"] if rule["measure"] == measure] for measure in measures}
    # The ranking that a reader sees first says how each model fares under every rule of the gate.
    rules[headline] = verdict["rules"]
    order = [headline, *(measure for measure in measures if measure != headline)]
    views = [
        report_rows.measure_view(
            tables, measure, measures[measure], models=models, verdicts=report_rows.verdicts_of(rules[measure])
        )
        for measure in order
    ]
    sensitivity = sensitivity_views(tables.sensitivity, verdict["rules"])
    kinds = {settings["kind"] for settings in measures.values()}
    class_errors = errors_views(tables, order)
    groups = groups_view(tables, {name: measures[name] for name in order})
    projection = projection_view(tables)
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title,
            published_samples=published_samples,
            verdict=verdict["verdict"],
            rules=report_rows.judged_rules(verdict),
            note=verdict["note"],
            excluded=verdict.get("excluded", []),
            warned=verdict.get("warned", []),
            kinds=kinds,
            views=views,
            figures=drawn,
            samples=_samples(tables.class_scores),
            dataset=tables.class_scores["dataset"].iloc[0],
            calibration=calibration_view(tables),
            sensitivity=sensitivity,
            comparisons=comparison_views(
                tables, {name: measures[name] for name in order}, lam=fp_lambda, guessing=verdict.get("guessing", [])
            ),
            class_errors=class_errors,
            similarities=similarity_views(tables, order),
            measured_together=measures_view(tables, measures),
            refuted_scores=mean_scores_refuted_by_measure(tables.measures.get("falsification")),
            under_attack=under_attack(tables, verdict, measures),
            groups=groups,
            projection=projection,
            refuted_claims=refuted_here(kinds, errors=class_errors, groups=groups, projection=projection),
            refuted_calibration=CALIBRATION,
            label_errors=_label_errors(tables.class_scores),
            agreements=report_rows.agreement_rows(views),
            against_robust=report_rows.against_robust_accuracy(views),
            fp_lambda=fp_lambda,
            metrics=list(METRICS.values()),
            main_metrics=MAIN,
            against_chance=AGAINST_CHANCE,
            provenance=provenance,
            contact=contact,
            scale=SCALE,
            exact_up_to=EXACT_UP_TO,
            enough_flips=ENOUGH,
        )
    )


def _environment():
    environment = environment_of(TEMPLATES)
    environment.filters |= {"breakable": _breakable, "source": _source}
    return environment


def _source(name):
    # Where a robust accuracy comes from, as it reads behind a colon.
    return "as published" if name == "published" else printable(name)


def _breakable(name):
    # Name that may break after its separators; only where a piece is too long, anywhere.
    from markupsafe import Markup, escape

    pieces = re.split(r"(?<=[_/.\- ])", printable(name))
    text = Markup("<wbr>").join(escape(piece) for piece in pieces)
    return Markup('<span class="long">{}</span>').format(text) if max(map(len, pieces)) > LONG_WORD else text


def _samples(scores):
    # Samples of each class. Values that were computed elsewhere may cover other samples in each model.
    n = scores[scores["calibration"] == UNCALIBRATED]
    totals = n.groupby(["threat", "model", "measure"], sort=False)["n"].sum()
    names = n.drop_duplicates("class_index").sort_values("class_index")
    absent = set(n["class_index"][n["n"] == 0])
    return {
        "total": _span(totals),
        "per_class": _span(n["n"][n["n"] > 0]),
        "varied": totals.min() < totals.max(),
        "classes": len(names),
        "absent": [row.class_name for row in names.itertuples() if row.class_index in absent],
    }


def _span(counts):
    low, high = counts.min(), counts.max()
    return numbers.count(low) if low == high else f"{numbers.count(low)} to {numbers.count(high)}"


def _label_errors(scores):
    # Smallest and largest rate of wrong labels that the bounds allow for; None when labels are assumed right.
    rates = scores["label_error_rate"].dropna()
    return (float(rates.min()), float(rates.max())) if len(rates) else None
