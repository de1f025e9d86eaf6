"""An audit as a run of MLflow."""

import re
from pathlib import Path

import numpy as np

from gfscore.audit.metrics import MAIN
from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.errors import InputError
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import printable
from gfscore.core.software import version_in_words
from gfscore.tables.parquet_tables import read_table

NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_./:-]")
"""Characters that MLflow allows in no name of a metric; names here have only "+" of them."""

IN_ITS_PLACE = " "
"""MLflow allows a blank, which no name here has, so that different names stay different."""

FILES = ("*.csv", "*.parquet", "*.json", "config.yaml", "report.html")


def log_to_mlflow(audit: Path | str) -> str:
    """Log a finished audit as a run of MLflow: numbers, verdict, tables, figures and page.

    The run belongs to MLflow's current experiment and tracking server; within an active run it is a nested one.

    Parameters
    ----------
    audit : Path or str
        Folder of the audit, results/audits/NAME.

    Returns
    -------
    str
        Identifier of the run. Its metrics are the numbers of model_summary at T = 1, as threat/model/measure/metric;
        undefined ones are left out. Where samples are undecided, <metric>_most counts them at their largest value,
        and metrics without it, such as RDI, are left out.

    Raises
    ------
    InputError
        If the folder holds no finished audit, or MLflow is not installed.
    """
    folder = Path(audit)
    if not (folder / "verdict.json").is_file():
        raise InputError(f"{folder}: no finished audit, for there is no verdict.json in it; name results/audits/NAME")
    try:
        import mlflow
    except ImportError:
        raise InputError("MLflow is not installed; pip install mlflow-skinny, or mlflow, beside gfscore") from None

    verdict = read_verdict(folder / "verdict.json")
    tags = {
        "gfscore.verdict": verdict.verdict,
        "gfscore.verdict.sentence": printable(verdict.sentence),
        "gfscore.version": version_in_words(verdict.software),
        "gfscore.data": printable(verdict.dataset.name),
        "gfscore.data.sha256": verdict.dataset.digest,
    }
    summary = read_table(folder / "model_summary.parquet", TABLES["model_summary"])
    numbers = {}
    for _, row in summary[summary["calibration"] == UNCALIBRATED].iterrows():
        for metric in MAIN:
            most = f"{metric.name}_most"
            # Of undecided samples one end alone would read as the value.
            one_end = row["value_most"] > row["value"] and most not in row
            if np.isnan(row[metric.name]) or one_end:
                continue
            name = NOT_IN_A_NAME.sub(IN_ITS_PLACE, f"{row['threat']}/{row['model']}/{row['measure']}/{metric.name}")
            numbers[name] = float(row[metric.name])
            if most in row and row[most] > row[metric.name]:
                numbers[f"{name}_most"] = float(row[most])

    nested = mlflow.active_run() is not None
    with mlflow.start_run(run_name=folder.resolve().name, nested=nested, tags=tags) as run:
        mlflow.log_metrics(numbers)
        for pattern in FILES:
            for file in sorted(folder.glob(pattern)):
                mlflow.log_artifact(str(file))
        if (folder / "figures").is_dir():
            mlflow.log_artifacts(str(folder / "figures"), "figures")
        return run.info.run_id
