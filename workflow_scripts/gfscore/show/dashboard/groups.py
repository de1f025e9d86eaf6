"""What the page knows about groups of samples and about projections on latent dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.groups.metrics import MACRO, WORST
from gfscore.core.names import printable
from gfscore.show.dashboard.packing import packed
from gfscore.show.words.group_words import group_gaps, sure_gaps, widest_gap

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

GROUP_VALUES = ("n", "value", "low", "high", "small", "balanced_n", "balanced_value")
GAPS = ("gap", "gap_low", "gap_high", "lowest", "highest", "small")
METRIC_VALUES = (
    "n", "value", "wilson_low", "wilson_high", "as_printed", "smallest_cell", "small", "balanced_value",
)  # fmt: skip
OF_DIMENSION = ("tolerance", "tolerance_low", "tolerance_high", "deviation", "up", "down", "censored")
CELL_VALUES = ("n", "value", "low", "high", "small")
OF_CLASS = ("n", "tolerance", "tolerance_low", "tolerance_high", "deviation", "censored")
OF_PROJECTION = ("n", "agreement", "accuracy", "decoded_accuracy", "tolerance_agreeing", "effective_dimensions")


def group_contents(tables: AuditTables, index: Any, measures: Iterable[str]) -> dict[str, Any] | None:
    """Values, gaps and fairness metrics of groups by measure, or None for an audit without groups.

    Takes AuditTables, ModelsAndClasses and the names of the measures, in their order. Rows are of all classes together
    and begin with the position of the model; `cells` are of each group within each class, packed arrays (M, groups, K)
    beside the list `groups`; the metrics are the mean over classes, or of the one positive class.
    """
    scores = tables.measures.get("group_scores")
    if scores is None or scores.empty:
        return None
    scores = _known(scores, index)
    whole, within = (scores[(scores["class_index"] == ALL) == alone] for alone in (True, False))
    names = [name for name in measures if (whole["measure"] == name).any()]
    left_out = whole.drop_duplicates("attribute").set_index("attribute")["left_out"]
    metrics, attributes = _known(tables.measures["group_metrics"], index), list(left_out.index)
    groups = whole.drop_duplicates(["attribute", "group_index"])
    return {
        "confidence": whole["confidence"].iloc[0],
        "attributes": [{"name": printable(name), "left_out": left_out[name]} for name in attributes],
        "groups": [
            {"at": attributes.index(row["attribute"]), "group": printable(row["group"])}
            for row in groups.to_dict("records")
        ],
        "balanced": bool(whole["balanced_n"].notna().any()),
        "values": {name: _values(whole[whole["measure"] == name], index, attributes) for name in names},
        "cells": {name: _cells(within[within["measure"] == name], index, groups) for name in names},
        "metrics": {name: _metrics(rows, index, attributes) for name, rows in metrics.groupby("measure", sort=False)},
    }


def _known(rows, index):
    models = zip(rows["threat"], rows["model"], strict=True)
    return rows[[model in index.position for model in models]]


def _values(rows, index, attributes):
    gaps = group_gaps(rows)
    return {
        "sentences": [] if gaps.empty else [widest_gap(gaps), sure_gaps(gaps)],
        "rows": [_place(row, index, attributes, GROUP_VALUES, "group") for row in rows.to_dict("records")],
        "gaps": [_place(row, index, attributes, GAPS) for row in gaps.to_dict("records")],
    }


def _cells(rows, index, groups):
    # Values of each group within each class, arrays (models, groups, classes), NaN where the table has no row.
    keys = zip(groups["attribute"], groups["group_index"], strict=True)
    place = {key: number for number, key in enumerate(keys)}
    at = (
        [index.position[model] for model in zip(rows["threat"], rows["model"], strict=True)],
        [place[group] for group in zip(rows["attribute"], rows["group_index"], strict=True)],
        [index.class_indices[number] for number in rows["class_index"]],
    )
    arrays = {name: np.full((len(index.models), len(groups), len(index.class_names)), np.nan) for name in CELL_VALUES}
    for name, array in arrays.items():
        array[at] = rows[name]
    return {name: packed(array) for name, array in arrays.items()}


def _metrics(rows, index, attributes):
    one = rows["class_index"].nunique() == 1 and rows["class_index"].iloc[0] != ALL
    key = ["threat", "model", "attribute", "metric"]
    worst = {} if one else rows[rows["class_name"] == WORST].set_index(key)["value"].to_dict()
    shown = rows if one else rows[(rows["class_index"] == ALL) & (rows["class_name"] == MACRO)]
    return {
        "positive": printable(rows["class_name"].iloc[0]) if one else None,
        "confidence": rows["confidence"].iloc[0],
        "rows": [
            _place(row, index, attributes, METRIC_VALUES, "metric")
            | {"worst": worst.get(tuple(row[name] for name in key))}
            for row in shown.to_dict("records")
        ],
    }


def _place(row, index, attributes, columns, *named):
    found = {name: row[name] for name in columns} | {name: printable(row[name]) for name in named}
    found |= {name: printable(row[name]) for name in ("lowest", "highest") if name in columns}
    return found | {"model": index.position[row["threat"], row["model"]], "at": attributes.index(row["attribute"])}


def projection_contents(tables: AuditTables, index: Any) -> dict[str, Any] | None:
    """Tolerance and Deviation of every model by latent dimension and by class, or None without projections.

    `classes` are packed arrays (M, K), means over the dimensions.
    """
    models = tables.measures.get("projection_models")
    if models is None or models.empty:
        return None
    scores = tables.measures["projection_scores"]
    rows = scores[scores["class_index"] == ALL]
    of_classes = _known(scores[(scores["class_index"] != ALL) & (scores["dimension_index"] == ALL)], index)
    constant = dict(zip(zip(models["threat"], models["model"], strict=True), models["constant"], strict=True))
    single = rows[rows["dimension_index"] != ALL]
    mean = index.per_model(rows[rows["dimension_index"] == ALL])
    return {
        "mapper": printable(models["mapper"].iloc[0]),
        "confidence": rows["confidence"].dropna().iloc[0],
        "models": [
            row
            and {name: row[name] for name in (*OF_DIMENSION, *OF_PROJECTION)}
            | {"constant": constant[row["threat"], row["model"]]}
            for row in mean
        ],
        "rows": [
            {name: row[name] for name in OF_DIMENSION}
            | {"model": index.position[row["threat"], row["model"]], "dimension": printable(row["dimension"])}
            for row in _known(single, index).to_dict("records")
        ],
        "classes": {name: packed(index.grid(of_classes, name)) for name in OF_CLASS},
        "effects": _effects(tables.measures.get("projection_effects")),
    }


def _effects(table):
    # What a move along each dimension changes most in decoded images, by the dimension's name.
    if table is None:
        return {}
    ordered = table.dropna(subset=["strength"]).sort_values("strength", ascending=False, kind="stable")
    return {
        printable(row["dimension"]): {"trait": printable(row["trait"]), "shift": row["shift"]}
        for row in ordered.drop_duplicates("dimension").to_dict("records")
    }
