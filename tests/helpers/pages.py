"""Pages of synthetic audits, and the way a reader uses them."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.findings import with_findings
from gfscore.show.page.report import render_page
from gfscore.statistics.curves import ScoreCurves, chebyshev_points
from gfscore.tables.parquet_tables import typed_frame
from gfscore.workflow.catalogue import CATALOGUE
from helpers.synthetic_audits import ADVERSARIAL, ATTACKED, grouped_tables, remedied, synthetic_audit

LOW, HIGH, POINTS = 0.01, 10.0, 33

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".tracks th, .tracks .num, .axis text, figcaption, .plot text")]
    .filter((node) => node.checkVisibility() && node.textContent.trim() && !node.closest(".tall") && !node.closest(".unit"))
    .map((node) => ({ text: node.textContent.trim().slice(0, 30), box: node.getBoundingClientRect(), node, line: line(node) }));
  // Angle of a slanted text, and how far its line is from the origin; boxes of slanted texts overlap where they do not.
  function line(node) {
    const place = node.getScreenCTM?.(), angle = place ? Math.atan2(place.b, place.a) : 0;
    return { angle, offset: place ? place.f * Math.cos(angle) - place.e * Math.sin(angle) : 0 };
  }
  const faults = [];
  for (const { text, box, node } of boxes) {
    if (box.left < -1 || box.right > innerWidth + 1) faults.push(`outside: ${text}`);
    if (node.tagName === "TH" && node.scrollWidth > node.clientWidth + 1) faults.push(`cut: ${text}`);
  }
  for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < boxes.length; j += 1) {
    const [a, b] = [boxes[i].box, boxes[j].box], [own, other] = [boxes[i].line, boxes[j].line];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const apart = own.angle && own.angle === other.angle && Math.abs(own.offset - other.offset) > 8;
    if (wide > 2 && high > 4 && !apart && !boxes[i].node.contains(boxes[j].node)) faults.push(`${boxes[i].text} on ${boxes[j].text}`);
  }
  return faults;
}"""
"""Script that lists texts that lie on others, are cut or outside of the window."""


def audit_for_page(*, grouped=False, with_remedy=None, **settings):
    """Synthetic audit with its AuditTables, sweeps of a score that falls with T, and everything else a page shows.

    `grouped` adds tables about groups and projections, those of grouped_tables; `with_remedy`, settings of remedied,
    tables of a remedy of the first model.
    """
    audit = synthetic_audit(**settings)
    scores = audit.of("class_scores")
    sweeps = {}
    for (threat, model), rows in scores.groupby(["threat", "model"], sort=False):
        t = chebyshev_points(POINTS, LOW, HIGH)[:, None]
        values = rows["value"].to_numpy() * np.exp(-0.2 * np.log(t) * (1 + 0.3 * np.sin(np.arange(len(rows)))))
        sweeps[f"{threat}/{model}"] = ScoreCurves(t[:, 0], values, rows["n"].to_numpy())
    tables = AuditTables(
        audit.class_scores,
        audit.model_summary,
        audit.vulnerability,
        {"sensitivity": audit.sensitivity, "confusions": _confusions(audit, scores)}
        | ({} if audit.calibration is None else {"calibration": audit.calibration})
        | {"falsification": _falsification(scores)}
        | _compared(audit, scores)
        | (grouped_tables(audit) if grouped else {})
        | ({} if with_remedy is None else _with_remedy(audit, with_remedy)),
        audit.calibration_results,
    )
    return SimpleNamespace(audit=audit, tables=tables, sweeps=sweeps)


def _with_remedy(audit, settings):
    audit.measures[ATTACKED] = ADVERSARIAL
    class_names = audit.class_scores.drop_duplicates("class_index")["class_name"]
    return remedied([audit.models[0]["model"]], list(class_names), **settings)


def page_of(made, **changes):
    """The page of what audit_for_page returned."""
    return render_page(
        made.tables,
        with_findings(made.audit.verdict, made.tables, made.audit.named),
        made.audit.page_settings(**changes),
        provenance={"Data and versions": {"audit": "synthetic"}},
        sweeps=made.sweeps if made.audit.calibration_results else None,
        costs=_costs(made.audit),
    )


def _compared(audit, scores):
    # The differences of the first two models, the first class significant.
    if len(audit.models) < 2:
        return {}
    (first, second), rows = audit.models[:2], [part for _, part in scores.groupby("model", sort=False)][:2]
    pair = {"dataset": "toy", "measure": scores["measure"].iloc[0], "first_threat": "none", "second_threat": "none"}
    pair |= {"first_model": first["model"], "second_model": second["model"], "confidence": 0.95, "n": 1}
    differences = rows[0]["value"].to_numpy() - rows[1]["value"].to_numpy()
    per_class = [
        pair
        | {"class_index": index, "class_name": name, "difference": value, "low": value - 0.1, "high": value + 0.1}
        | {"p_holm": 0.01 if index == 0 else 1.0}
        for index, name, value in zip(rows[0]["class_index"], rows[0]["class_name"], differences, strict=True)
    ]
    counts = {"classes": 1, "wins_first": 0, "wins_second": 0, "sure_wins_first": 0, "sure_wins_second": 0}
    overall = [pair | counts | {"difference": differences.mean(), "low": -1.0, "high": 1.0, "p_holm": 1.0}]
    swap = {"dataset": "toy", "measure": pair["measure"], "fp_lambda": 0.25, "before_threat": "none"}
    swap |= {"before_model": first["model"], "after_threat": "none", "after_model": second["model"]}
    return {
        "comparisons": typed_frame(CATALOGUE["comparisons"], per_class),
        "model_comparisons": typed_frame(CATALOGUE["model_comparisons"], overall),
        "lambda_swaps": typed_frame(CATALOGUE["lambda_swaps"], [swap]),
    }


def _confusions(audit, scores):
    classes = scores["class_index"].nunique()
    rows = [
        {**model, "measure": "clean", "true_index": index, "predicted_index": (index + step) % classes, "count": count}
        for model in audit.models
        for index in range(classes)
        for step, count in ((0, 30), (1, 5 + index))
    ]
    kept = ("dataset", "threat", "model", "measure", "true_index", "predicted_index", "count")
    return typed_frame(CATALOGUE["confusions"], [{name: row[name] for name in kept} for row in rows])


def _falsification(scores):
    rows = []
    for (threat, model), part in scores.groupby(["threat", "model"], sort=False):
        found = {"rate": 0.25, "low": 0.2, "high": 0.3, "correct": 100, "violations": 25, "n": 120, "censored": 0}
        about = {"dataset": "toy", "threat": threat, "model": model, "measure": part["measure"].iloc[0]}
        mean = {"mean_score": part["value"].mean(), "mean_distance": 0.4, "class_index": -1, "class_name": "all"}
        mean |= {"p_mean": 0.001 if mean["mean_score"] > 0.4 else 1.0, "confidence": 0.95}
        rows.append(about | found | mean | {"calibration": "none", "temperature": 1.0, "distances": "minimal-l2"})
    return typed_frame(CATALOGUE["falsification"], rows)


def _costs(audit):
    rows = [
        {
            **{key: model[key] for key in ("dataset", "threat", "model")},
            "step": step,
            "measure": measure,
            "wall_s": wall,
            "forwards": forwards,
            "backwards": None if forwards is None else 0,
        }
        for model in audit.models
        for step, measure, wall, forwards in (
            ("extract_logits", None, 3.0, 1200),
            ("score_models", "great-softmax", 1.0, 0),
            ("import_samples", "certified-l2", 0.0, None),
        )
    ]
    return typed_frame(CATALOGUE["costs"], rows)


@contextmanager
def opened(browser, path, *, fragment="", width=1280, height=800, **settings):
    """A page in a fresh window without a network; fails on any request, console message or error."""
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **settings)
    page, faults = context.new_page(), []
    page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "blob:", "data:")) or faults.append(request.url)
    )
    page.goto(f"file://{path}{fragment}")
    if settings.get("java_script_enabled", True):
        page.wait_for_selector("html[data-ready=yes]", state="attached")
    yield page
    context.close()
    assert not faults, faults


def rows_of(page, host):
    """Rows of tracks as they stand in the page: a list of pairs of a name and a number, both texts."""
    return page.evaluate(
        """(host) => [...document.querySelectorAll(`#${host} .tracks tbody tr`)].map((row) =>
             [(row.querySelector("button") ?? row.cells[0]).textContent.trim(), row.cells[2].textContent.trim()])""",
        host,
    )
