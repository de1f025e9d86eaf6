"""An audit in the forms that others read: LaTeX, cards of models, a description of its data, and a research object."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.audit.calibration_results import read_calibrations
from gfscore.audit.tables import TABLES
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.files import read_json, write_text
from gfscore.measures import NamedMeasure, named_measures
from gfscore.show.exports import DatasetStatement, ExportSettings
from gfscore.show.exports.cards import evaluation_results, model_cards
from gfscore.show.exports.crate import write_crate
from gfscore.show.exports.croissant import write_croissant
from gfscore.show.exports.step_runs import recorded_steps
from gfscore.show.exports.tables import (
    calibration_table,
    class_table,
    coupling_table,
    model_table,
    projection_table,
)
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.audit_check import require_unchanged_audit
from gfscore.workflow.jobs import logged_job


@dataclass(frozen=True, kw_only=True)
class ExportedAudit:
    """A finished audit.

    Parameters
    ----------
    name, title : str
        Name and heading.
    measures : mapping of str to NamedMeasure
        Measures by name.
    fp_lambda : float
        Lambda of FP.
    stated : ExportSettings
        What the configuration states of author, publisher, licence and datasets.
    files : mapping
        Paths of class_scores, model_summary, projection_models, calibrations and verdict, and those of the manifests of
        its datasets and of the tables of their samples.
    """

    name: str
    title: str
    measures: Mapping[str, NamedMeasure]
    fp_lambda: float
    stated: ExportSettings
    files: Mapping[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Rows of one of its tables."""
        return read_table(self.files[name], TABLES[name], expect={"audit": self.name})

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""
        return read_verdict(self.files["verdict"])


def export_audit(audit: ExportedAudit, folders: Mapping[str, Any], **crate: Any) -> None:
    """Write the folders `latex`, `cards`, `croissant` and `crate`; what else that holds as `export_crate` takes it."""
    export_tables(audit, Path(folders["latex"]))
    export_cards(audit, Path(folders["cards"]))
    export_datasets(audit, Path(folders["croissant"]))
    export_crate(audit, Path(folders["crate"]), **crate)


def export_tables(audit: ExportedAudit, folder: Path) -> None:
    """Write tables in LaTeX into a folder.

    <measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one;
    <mapper>-projection.tex and -coupling.tex of every mapper.
    """
    for mapper, rows in audit.table("projection_models").groupby("mapper", sort=False):
        write_text(folder / f"{mapper}-projection.tex", projection_table(rows))
        write_text(folder / f"{mapper}-coupling.tex", coupling_table(rows))

    scores, summary = audit.table("class_scores"), audit.table("model_summary")
    calibrations = read_calibrations(audit.files["calibrations"])
    calibrated = {calibration.measure for calibration in calibrations.values()}
    for name, named in audit.measures.items():
        models = summary[summary["measure"] == name]
        classes = scores[scores["measure"] == name]
        table = model_table(models, named.description, name=name, fp_lambda=audit.fp_lambda, calibrations=calibrations)
        write_text(folder / f"{name}-models.tex", table)
        write_text(folder / f"{name}-classes.tex", class_table(classes, named.description, name=name))
        if name in calibrated:
            write_text(folder / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))


def export_cards(audit: ExportedAudit, folder: Path) -> None:
    """Write the evaluation of each model for the Hugging Face Hub into a folder.

    <threat>__<model>.md is the block of its card; <threat>__<model>.eval_results.yaml, of data that are on the Hub, the
    same numbers as results on a benchmark.
    """
    summary, verdict = audit.table("model_summary"), audit.verdict
    dataset = audit.stated.datasets.get(verdict.dataset.name, DatasetStatement())
    texts = model_cards(
        summary,
        audit.measures,
        audit=audit.name,
        title=audit.title,
        digest=read_identity(audit.files["class_scores"])["dataset_digest"],
        classes=audit.table("class_scores")["class_index"].nunique(),
        hub_dataset=dataset.hub,
        findings=[finding.sentence for finding in verdict.findings],
    )
    for model, text in texts.items():
        write_text(folder / f"{model}.md", text)
    if dataset.hub:
        results = evaluation_results(summary, audit.measures, hub_dataset=dataset.hub, date=verdict.time)
        for model, text in results.items():
            write_text(folder / f"{model}.eval_results.yaml", text)


def export_datasets(audit: ExportedAudit, folder: Path) -> None:
    """Write <dataset>/croissant.json and samples.csv of every dataset into a folder."""
    for path_to_manifest, path_to_samples in zip(audit.files["datasets"], audit.files["samples"], strict=True):
        manifest = read_json(path_to_manifest)
        name = manifest["dataset"]
        stated = audit.stated.datasets.get(name, DatasetStatement())
        write_croissant(folder / name, manifest, read_table(path_to_samples, DATASET), stated=stated)


def export_crate(
    audit: ExportedAudit,
    folder: Path,
    *,
    config: Mapping[str, Any],
    workflow: Sequence[str],
    workflow_folder: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Write a Provenance Run Crate of the audit into a folder; its date is that of verdict.json.

    Parameters
    ----------
    audit : ExportedAudit
    folder : Path
    config : mapping
        Configuration of the run, with what the command line changed.
    workflow : sequence of str
        Files of the workflow, relative to its folder.
    workflow_folder : Path
    inputs, outputs : sequence of str
        Manifests of data and models, and results besides the verdict, relative to the current folder.

    Raises
    ------
    InputError
        For an audit whose files are not as the workflow wrote them: the crate gives each a digest of its own.
    """
    verdict = Path(audit.files["verdict"])
    require_unchanged_audit(verdict.parent)
    results = [str(verdict), *outputs]
    write_crate(
        folder,
        root=".",
        workflow=workflow,
        workflow_folder=workflow_folder,
        config=config,
        inputs=inputs,
        outputs=results,
        steps=recorded_steps([*inputs, *results], root=Path()),
        stated=audit.stated,
        audit=audit.name,
        title=audit.title,
        sentence=audit.verdict.sentence,
        finished=verdict.stat().st_mtime,
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        export_audit(
            ExportedAudit(
                name=snakemake.wildcards.audit,
                title=params.title,
                measures=named_measures(params.measures),
                fp_lambda=params.fp_lambda,
                stated=ExportSettings(**params.config["exports"]),
                files=inputs,
            ),
            snakemake.output,
            config=params.config,
            workflow=[os.path.relpath(path, params.workflow_folder) for path in inputs.workflow],
            workflow_folder=Path(params.workflow_folder),
            inputs=list(inputs.manifests),
            outputs=list(inputs.results),
        )
