"""An audit in the forms that others read: its tables as LaTeX, and a card of each model for the Hugging Face Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.files import read_json, write_text
from gfscore.measures import named_measures
from gfscore.show.exports.tables import (
    calibration_table,
    class_table,
    coupling_table,
    model_cards,
    model_table,
    projection_table,
)
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.workflow.jobs import logged_job


def export_tables(
    files: Mapping[str, Any],
    folders: Mapping[str, Any],
    *,
    audit: str,
    title: str,
    measures: Mapping[str, Mapping[str, Any]],
    fp_lambda: float,
) -> None:
    """Write the tables and model cards of an audit.

    Parameters
    ----------
    files : mapping
        Paths of class_scores, model_summary, projection_models, calibrations and verdict.
    folders : mapping
        Folder `latex`, for <measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated
        one, <mapper>-projection.tex and -coupling.tex of every mapper; folder `cards`, for <threat>__<model>.md.
    audit, title : str
        Name and heading of the audit.
    measures : mapping
        Settings of its measures by name.
    fp_lambda : float
        Lambda of FP.
    """
    latex, cards = Path(folders["latex"]), Path(folders["cards"])
    scores = read_table(files["class_scores"], TABLES["class_scores"], expect={"audit": audit})
    summary = read_table(files["model_summary"], TABLES["model_summary"], expect={"audit": audit})
    projected = read_table(files["projection_models"], TABLES["projection_models"], expect={"audit": audit})
    calibrations = read_json(files["calibrations"])

    for mapper, rows in projected.groupby("mapper", sort=False):
        write_text(latex / f"{mapper}-projection.tex", projection_table(rows))
        write_text(latex / f"{mapper}-coupling.tex", coupling_table(rows))
    calibrated = {result["measure"] for result in calibrations.values()}
    parsed = named_measures(measures)
    for name, named in parsed.items():
        measure = named.measure
        models, classes = _of_measure(summary, name), _of_measure(scores, name)
        table = model_table(models, measure, name=name, fp_lambda=fp_lambda, calibrations=calibrations)
        write_text(latex / f"{name}-models.tex", table)
        write_text(latex / f"{name}-classes.tex", class_table(classes, measure, name=name))
        if name in calibrated:
            write_text(latex / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))

    findings = [finding.sentence for finding in read_verdict(files["verdict"]).findings]
    texts = model_cards(
        summary,
        parsed,
        audit=audit,
        title=title,
        digest=read_identity(files["class_scores"])["dataset_digest"],
        classes=scores["class_index"].nunique(),
        findings=findings,
    )
    for model, text in texts.items():
        write_text(cards / f"{model}.md", text)


def _of_measure(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    return table[table["measure"] == measure]


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        export_tables(snakemake.input, snakemake.output, audit=snakemake.wildcards.audit, **snakemake.params)
