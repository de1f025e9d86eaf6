"""The table sweeps: class scores of all models over the temperature range."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gfscore.audit.tables import TABLES
from gfscore.core.identity import label_of
from gfscore.statistics.classes import class_means
from gfscore.statistics.curves import ScoreCurves, sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_table

if TYPE_CHECKING:
    from gfscore.audit.samples import ModelLogits


def sweep_frame(
    evidence: ModelLogits, key: Mapping[str, str], *, activation: str, low: float, high: float
) -> pd.DataFrame:
    """Rows of sweeps of one model, from T = `low` to T = `high`; `key` holds dataset, threat, model, measure."""
    logits, labels = evidence.logits, evidence.labels
    classes = logits.shape[1]
    curves = sweep_class_scores(logits, labels, classes, activation=activation, low=low, high=high)
    points = len(curves.temperatures)
    accuracy = class_means(predictions(logits, labels) == labels, labels, classes)
    return pd.DataFrame(
        {
            **key,
            "temperature": np.repeat(curves.temperatures, classes),
            "class_index": np.tile(np.arange(classes, dtype=np.int32), points),
            "n": np.tile(curves.n, points),
            "value": curves.values.ravel(),
            "accuracy": np.tile(accuracy, points),
        }
    )


def read_sweeps(path: Path | str, *, audit: str) -> dict[str, ScoreCurves]:
    """ScoreCurves by "threat/model" from the table sweeps of an audit."""
    table = read_table(path, TABLES["sweeps"], expect={"audit": audit})
    return {
        label_of({"threat": threat, "model": model}): ScoreCurves.of_rows(rows, rows["class_index"].nunique())
        for (threat, model), rows in table.groupby(["threat", "model"], sort=False)
    }
