"""Which model: every metric of every model, at T = 1 and on the grid of temperatures; and differences of pairs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gfscore.audit.metrics import METRICS
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import Measures
from gfscore.core import numbers
from gfscore.core.names import printable
from gfscore.measures import measure_of
from gfscore.show.page.elements import ModelsAndClasses, Scale, Track, finite, packed
from gfscore.statistics.curves import ScoreCurves

FIRST_METRIC, WORST = "value", "wcr"
STEPS = 31
"""Temperatures of the slider, evenly spaced in log T; 1 and every chosen temperature stand between them."""

MOST_CLASSES = 20
"""Classes of a pair that are shown: those that differ most."""


def ranking_data(tables: AuditTables, index: ModelsAndClasses, measures: Measures, lam: float) -> dict[str, Any]:
    """Every metric of every model by measure: arrays `value`, `low`, `high` (M,), and the scale it is drawn on."""
    return {name: _of_measure(tables, index, name, settings, lam) for name, settings in measures.items()}


def _of_measure(tables, index, name, settings, lam):
    rows = index.per_model(tables.of("model_summary", name))
    meaning = measure_of(settings)
    result: dict[str, Any] = {"title": meaning.title, "unit": meaning.unit, "metrics": {}}
    for metric in METRICS.values():
        ends = ("low", "high") if metric.bounded else ()
        columns = {"value": metric.name} | {end: f"{metric.name}_{end}" for end in ends}
        if metric.name == FIRST_METRIC:
            columns |= {"low": "value_alone_low", "high": "value_alone_high"}
        low, high = metric.range(meaning.value_range, classes=len(index.classes), lam=lam)
        known = {key: [finite(row and row.get(column)) for row in rows] for key, column in columns.items()}
        # A range that nothing reaches would squeeze all rows into a corner.
        largest = max((value for values in known.values() for value in values if value is not None), default=1.0)
        result["metrics"][metric.name] = known | {"scale": _scale(low, high, largest), "highest": finite(high)}
    result["worst"] = [row and printable(row["wcr_class"]) for row in rows]
    return result


def _scale(low, high, largest):
    low = 0.0 if not np.isfinite(low) or low < 0 else low
    high = high if np.isfinite(high) else largest
    return Scale(float(low), float(max(high, 1e-9)), "").plain()


def ranking_view(data: Mapping[str, Any], index: ModelsAndClasses, measure: str, judged_worst: bool) -> dict[str, Any]:
    """The ranking as it opens: by the worst class where the gate judges it, else by the mean of all samples."""
    metric = METRICS[WORST if judged_worst else FIRST_METRIC]
    known = data[measure]["metrics"][metric.name]
    bounds = [known.get(end, [None] * len(index.labels)) for end in ("low", "high")]
    rows = [
        Track(name, short, value, low, high, key=key, highest=known["highest"])
        for key, (name, short, value, low, high) in enumerate(
            zip(index.labels, index.short, known["value"], *bounds, strict=True)
        )
    ]
    rows.sort(key=lambda row: (row.value is None, -metric.direction * (row.value or 0)))
    scale = Scale(known["scale"]["low"], known["scale"]["high"], "")
    return {
        "measure": measure,
        "measures": list(data),
        "metric": metric.name,
        "rows": rows,
        "scale": scale,
        "title": f"{metric.title} by {printable(measure)}, best first ({metric.better})",
        "note": f"{data[measure]['title']}, {data[measure]['unit']}. Intervals of each model at T = 1.",
    }


def temperature_grid(
    tables: AuditTables, sweeps: Mapping[str, ScoreCurves] | None, index: ModelsAndClasses
) -> dict[str, Any] | None:
    """Every metric without lambda (M, T) of the calibrated measure at the slider's temperatures, or None."""
    if not sweeps or not tables.calibration_results:
        return None
    results = tables.calibration_results
    curves = [sweeps[f"{threat}/{model}"] for threat, model in index.models]
    low = max(curve.temperatures[0] for curve in curves)
    high = min(curve.temperatures[-1] for curve in curves)
    chosen = [result["t_star"] for result in results.values() if result["t_star"] is not None]
    grid = np.geomspace(low, high, STEPS)
    grid[[0, -1]] = low, high
    temperatures = np.unique(np.concatenate([grid, [1.0], chosen]))
    temperatures = temperatures[(temperatures >= low) & (temperatures <= high)]
    measure = next(iter(results.values()))["measure"]
    counts = index.grid(tables.of("class_scores", measure), "n")
    # Of the classes with samples, all temperatures at once.
    values = [(curve(temperatures)[:, n > 0], n[n > 0]) for curve, n in zip(curves, counts, strict=True)]
    return {
        "measure": measure,
        "temperatures": temperatures.tolist(),
        "metrics": {
            name: packed([metric.compute_many(rows, counts=n) for rows, n in values])
            for name, metric in METRICS.items()
            if "lam" not in metric.needs
        },
    }


def swaps(tables: AuditTables, index: ModelsAndClasses, measure: str) -> list[list[float]]:
    """Every lambda at which FP puts two models in the other order: lambda, who is ahead below it, and above it."""
    if tables.lambda_swaps is None:
        return []
    rows = tables.lambda_swaps[tables.lambda_swaps["measure"] == measure]
    place = index.position
    return [
        [row.fp_lambda, place[row.before_threat, row.before_model], place[row.after_threat, row.after_model]]
        for row in rows.itertuples()
    ]


_PAIR = ("first_threat", "first_model", "second_threat", "second_model")


def paired_differences(tables: AuditTables, measure: str, index: ModelsAndClasses) -> dict[str, Any] | None:
    """Differences of every pair of models that is listed, first minus second, or None where none are compared.

    `pairs` (P, 2) places of models; `difference`, `low`, `high` (P, K), NaN where a class has no row; `overall` (P, 3)
    the same three of the aggregate. Bounds are joint over all pairs and classes.
    """
    if tables.comparisons is None or tables.model_comparisons is None:
        return None
    rows = tables.comparisons[tables.comparisons["measure"] == measure]
    overall = tables.model_comparisons[tables.model_comparisons["measure"] == measure]
    if rows.empty:
        return None
    order: dict[tuple[str, str, str, str], int] = {}
    for pair in zip(*(overall[name] for name in _PAIR), strict=True):
        order.setdefault(pair, len(order))
    places = [order[pair] for pair in zip(*(rows[name] for name in _PAIR), strict=True)]
    classes = [index.class_places[item] for item in rows["class_index"]]
    grids = {}
    for column in ("difference", "low", "high"):
        grids[column] = np.full((len(order), len(index.classes)), np.nan)
        grids[column][places, classes] = rows[column]
    return {
        "pairs": [[index.position[pair[:2]], index.position[pair[2:]]] for pair in order],
        **grids,
        "overall": overall[["difference", "low", "high"]].to_numpy(),
        "confidence": float(rows["confidence"].iloc[0]),
    }


def pair_view(
    found: Mapping[str, Any] | None, index: ModelsAndClasses, shown: int, measure: str
) -> dict[str, Any] | None:
    """The pair that the page opens with: the shown model against the next one by aggregate."""
    if found is None:
        return None
    own = [place for place, pair in enumerate(found["pairs"]) if shown in pair] or [0]
    nearest = min(own, key=lambda place: abs(found["overall"][place][0]))
    first, second = found["pairs"][nearest]
    difference, low, high = (found[name][nearest] for name in ("difference", "low", "high"))
    known = np.flatnonzero(~np.isnan(difference))
    order = known[np.argsort(-np.abs(difference[known]), kind="stable")][:MOST_CLASSES]
    width = max([abs(end) for values in (low, high) for end in values[order] if np.isfinite(end)], default=1.0)
    rows = [
        Track(index.classes[k], index.class_short[k], float(difference[k]), finite(low[k]), finite(high[k]))
        for k in order
    ]
    whole = found["overall"][nearest]
    left_out = len(known) - len(order)
    return {
        "first": first,
        "second": second,
        "rows": rows,
        "scale": Scale(-_round_up(width), _round_up(width), "", 0.0),
        "title": f"{index.labels[first]} minus {index.labels[second]}: {numbers.number(whole[0])} "
        f"({numbers.interval(whole[1], whole[2])}) over all samples",
        "note": f"Differences of {printable(measure)} on the same samples, of the {len(order)} classes that differ most"
        f"{f' of {len(known):,}' if left_out else ''}; right of the line the first is better. Intervals hold for all "
        f"pairs and classes together with {numbers.percent(found['confidence'])} confidence.",
    }


def _round_up(width):
    return float(np.ceil(width * 10) / 10) if np.isfinite(width) and width > 0 else 1.0
