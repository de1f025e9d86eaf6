"""What the page says about calibration: the temperatures chosen, how the rankings change, and reasons for doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.calibration.model_evidence import CLEAN, DISTANCE, ROBUST, alone
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import enumeration, model_labels, without_threat
from gfscore.core.numbers import number, signed, temperature
from gfscore.show.words import takeaways
from gfscore.statistics.ranking import EXACT_UP_TO, exact_p_value
from gfscore.statistics.scale import SCALE

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

FEW_MODELS = 10
"""Fewer models than these make rank correlations coarse, which the page says."""

LEAST_MODELS = 3
"""Fewer are in one order or the other, nothing between."""


def calibration_view(tables: AuditTables) -> dict[str, Any] | None:
    """Contents of the section on calibration, or None for an audit that searches no temperature (AuditTables)."""
    results = tables.calibration_results
    if not results:
        return None
    rows = calibration_rows(results)
    measure = rows[0]["measure"]
    models = len(tables.of("model_summary", measure))
    return {
        "measure": measure,
        "models": models,
        "rows": rows,
        "distances": any(row["distance"] for row in rows),
        "warnings": _warnings(rows, models),
        "uncertainty": _uncertainty(results),
        "rankings": {
            row["title"]: _ranking(tables, measure, row["name"])
            for row in rows
            if row["t_star"] is not None or row["own"]
        },
        "errors": {row["title"]: _class_errors(row) for row in rows if row["class_calibration_error"]},
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
    if models < FEW_MODELS:
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
                f"Neither clean accuracy alone (Spearman {signed(alone)}) nor the score calibrated by {titles} "
                f"ranks the models like {against}."
            )
        else:
            yield (
                f"Clean accuracy alone ranks the models by {against} at least as well (Spearman "
                f"{signed(alone)}) as the score calibrated by {titles}."
            )
    if lowered:
        yield f"Calibration lowers the agreement with {against}: {enumeration(lowered)}."


def _few_models(models):
    words = "Only one model is compared" if models == 1 else f"Only {models} models are compared"
    if models < LEAST_MODELS:
        return f"{words}: a rank correlation over models says nothing here."
    if models > EXACT_UP_TO:
        return f"{words}: rank correlations are coarse, and those of a maximised objective are optimistic."
    chance = number(exact_p_value(0.9, models))
    return (
        f"{words}: a random order reaches a rank correlation of 0.9 or more, of either sign, with probability "
        f"{chance}; that of a maximised objective is more optimistic still."
    )


def calibration_rows(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per objective of calibration.json, with its temperature in words and its warnings."""
    rows = []
    for name, result in results.items():
        own = result["t_star_by_model"] or {}
        rows.append(
            {
                **result,
                "name": name,
                "title": takeaways.OBJECTIVES.get(name, name.replace("_", " ")),
                "range": takeaways.optimal_range(result) if result["interval"] else None,
                "own": list(zip(without_threat(list(own)), own.values(), strict=True)),
                "alone": result["baseline"].get(alone(ROBUST)),
                "alone_distance": result["baseline"].get(alone(DISTANCE)),
                "clean": result["agreement"].get(CLEAN, {}),
                "robust": result["agreement"].get(ROBUST, {}),
                "distance": result["agreement"].get(DISTANCE, {}),
            }
        )
    return rows


def _uncertainty(results):
    """One row per searched objective: p-value, and temperatures under resampling, leaving out and the paper's grid."""
    rows = []
    for name, result in results.items():
        drawn = result.get("bootstrap")
        if not drawn:
            continue
        chosen = [each["t_star"] for each in (result["leave_one_out"] or {}).values() if each]
        rows.append(
            {
                "title": takeaways.OBJECTIVES.get(name, name.replace("_", " ")),
                "search": result["search"],
                "p": (result["permutation"] or {}).get("p"),
                "confidence": drawn["confidence"],
                "bootstrap": _from_to(drawn["t_star"]),
                "left_out": _from_to(chosen),
                "grid": (result["paper_grid"] or {}).get("t_star"),
            }
        )
    return rows


def _from_to(temperatures):
    if not temperatures or None in temperatures:
        return None
    low, high = (temperature(end(temperatures)) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _ranking(tables, measure, objective):
    """Models with their aggregate at T = 1 and at the temperature of an objective, and their ranks by both."""
    before, after = (tables.of("model_summary", measure, name) for name in (UNCALIBRATED, objective))
    merged = before.merge(after, on=["dataset", "threat", "model"], suffixes=("", "_after"))
    merged = merged.assign(label=model_labels(merged))
    for suffix in ("", "_after"):
        merged[f"rank{suffix}"] = merged[f"value{suffix}"].rank(ascending=False, method="min").astype(int)
    return merged.sort_values(["rank_after", "label"]).to_dict("records")


def _class_errors(result):
    """Class-wise calibration error of each model before and after, as mean and largest over classes."""
    errors = result.get("class_calibration_error") or {}
    rows = []
    for label, (before, after) in zip(
        without_threat(list(errors)), ((pair["before"], pair["after"]) for pair in errors.values()), strict=True
    ):
        arrays = [np.array([np.nan if value is None else value for value in values]) for values in (before, after)]
        rows.append(
            {
                "label": label,
                "mean": [float(np.nanmean(array)) for array in arrays],
                "largest": [float(np.nanmax(array)) for array in arrays],
            }
        )
    return rows
