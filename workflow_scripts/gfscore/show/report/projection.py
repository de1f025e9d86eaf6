"""What the page says about projections: how far latent dimensions can move before predictions change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.projections.columns import GROUP_METRICS, SCALED
from gfscore.core.names import model_labels
from gfscore.show.report.report_rows import Bounded
from gfscore.show.words.takeaways import rank_relation

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

METRICS = {
    "accuracy": "accuracy",
    "agreement": "agreement",
    "censored": "share of moves without a change",
    "tolerance": "Tolerance",
    "deviation": "Deviation",
    "coupling": "Coupling",
    "coupling_entropy": "normalised entropy",
    "dp": "DP",
    "eopp": "EOpp",
    "eodd": "EOdd",
}
"""Names of the numbers that rank models."""


def projection_view(tables: AuditTables) -> dict[str, Any] | None:
    """Contents of the section on projections, or None for an audit without (AuditTables)."""
    models = tables.measures.get("projection_models")
    if models is None or models.empty:
        return None
    scores, effects = tables.measures["projection_scores"], tables.measures["projection_effects"]
    ranks = tables.measures["projection_ranks"]
    ordered = models.sort_values(["constant", "tolerance"], ascending=[True, False])
    whole = scores[(scores["class_index"] == ALL) & (scores["dimension_index"] == ALL)]
    bounds = whole.set_index(["threat", "model"])[["tolerance_low", "tolerance_high"]]
    rows = [
        {
            **row,
            "label": f"{label} (constant)" if row["constant"] else label,
            "bounded": Bounded(row["tolerance"], *bounds.loc[(row["threat"], row["model"])], 1.0),  # type: ignore[call-arg]
        }
        for label, row in zip(model_labels(ordered), ordered.to_dict("records"), strict=True)
    ]
    listed = ranks[ranks["rho"].notna()].sort_values("rho", key=np.abs, ascending=False, kind="stable")
    comparable = models[~models["constant"].astype(bool)]
    grouped = models.dropna(subset=["group_measure"])
    return {
        "mapper": models["mapper"].iloc[0],
        "n": int(models["n"].max()),
        "dimensions": int(models["dimensions"].iloc[0]),
        "confidence": float(scores["confidence"].dropna().iloc[0]),
        "rows": rows,
        "constant": [
            label for label, constant in zip(model_labels(ordered), ordered["constant"], strict=True) if constant
        ],
        "one_sided": bool(models["deviation"].isna().any()),
        "groups": None if grouped.empty else grouped[["group_measure", "group_attributes"]].iloc[0].to_dict(),
        "group_metrics": [] if grouped.empty else list(GROUP_METRICS),
        "scaled": [name for name in SCALED if models[name].notna().any()],
        "titles": {name: METRICS[name][:1].upper() + METRICS[name][1:] for name in METRICS},
        "ranks": [_related(row, comparable) for row in listed.to_dict("records")],
        "measured": any(effects["how"] == "measured"),
    }


def _related(row, models):
    # With the p-value's verdict: of few models every order is likely.
    _, clear = rank_relation(models[row["first"]].to_numpy(dtype=float), models[row["second"]].to_numpy(dtype=float))
    return {**row, "first": METRICS[row["first"]], "second": METRICS[row["second"]], "clear": clear}
