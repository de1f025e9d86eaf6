"""What the page knows about other temperatures than 1: class scores on a grid, and the searched objectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.metrics import METRICS
from gfscore.show.dashboard.packing import packed
from gfscore.show.report.calibration import calibration_rows
from gfscore.show.words import takeaways

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables
    from gfscore.statistics.curves import ScoreCurves

STEPS = 41
"""Temperatures of the slider, evenly spaced in log T; 1 and every chosen temperature stand between them."""

MOST_POINTS = 600
"""A searched curve with more points is thinned for the page; the table beside the page holds all of them."""


def temperature_sweep(
    tables: AuditTables, sweeps: Mapping[str, ScoreCurves] | None, index: Any
) -> dict[str, Any] | None:
    """Class scores (M, T, K) of the calibrated measure at the slider's temperatures (T,), or None without a sweep.

    With them every metric (M, T) that has no lambda. `sweeps` maps "threat/model" to ScoreCurves, exact between their
    points.
    """
    if not sweeps or not tables.calibration_results:
        return None
    curves = [sweeps[f"{threat}/{model}"] for threat, model in index.models]
    low = max(curve.temperatures[0] for curve in curves)
    high = min(curve.temperatures[-1] for curve in curves)
    results = tables.calibration_results
    chosen = [result["t_star"] for result in results.values() if result["t_star"] is not None]
    grid = np.geomspace(low, high, STEPS)
    grid[[0, -1]] = low, high
    temperatures = np.unique(np.concatenate([grid, [1.0], chosen]))
    temperatures = temperatures[(temperatures >= low) & (temperatures <= high)]
    measure = next(iter(results.values()))["measure"]
    values = np.stack([curve(temperatures) for curve in curves])
    counts = index.grid(tables.of("class_scores", measure), "n")
    return {
        "measure": measure,
        "temperatures": temperatures.tolist(),
        "chosen": {name: result["t_star"] for name, result in results.items() if result["t_star"] is not None},
        "values": packed(values),
        "metrics": {
            name: packed([[metric.of(row, counts=n) for row in rows] for rows, n in zip(values, counts, strict=True)])
            for name, metric in METRICS.items()
            if "lam" not in metric.needs
        },
    }


def calibration_curves(tables: AuditTables) -> dict[str, Any] | None:
    """Every objective of calibration.json with its curve, optimal stretches and baselines, or None without any."""
    if not tables.calibration_results:
        return None
    return {
        "sentence": takeaways.calibration(tables.calibration_results),
        "measure": next(iter(tables.calibration_results.values()))["measure"],
        "objectives": [_objective(tables.calibration, row) for row in calibration_rows(tables.calibration_results)],
    }


def _objective(curves, row):
    points = curves.loc[curves["objective"] == row["name"], ["temperature", "value"]].dropna().to_numpy()
    kept: NDArray[np.int64] | list[int]
    kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(int)) if len(points) else []
    return {
        "name": row["name"],
        "title": row["title"],
        "points": points[kept].tolist() if len(points) else [],
        "stretches": [list(stretch) for stretch in takeaways.optimal_stretches(row)],
        "range": row["range"],
        "t_star": row["t_star"],
        "own": len(row["own"]),
        "edge": bool(row["edge"]),
        "best": row["best"],
        "at_one": row["at_one"],
        "alone": row["alone"],
        "clean": row["clean"],
        "robust": row["robust"],
        "search": row["search"],
        "p": (row.get("permutation") or {}).get("p"),
    }
