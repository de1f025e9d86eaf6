"""Rows of the table costs, from what each job recorded of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED

if TYPE_CHECKING:
    import pandas as pd

FROM_LOGITS = "score_models"
"""Step of the measures that show no image to a classifier: of all models at once, so none has a cost of its own."""


def cost_rows(records: Iterable[Mapping[str, Any]], class_scores: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the table costs: one per record, null where its file is missing.

    `records` are mappings with step, dataset, threat, model, measure (or None) and path (or None); the table
    class_scores says how many samples each measure covers.
    """
    at_one = class_scores[class_scores["calibration"] == UNCALIBRATED]
    samples = at_one.groupby(["threat", "model", "measure"], sort=False)["n"].sum()
    rows = []
    for record in records:
        what = {name: value for name, value in record.items() if name != "path"}
        key = (record["threat"], record["model"], record["measure"])
        cost = {"forwards": 0, "backwards": 0} if record["step"] == FROM_LOGITS else _read_cost(record["path"])
        rows.append(what | cost | {"samples": samples.get(key)})
    return rows


def _read_cost(path):
    # Empty where there is none: no record is no reason to run again.
    return read_json(path) if Path(path).is_file() else {}
