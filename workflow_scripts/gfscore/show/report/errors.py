"""What the page says about errors by class: recall, CFPS, strong and weak classes, the mean confusion matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gfscore.audit.classwise.confusion import mean_confusion
from gfscore.audit.classwise.confusion_rows import confusion_matrices
from gfscore.core.names import model_count
from gfscore.show.report.report_rows import ends_of

if TYPE_CHECKING:
    from gfscore.audit.audit_tables import AuditTables

MOST_CLASSES = 20
"""Largest confusion matrix shown in numbers."""

GROUPS = ("strong", "weak")
MEANS = ("recall", "precision", "f1", "cfps", "cfps_relative")


def errors_views(tables: AuditTables, measures: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Mapping of each of `measures` that predicts to its view; empty without class_errors (AuditTables).

    A view has `models`, how many there are; `rows`, one per class with the means over models of MEANS and in how many
    models it is strong and weak, lowest recall first, both ends of long lists; `left_out` classes between them; `names`
    (K) and `confusion`, the mean of the row-normalised confusion matrices, None for many classes.
    """
    if tables.class_errors is None:
        return {}
    together = tables.class_errors[tables.class_errors["corruption"].isna()]
    return {
        measure: _view(tables.confusions, together[together["measure"] == measure], measure)
        for measure in measures
        if (together["measure"] == measure).any()
    }


def _view(confusions, errors, measure):
    classes = errors.groupby("class_index")
    rows = classes[list(MEANS)].mean()
    rows["name"] = classes["class_name"].first()
    for group in GROUPS:
        rows[group] = (errors["group"] == group).groupby(errors["class_index"]).sum()
    names = rows["name"].tolist()
    listed = rows.sort_values("recall", kind="stable").to_dict("records")
    shown = confusions is not None and len(names) <= MOST_CLASSES
    return {
        "models": model_count(errors),
        "rows": ends_of(listed),
        "left_out": len(listed) - len(ends_of(listed)),
        "names": names,
        "confusion": _mean_matrix(confusions[confusions["measure"] == measure], len(names)) if shown else None,
    }


def _mean_matrix(confusions, classes):
    return mean_confusion(confusion_matrices(confusions, classes).values()).tolist()
