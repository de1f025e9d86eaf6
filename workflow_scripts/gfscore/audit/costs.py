"""What the jobs of an audit cost: the table costs."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from gfscore.audit.step_params import JobRecord
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.tables.parquet_tables import typed_frame
from gfscore.tables.table import MEASURED, Column, Table

COSTS = Table(
    name="costs",
    version=1,
    columns=(
        *MEASURED,
        Column("step", pa.string(), "step of the workflow; its work serves every measure where measure is null"),
        Column("wall_s", pa.float64(), "seconds on the clock, without the start of Python; null where not recorded"),
        Column("cpu_s", pa.float64(), "seconds of all processor cores together"),
        Column("gpu_s", pa.float64(), "seconds that the job held a GPU, times the part of it"),
        Column("peak_memory_mib", pa.float64(), "largest resident memory of the process, in MiB"),
        Column(
            "samples",
            pa.int64(),
            "samples that the measure covers; null where measure is null, and on halves for remedies",
        ),
        Column(
            "forwards",
            pa.int64(),
            "images passed through the classifier, by killed attempts too where their work was kept, unlike the "
            "seconds; 0 from logits, whose passes are those of extract_logits; null for training and imports",
        ),
        Column(
            "backwards",
            pa.int64(),
            "images whose logits were differentiated, once for every gradient, by killed attempts too",
        ),
    ),
)

FROM_LOGITS = "score_models"
"""Step of the measures from logits, for all models together, so single models have no cost."""


def cost_table(records: Iterable[JobRecord], scores: pd.DataFrame) -> pd.DataFrame:
    """The table costs, one row per record, with nulls if its file is missing.

    Parameters
    ----------
    records : iterable of JobRecord
    scores : DataFrame
        The table class_scores, which holds the numbers of samples of each measure.
    """
    uncalibrated = scores[scores["calibration"] == UNCALIBRATED]
    samples = uncalibrated.groupby(["dataset", "threat", "model", "measure"], sort=False)["n"].sum()
    rows = []
    for record in records:
        row = record.model_dump(exclude={"path"})
        row["samples"] = samples.get((record.dataset, record.threat, record.model, record.measure))
        if record.step == FROM_LOGITS:
            row["forwards"] = 0
            row["backwards"] = 0
        elif Path(record.path).is_file():
            # A missing record is no reason to run a job again.
            row.update(read_json(record.path))
        rows.append(row)
    return typed_frame(COSTS, rows)
