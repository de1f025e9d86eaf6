"""The page of an audit, drawn from the files that it is made of."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gfscore.audit.calibration.evidence import read_sweeps
from gfscore.audit.findings.finding import first_findings
from gfscore.audit.metrics import METRICS
from gfscore.audit.tables import TABLES, AuditTables, read_audit_tables
from gfscore.audit.verdicts.findings import qualifying_sentences
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.names import printable
from gfscore.core.numbers import count, setting
from gfscore.projection.mappers.pictures import read_all_pictures
from gfscore.show.charts.declaration import Subject
from gfscore.show.page import first_screen, provenance, ranking
from gfscore.show.page.elements import ModelsAndClasses, Track, packed, plain
from gfscore.show.page.sections import QUESTIONS, Contents, sections_of
from gfscore.show.page.sections.contents import drawn_charts
from gfscore.statistics.curves import ScoreCurves
from gfscore.tables.parquet_tables import read_table


def drawn_page(files: Mapping[str, Any], *, audit: str, **settings: Any) -> str:
    """Text of report.html; equal files, settings and versions of the software give an equal text.

    `files` maps the tables of an audit, verdict and, where there are any, sweeps, costs and the mappers' pictures to
    paths; the settings are those of render_page.
    """
    return render_page(
        read_audit_tables({name: path for name, path in files.items() if name != "costs"}, audit=audit),
        read_verdict(files["verdict"]),
        provenance=provenance.provenance_of(files),
        sweeps=read_sweeps(files["sweeps"], audit=audit) if files.get("sweeps") else None,
        costs=read_table(files["costs"], TABLES["costs"], expect={"audit": audit}) if files.get("costs") else None,
        pictures=read_all_pictures(files.get("pictures") or ()),
        **settings,
    )


TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("numbers.js", "data.js", "tracks.js", "controls.js", "charts.js", "main.js")
GLYPHS = {"PASS": "✓", "FAIL": "×", "INCONCLUSIVE": "?"}
"""Verdict -> the sign that repeats what its colour says."""

VERBS = {
    "PASS": ("passes", "pass"),
    "FAIL": ("fails", "fail"),
    "INCONCLUSIVE": ("stays undecided", "stay undecided"),
}
"""Verdict -> what one model does, and what several do."""

FINDINGS, ROOMY = 3, 10
"""Number of findings on the first screen; largest number of tracks that are drawn with space between them."""


def render_page(
    tables: AuditTables,
    verdict: Verdict,
    *,
    title: str,
    measures: Mapping[str, Mapping[str, Any]],
    models: Collection[Mapping[str, Any]],
    fp_lambda: float,
    provenance: Mapping[str, Mapping[str, Any]],
    published_samples: str | None = None,
    contact: str | None = None,
    sweeps: Mapping[str, ScoreCurves] | None = None,
    costs: pd.DataFrame | None = None,
    pictures: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """The page as text; every name is escaped.

    Takes AuditTables and the verdict with its findings. `title` heads the page; `measures` maps each measure to its
    settings, in the audit's order; `models` are mappings with dataset, threat, model and, where known, method (or
    training.method), architecture and source; `fp_lambda` is lambda of FP; `provenance` maps headings to mappings of
    names to values; `published_samples` on which samples published accuracies were measured;
    `contact` who answers questions; `sweeps` are ScoreCurves by "threat/model"; `costs` the table of that name;
    `pictures` arrays of the audit's mappers, by mapper.
    """
    index = ModelsAndClasses(tables.class_scores)
    first = _first_screen(tables, verdict, measures, index)
    charts, undrawn = drawn_charts(
        Subject(tables, measures, fp_lambda, guessing=verdict.guessing, pictures=pictures or {})
    )
    cells = {chart.id: chart.cells for chart in charts if chart.cells}
    compared = _compared(tables, verdict, measures, index, first, fp_lambda=fp_lambda, sweeps=sweeps, cells=cells)
    contents = Contents(
        tables, verdict, measures, first["measure"], list(models), charts, fp_lambda, provenance, costs, contact,
        published_samples, shown=[*first["beside"], *(finding.sentence for finding in first["findings"])],
        paired=compared["pairs"] is not None, undrawn=undrawn,
    )  # fmt: skip
    sections = sections_of(contents)
    return (
        environment()
        .get_template("page.html")
        .render(
            **first,
            **compared,
            **_scripts(),
            title=title,
            sections=sections,
            ids={section.id for section in sections},
            questions=QUESTIONS,
            fp_lambda=fp_lambda,
            VERBS=VERBS,
            width_of=width_of,
        )
    )


def _first_screen(tables, verdict, measures, index):
    # What the template writes at the top of the page.
    measure, shown = verdict.judged_measure(measures), verdict.shown_model
    said = qualifying_sentences(verdict.findings)
    others = [finding for finding in verdict.findings if finding.sentence not in said]
    return {
        "measure": measure,
        "chosen": index.position.get(shown, 0) if shown else 0,
        "labels": index.labels,
        "classes": index.classes,
        "facts": first_screen.facts(tables, index, verdict, measure),
        "judged": provenance,
        "said_of": verdict,
        "verdict": first_screen.verdict_view(verdict, index, measures),
        "beside": said,
        "remarks": provenance.remarks_of(verdict),
        "evidence": first_screen.evidence_by_class(tables, verdict, measures, index),
        "strip": first_screen.strip_of_models(tables, verdict, measures, index),
        "findings": first_findings(others, FINDINGS),
    }


def _compared(tables, verdict, measures, index, first, *, fp_lambda, sweeps, cells):
    # Ranking and pairs as the template writes them, and the numbers from which the page's script makes others.
    measure, picture, strip = first["measure"], first["evidence"], first["strip"]
    ranked = ranking.ranking_data(tables, index, measures, fp_lambda)
    judged_worst = any(rule.measure == measure and rule.statistic == "wcr" for rule in verdict.rules)
    view = ranking.ranking_view(ranked, index, measure, judged_worst)
    temperatures = ranking.temperature_grid(tables, sweeps, index)
    pairs = {name: ranking.paired_differences(tables, name, index) for name in measures}
    data = {
        "models": _names(index.labels, index.short),
        "classes": _names(index.classes, index.class_short),
        "evidence": {"scale": picture.scale.plain(), "rows": [[row.plain() for row in rows] for rows in picture.rows]},
        "strip": {"scale": strip.scale.plain(), "rows": [row.plain() for row in strip.rows]},
        "same_scale": bool(verdict.rules) and picture.scale.threshold is not None,
        # What the strip's threshold is about: class values of one measure, or a number of another kind.
        "painted": measure if judged_worst or not verdict.rules else None,
        "chosen": first["chosen"],
        "ranking": ranked,
        "measure": measure,
        "metric": view["metric"],
        "metrics": {
            metric.name: {
                "title": metric.title,
                "better": metric.better,
                "direction": metric.direction,
                "lambda": "lam" in metric.needs,
            }
            for metric in METRICS.values()
        },
        "fp_lambda": fp_lambda,
        "swaps": {name: ranking.swaps(tables, index, name) for name in measures},
        "temperatures": temperatures,
        "pairs": {name: found and _packed_pairs(found) for name, found in pairs.items()},
        "cells": cells,
        "values": {name: packed(index.grid(tables.of("class_scores", name), "value")) for name in measures},
    }
    return {
        "ranking": view,
        "metrics": list(METRICS.values()),
        "temperatures": temperatures["temperatures"] if temperatures else None,
        "pairs": ranking.pair_view(pairs[measure], index, first["chosen"], measure),
        "data": compressed(plain(data)),
    }


def _names(whole, short):
    return [{"label": label, "short": shortened} for label, shortened in zip(whole, short, strict=True)]


def _scripts():
    # Style and scripts.
    script = "\n".join(["(() => {", '"use strict";', *map(text_of, SCRIPTS), "})();"])
    return {
        "style": text_of("page.css"),
        "script": script,
        "policy": policy_of(script),
    }


def width_of(rows: Sequence[Track]) -> str:
    """Classes of a table of tracks: room for its longest name, and between few rows."""
    longest = max((len(row.short) for row in rows), default=0)
    size = next((limit for limit in (4, 8, 12) if longest <= limit), 17)
    return f"names-{size}{' roomy' if len(rows) <= ROOMY else ''}"


def _packed_pairs(found):
    arrays = {name: packed(found[name]) for name in ("difference", "low", "high", "overall")}
    return {"pairs": found["pairs"], "confidence": found["confidence"], **arrays}


def policy_of(*scripts: str) -> str:
    """Content security policy under which these scripts run, and nothing else; no request is allowed."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts if script]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def compressed(value: Any) -> str:
    """JSON of a value as compressed_text writes it."""
    return compressed_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def compressed_text(text: str) -> str:
    """Text as base64 of gzip, the same on every run; nothing in it can end a script element."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


@cache
def environment() -> Environment:
    """Jinja environment of the page; every name is escaped."""
    result = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters |= {"printable": printable, "count": count, "setting": setting, "glyph": GLYPHS.get}
    return result


def text_of(name: str) -> str:
    """Text of a file beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")
