"""What the page says about projections: how far latent dimensions can move before predictions change."""

import numpy as np

from gfscore.names import model_labels
from gfscore.report.report_rows import Bounded
from gfscore.tables.agreement import ALL
from gfscore.tables.projection import SCALED

GROUP_METRICS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}
"""Differences between groups that the paper sets beside Tolerance, by their names in the table group_metrics."""

METRICS = {
    "accuracy": "accuracy",
    "agreement": "agreement",
    "censored": "share of moves without a change",
    "tolerance": "Tolerance",
    "deviation": "Deviation",
    "coupling": "Coupling",
    "coupling_entropy": "normalised entropy",
}


def projection_view(tables):
    """Contents of the section on projections, or None for an audit without (AuditTables)."""
    models = tables.measures.get("projection_models")
    if models is None or models.empty:
        return None
    scores, effects = tables.measures["projection_scores"], tables.measures["projection_effects"]
    ranks = tables.measures["projection_ranks"]
    ordered = models.sort_values("tolerance", ascending=False, kind="stable")
    bounds = scores[(scores["class_index"] == ALL) & (scores["dimension_index"] == ALL)].set_index(["threat", "model"])
    groups = _group_means(tables.measures.get("group_metrics"))
    rows = [
        {
            **row,
            "label": label,
            "bounded": _bounded(row, bounds.loc[(row["threat"], row["model"])]),
            "groups": groups.get((row["threat"], row["model"]), dict.fromkeys(GROUP_METRICS)),
        }
        for label, row in zip(model_labels(ordered), ordered.to_dict("records"), strict=True)
    ]
    listed = ranks[ranks["rho"].notna()].sort_values("rho", key=np.abs, ascending=False, kind="stable")
    return {
        "mapper": models["mapper"].iloc[0],
        "n": int(models["n"].max()),
        "dimensions": int(models["dimensions"].iloc[0]),
        "confidence": float(scores["confidence"].dropna().iloc[0]),
        "rows": rows,
        "constant": [row["label"] for row in rows if row["constant"]],
        "with_groups": bool(groups),
        "scaled": list(SCALED),
        "ranks": [
            {**row, "first": METRICS[row["first"]], "second": METRICS[row["second"]]}
            for row in listed.to_dict("records")
        ],
        "measured": any(effects["how"] == "measured"),
    }


def _bounded(row, bounds):
    return Bounded(row["tolerance"], bounds["tolerance_low"], bounds["tolerance_high"], 1.0)


def _group_means(metrics):
    # Mean over the attributes of each difference between groups, of the first measure that predicts, by model.
    if metrics is None or metrics.empty:
        return {}
    first = metrics[metrics["measure"] == metrics["measure"].iloc[0]]
    one = first["class_name"].nunique() == 1
    mean = first[first["metric"].isin(GROUP_METRICS) & (one | (first["class_name"] == "macro"))]
    found = {}
    for (threat, model, metric), value in (
        mean.groupby(["threat", "model", "metric"], sort=False)["value"].mean().items()
    ):
        found.setdefault((threat, model), dict.fromkeys(GROUP_METRICS))[metric] = value
    return found
