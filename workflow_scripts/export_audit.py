"""An audit in the forms that others read: LaTeX, cards of models, a description of its data, and a research object."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfscore.audit.audit_folder import AuditFolder
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.files import write_text
from gfscore.core.settings import PlainSettings
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
    folder : AuditFolder
        Its tables, calibrations and verdict.
    title : str
        Heading.
    measures : mapping of str to NamedMeasure
        Measures by name.
    fp_lambda : float
        Lambda of FP.
    stated : ExportSettings
        What the configuration states of author, publisher, licence and datasets.
    """

    folder: AuditFolder
    title: str
    measures: Mapping[str, NamedMeasure]
    fp_lambda: float
    stated: ExportSettings

    def dataset(self, name: str) -> DatasetStatement:
        """What the configuration states of a dataset."""
        return self.stated.datasets.get(name, DatasetStatement())


def export_tables(audit: ExportedAudit, folder: Path) -> None:
    """Write tables in LaTeX into a folder.

    <measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one;
    <mapper>-projection.tex and -coupling.tex of every mapper.
    """
    for mapper, rows in audit.folder.table("projection_models").groupby("mapper", sort=False):
        write_text(folder / f"{mapper}-projection.tex", projection_table(rows))
        write_text(folder / f"{mapper}-coupling.tex", coupling_table(rows))

    scores = audit.folder.table("class_scores")
    summary = audit.folder.table("model_summary")
    calibrations = audit.folder.calibrations()
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
    summary = audit.folder.table("model_summary")
    verdict = audit.folder.verdict()
    hub_dataset = audit.dataset(verdict.dataset.name).hub
    texts = model_cards(
        summary,
        audit.measures,
        audit=audit.folder.audit,
        title=audit.title,
        digest=read_identity(audit.folder.table_file("class_scores"))["dataset_digest"],
        classes=audit.folder.table("class_scores")["class_index"].nunique(),
        hub_dataset=hub_dataset,
        findings=[finding.sentence for finding in verdict.findings],
    )
    for model, text in texts.items():
        write_text(folder / f"{model}.md", text)
    if hub_dataset:
        results = evaluation_results(summary, audit.measures, hub_dataset=hub_dataset, date=verdict.time)
        for model, text in results.items():
            write_text(folder / f"{model}.eval_results.yaml", text)


def export_datasets(audit: ExportedAudit, folder: Path, *, manifests: Sequence[str], samples: Sequence[str]) -> None:
    """Write <dataset>/croissant.json and samples.csv of every dataset into a folder.

    Parameters
    ----------
    audit : ExportedAudit
    folder : Path
    manifests, samples : sequence of path
        Manifests of its datasets, and the tables of their samples.
    """
    for path_to_manifest, path_to_samples in zip(manifests, samples, strict=True):
        manifest = DatasetManifest.read(path_to_manifest)
        samples_table = read_table(path_to_samples, DATASET)
        stated = audit.dataset(manifest.dataset)
        write_croissant(folder / manifest.dataset, manifest, samples_table, stated=stated)


def export_crate(
    audit: ExportedAudit,
    folder: Path,
    *,
    config: PlainSettings,
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
    require_unchanged_audit(audit.folder.path)
    verdict = audit.folder.verdict_file
    results = [str(verdict), *outputs]
    write_crate(
        folder,
        root=".",
        workflow=workflow,
        workflow_folder=workflow_folder,
        config=config,
        inputs=inputs,
        outputs=results,
        steps=recorded_steps([*inputs, *results], root=Path(), workflow=workflow),
        stated=audit.stated,
        audit=audit.folder.audit,
        title=audit.title,
        sentence=audit.folder.verdict().sentence,
        finished=verdict.stat().st_mtime,
    )


def export_audit(
    audit: ExportedAudit,
    *,
    latex: Path,
    cards: Path,
    croissant: Path,
    crate: Path,
    datasets: Sequence[str],
    samples: Sequence[str],
    **run: Any,
) -> None:
    """Write all forms of an audit, each into a folder of its own; `run` are the keywords of `export_crate`."""
    export_tables(audit, latex)
    export_cards(audit, cards)
    export_datasets(audit, croissant, manifests=datasets, samples=samples)
    export_crate(audit, crate, **run)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, outputs, params = snakemake.input, snakemake.output, snakemake.params
        exported = ExportedAudit(
            folder=AuditFolder(Path(inputs.verdict).parent, snakemake.wildcards.audit),
            title=params.title,
            measures=named_measures(params.measures),
            fp_lambda=params.fp_lambda,
            stated=ExportSettings(**params.config["exports"]),
        )
        export_audit(
            exported,
            latex=Path(outputs.latex),
            cards=Path(outputs.cards),
            croissant=Path(outputs.croissant),
            crate=Path(outputs.crate),
            datasets=inputs.datasets,
            samples=inputs.samples,
            config=params.config,
            workflow=[os.path.relpath(path, params.workflow_folder) for path in inputs.workflow],
            workflow_folder=Path(params.workflow_folder),
            inputs=list(inputs.manifests),
            outputs=list(inputs.results),
        )
