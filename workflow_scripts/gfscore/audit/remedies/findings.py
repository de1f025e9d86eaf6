"""What a remedy does to each model, in short: the gain of the worst class, who pays, and the finding."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.findings.finding import Finding
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels

HELPS = "remedy_helps"
NOT_SHOWN = "remedy_not_shown"

NUMBERS = {
    "before": "worst_before",
    "after": "worst_after",
    "low": "worst_low",
    "high": "worst_high",
    "mean_before": "mean_before",
    "mean_after": "mean_after",
    "gaining": "gaining",
    "losing": "losing",
    "classes": "classes",
    "payer_before": "payer_before",
    "payer_after": "payer_after",
}
"""Number of a finding -> column of remedies_in_short."""


def remedies_in_short(models: pd.DataFrame, classes: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table `remedy_models` with who pays most, the surest gain of the worst class first.

    Parameters
    ----------
    models, classes : DataFrame
        Rows of the tables `remedy_models` and `remedy_classes`.

    Returns
    -------
    DataFrame
        Further columns: `label` names the model; `payer`, `payer_before` and `payer_after` are the class that loses
        most of those that surely lose, and its values; missing where none does.
    """
    payers = []
    for row in models.itertuples():
        same_model = (classes["threat"] == row.threat) & (classes["model"] == row.model)
        changes = classes[same_model & (classes["measure"] == row.measure)]
        changes = changes.sort_values("class_index", kind="stable")
        losers = changes.assign(readable=readable_classes(list(changes["class_name"])))
        losers = losers[losers["high"] < 0].sort_values("change", kind="stable")
        payer = {"payer": None, "payer_before": np.nan, "payer_after": np.nan}
        if len(losers):
            first = losers.iloc[0]
            payer = {"payer": first["readable"], "payer_before": first["before"], "payer_after": first["after"]}
        payers.append(payer)
    rows = models.reset_index(drop=True).join(pd.DataFrame(payers))
    rows["label"] = model_labels(rows)
    return rows.sort_values("worst_low", ascending=False, kind="stable", ignore_index=True)


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Finding of a row of remedies_in_short: that the remedy helps, or that no gain is shown."""
    subject = {
        "model": row["label"],
        "threat": row["threat"],
        "name": row["model"],
        "measure": row["measure"],
        "payer": None if pd.isna(row["payer"]) else str(row["payer"]),
        "verdict_before": None if pd.isna(row["verdict_before"]) else str(row["verdict_before"]),
        "verdict_after": None if pd.isna(row["verdict_after"]) else str(row["verdict_after"]),
    }
    numbers = {name: row[column] for name, column in NUMBERS.items() if not pd.isna(row[column])}
    kind = HELPS if row["helps"] else NOT_SHOWN
    return Finding(kind, subject, numbers, float(row["confidence"]))
