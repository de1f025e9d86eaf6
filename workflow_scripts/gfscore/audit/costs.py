"""Rows of the table costs, from the records of all jobs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED

FROM_LOGITS = "score_models"
"""Step of the measures from logits, for all models together, so single models have no cost."""


def cost_rows(records: Iterable[Mapping[str, Any]], class_scores: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the table costs, one per record, with nulls if its file is missing.

    `records` are mappings with step, dataset, threat, model, measure (or None) and path (or None); class_scores holds
    the numbers of samples of each measure.
    """
    at_one = class_scores[class_scores["calibration"] == UNCALIBRATED]
    samples = at_one.groupby(["threat", "model", "measure"], sort=False)["n"].sum()
    rows = []
    for record in records:
        job = {name: value for name, value in record.items() if name != "path"}
        key = (record["threat"], record["model"], record["measure"])
        cost = {"forwards": 0, "backwards": 0} if record["step"] == FROM_LOGITS else _read_cost(record["path"])
        rows.append(job | cost | {"samples": samples.get(key)})
    return rows


def _read_cost(path):
    # A missing record is no reason to run a job again.
    return read_json(path) if Path(path).is_file() else {}
