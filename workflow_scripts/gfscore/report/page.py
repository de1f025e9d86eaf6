"""The report of an audit: one self-contained page, readable without a server, a network or JavaScript."""

import re
from pathlib import Path

from gfscore import numbers
from gfscore.comparison.ranking import EXACT_UP_TO, exact_p_value
from gfscore.names import enumeration, printable
from gfscore.report import report_rows, takeaways
from gfscore.report.comparison import comparison_views, sensitivity_views
from gfscore.report.errors import errors_views
from gfscore.report.groups import groups_view
from gfscore.report.measures import measures_view
from gfscore.report.projection import projection_view
from gfscore.report.svg import inline_figure
from gfscore.scores.margins import SCALE

TEMPLATES = Path(__file__).parent / "templates"
LONG_WORD = 22


def render_report(tables, verdict, figures, *, title, measures, models, fp_lambda, provenance, contact=None):
    """The page as text.

    Takes AuditTables, the contents of verdict.json, and `figures`, SVG texts by name as figures_of_audit names them.
    `title` heads the page; `measures` maps each measure to its settings, the audit's order; `models` are mappings with
    dataset, threat, model and, where known, method (or training.method), architecture and source; `fp_lambda` is
    lambda of FP; `provenance` maps headings to mappings of names to values (digests, versions); `contact` is who
    answers questions. Every name is escaped.
    """
    drawn = {name: inline_figure(svg, prefix=f"f{index}-") for index, (name, svg) in enumerate(figures.items())}
    headline = _headline(measures)
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
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title,
            verdict=verdict["verdict"],
            rules=report_rows.judged_rules(verdict),
            note=verdict["note"],
            excluded=verdict.get("excluded", []),
            kinds={settings["kind"] for settings in measures.values()},
            views=views,
            figures=drawn,
            samples=_samples(tables.class_scores),
            dataset=tables.class_scores["dataset"].iloc[0],
            calibration=_calibration(tables),
            sensitivity=sensitivity,
            comparisons=comparison_views(tables, {name: measures[name] for name in order}, lam=fp_lambda),
            class_errors=errors_views(tables, order),
            measured_together=measures_view(tables, measures),
            groups=groups_view(tables, {name: measures[name] for name in order}),
            projection=projection_view(tables),
            label_errors=_label_errors(tables.class_scores),
            agreements=report_rows.agreement_rows(views),
            fp_lambda=fp_lambda,
            provenance=provenance,
            contact=contact,
            scale=SCALE,
            exact_up_to=EXACT_UP_TO,
        )
    )


def _headline(measures):
    # The measure that the page puts first: robustness before accuracy, the attack-free score before all.
    kinds = [settings["kind"] for settings in measures.values()]
    first = next((kind for kind in ("great", "certified") if kind in kinds), kinds[0])
    return next(measure for measure, settings in measures.items() if settings["kind"] == first)


def _environment():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(numbers, name)
        for name in (
            "number",
            "signed",
            "count",
            "setting",
            "percent",
            "p_value",
            "temperature",
            "end_of_range",
            "lower_bound",
            "upper_bound",
        )
    }
    environment.globals["interval"] = numbers.interval
    environment.filters |= {"printable": printable, "breakable": _breakable, "source": _source}
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
    n = scores[scores["calibration"] == "none"]
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


def _calibration(tables):
    results = tables.calibration_results
    if not results:
        return None
    rows = report_rows.calibration_rows(results)
    measure = rows[0]["measure"]
    models = len(tables.of("model_summary", measure))
    return {
        "measure": measure,
        "models": models,
        "rows": rows,
        "distances": any(row["distance"] for row in rows),
        "warnings": _warnings(rows, models),
        "uncertainty": report_rows.calibration_uncertainty(results),
        "rankings": {
            row["title"]: report_rows.calibrated_ranking(tables, measure, row["name"])
            for row in rows
            if row["t_star"] is not None or row["own"]
        },
        "errors": {row["title"]: report_rows.calibration_errors(row) for row in rows if row["class_calibration_error"]},
    }


def _warnings(rows, models):
    # Plain words about every reason not to believe a calibrated score.
    edges = [row["title"] for row in rows if row["edge"]]
    warnings = []
    if edges:
        warnings.append(
            f"Optimum at the end of the search ({enumeration(edges)}): the search range, not the data alone, decides "
            f"where the optimum lies. As T goes to 0 a softmax score becomes {SCALE:.4f} times the clean accuracy, so "
            "agreement with accuracy can always be bought by forgetting the margin."
        )
    warnings += _no_better(rows, "robust", "alone", "robust accuracy")
    warnings += _no_better(rows, "distance", "alone_distance", "attack distance")
    if models < report_rows.FEW_MODELS:
        warnings.append(_few_models(models))
    return warnings


def _no_better(rows, agreement, baseline, against):
    # Objectives that agree with `against` no better than clean accuracy alone does, or worse than the score at T = 1.
    known = [row for row in rows if row[agreement].get("after") is not None]
    beaten = [row for row in known if row[baseline] is not None and row[baseline] >= row[agreement]["after"]]
    lowered = [
        row["title"]
        for row in known
        if row[agreement].get("before") is not None and row[agreement]["after"] < row[agreement]["before"]
    ]
    if beaten:
        # Every objective has the same baseline.
        alone = beaten[0][baseline]
        # Where nothing agrees, an objective that agrees a little less badly than accuracy is no exception.
        against_all = [row for row in known if row[agreement]["after"] <= 0] if alone <= 0 else beaten
        titles = enumeration([row["title"] for row in against_all])
        if alone <= 0:
            yield (
                f"Neither clean accuracy alone (Spearman {numbers.signed(alone)}) nor the score calibrated by {titles} "
                f"ranks the models like {against}."
            )
        else:
            yield (
                f"Clean accuracy alone ranks the models by {against} at least as well (Spearman "
                f"{numbers.signed(alone)}) as the score calibrated by {titles}."
            )
    if lowered:
        yield f"Calibration lowers the agreement with {against}: {enumeration(lowered)}."


def _few_models(models):
    words = "Only one model is compared" if models == 1 else f"Only {models} models are compared"
    if models < takeaways.FEW_MODELS:
        return f"{words}: a rank correlation over models says nothing here."
    if models > EXACT_UP_TO:
        return f"{words}: rank correlations are coarse, and those of a maximised objective are optimistic."
    chance = numbers.number(exact_p_value(0.9, models))
    return (
        f"{words}: a random order reaches a rank correlation of 0.9 or more, of either sign, with probability "
        f"{chance}; that of a maximised objective is more optimistic still."
    )
