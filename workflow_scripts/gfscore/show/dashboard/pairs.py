"""Paired differences between models, class by class, as the page compares two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.show.dashboard.packing import packed

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

ROUNDING = 1e-12
"""Tolerance of p against alpha, which is 1 - confidence in floating point."""


def paired_differences(tables: AuditTables, measure: str, index: Any) -> dict[str, Any] | None:
    """Differences of every pair of models that is listed, first minus second, or None where none are compared.

    `pairs` (P, 2) positions of models; `difference`, `low`, `high`, `p` (P, K), NaN where a class has no row; bounds
    and Holm's p-values are joint over all pairs and classes. `overall` holds the same for the aggregate.
    """
    if tables.comparisons is None:
        return None
    rows = tables.comparisons[tables.comparisons["measure"] == measure]
    of_models: Any = tables.model_comparisons
    overall = of_models[of_models["measure"] == measure]
    if rows.empty:
        return None
    order: dict[tuple[str, str, str, str], int] = {}
    for pair in zip(*(overall[name] for name in _PAIR), strict=True):
        order.setdefault(pair, len(order))
    shape = (len(order), len(index.class_names))
    places = [order[pair] for pair in zip(*(rows[name] for name in _PAIR), strict=True)]
    classes = [index.class_indices[item] for item in rows["class_index"]]

    def grid(column: str) -> Any:
        result = np.full(shape, np.nan)
        result[places, classes] = rows[column]
        return packed(result)

    kept = ("difference", "low", "high", "p_holm", "wins_first", "wins_second", "sure_wins_first", "sure_wins_second")
    return {
        "pairs": [[index.position[pair[:2]], index.position[pair[2:]]] for pair in order],
        "difference": grid("difference"),
        "low": grid("low"),
        "high": grid("high"),
        "p": grid("p_holm"),
        "overall": [[row[name] for name in kept] for row in overall.to_dict("records")],
        "alpha": 1 - float(rows["confidence"].iloc[0]) + ROUNDING,
        "confidence": float(rows["confidence"].iloc[0]),
    }


_PAIR = ("first_threat", "first_model", "second_threat", "second_model")
