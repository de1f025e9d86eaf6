"""An audit in the forms that others read: LaTeX, cards of models, a description of its data, and a research object."""

from gfscore.workflow.prepared import WITHOUT_TORCH, run_prepared

run_prepared(globals(), WITHOUT_TORCH)

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gfscore.audit.audit_folder import AuditFolder
from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.core.files import write_text
from gfscore.core.settings import PlainSettings
from gfscore.measures import NamedMeasure, named_measures
from gfscore.show.exports import ExportSettings
from gfscore.show.exports.cards import evaluation_results, model_cards
from gfscore.show.exports.crate import AuditRun, write_crate
from gfscore.show.exports.croissant import write_croissant
from gfscore.show.exports.latex_tables import (
    calibration_table,
    class_table,
    coupling_table,
    model_table,
    projection_table,
)
from gfscore.show.exports.step_runs import recorded_steps
from gfscore.tables.parquet_tables import read_identity, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.audit_check import require_unchanged_audit
from gfscore.workflow.jobs import logged_job


def export_tables(audit: AuditFolder, target: Path, *, measures: Mapping[str, NamedMeasure], fp_lambda: float) -> None:
    """Write tables in LaTeX into a folder.

    <measure>-models.tex and -classes.tex of every measure, -calibration.tex of the calibrated one;
    <mapper>-projection.tex and -coupling.tex of every mapper.
    """
    for mapper, rows in audit.table("projection_models").groupby("mapper", sort=False):
        write_text(target / f"{mapper}-projection.tex", projection_table(rows))
        write_text(target / f"{mapper}-coupling.tex", coupling_table(rows))

    scores = audit.table("class_scores")
    summary = audit.table("model_summary")
    calibrations = audit.calibrations()
    calibrated = {calibration.measure for calibration in calibrations.values()}
    for name, measure in measures.items():
        models = summary[summary["measure"] == name]
        classes = scores[scores["measure"] == name]
        table = model_table(models, measure.description, name=name, fp_lambda=fp_lambda, calibrations=calibrations)
        write_text(target / f"{name}-models.tex", table)
        write_text(target / f"{name}-classes.tex", class_table(classes, measure.description, name=name))
        if name in calibrated:
            write_text(target / f"{name}-calibration.tex", calibration_table(calibrations, models, name=name))


def export_cards(
    audit: AuditFolder,
    target: Path,
    *,
    title: str,
    measures: Mapping[str, NamedMeasure],
    fp_lambda: float,
    settings: ExportSettings,
) -> None:
    """Write the evaluation of each model for the Hugging Face Hub into a folder.

    <threat>__<model>.md is the block of its card; <threat>__<model>.eval_results.yaml, of data that are on the Hub, the
    same numbers as results on a benchmark.
    """
    summary = audit.table("model_summary")
    verdict = audit.verdict()
    hub_dataset = settings.dataset(verdict.dataset.name).hub
    texts = model_cards(
        summary,
        measures,
        audit=audit.audit,
        title=title,
        digest=read_identity(audit.table_file("class_scores"))["dataset_digest"],
        classes=audit.table("class_scores")["class_index"].nunique(),
        fp_lambda=fp_lambda,
        hub_dataset=hub_dataset,
        findings=[finding.sentence for finding in verdict.findings],
    )
    for model, text in texts.items():
        write_text(target / f"{model}.md", text)
    if hub_dataset:
        results = evaluation_results(summary, measures, hub_dataset=hub_dataset, date=verdict.time, fp_lambda=fp_lambda)
        for model, text in results.items():
            write_text(target / f"{model}.eval_results.yaml", text)


def export_datasets(
    target: Path, *, manifests: Sequence[str], samples: Sequence[str], settings: ExportSettings
) -> None:
    """Write <dataset>/croissant.json and samples.csv into a folder, of datasets by manifests and tables of samples."""
    for path_to_manifest, path_to_samples in zip(manifests, samples, strict=True):
        manifest = DatasetManifest.read(path_to_manifest)
        samples_table = read_table(path_to_samples, DATASET)
        write_croissant(target / manifest.dataset, manifest, samples_table, stated=settings.dataset(manifest.dataset))


def export_audit(
    audit: AuditFolder,
    targets: Mapping[str, str],
    *,
    title: str,
    measures: Mapping[str, NamedMeasure],
    fp_lambda: float,
    config: PlainSettings,
    workflow: Sequence[str],
    workflow_folder: Path,
    datasets: Sequence[str],
    samples: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Write all forms of an audit; the date of the Provenance Run Crate is the time of the verdict.

    Parameters
    ----------
    audit : AuditFolder
    targets : mapping of str to path
        Folders to write: latex, cards, croissant and crate.
    title : str
        Heading of the audit.
    measures : mapping of str to NamedMeasure
        Measures by name.
    fp_lambda : float
        Lambda of FP.
    config : mapping
        Configuration of the run, with what the command line changed.
    workflow : sequence of str
        Files of the workflow, relative to its folder.
    workflow_folder : Path
    datasets, samples : sequence of path
        Manifests of the datasets, and the tables of their samples.
    inputs, outputs : sequence of str
        Manifests of data and models, and results besides the verdict, relative to the current folder.

    Raises
    ------
    InputError
        For an audit whose files are not as the workflow wrote them: the crate gives each a digest of its own.
    """
    settings = ExportSettings(**config["exports"])
    export_tables(audit, Path(targets["latex"]), measures=measures, fp_lambda=fp_lambda)
    export_cards(audit, Path(targets["cards"]), title=title, measures=measures, fp_lambda=fp_lambda, settings=settings)
    export_datasets(Path(targets["croissant"]), manifests=datasets, samples=samples, settings=settings)

    require_unchanged_audit(audit.path)
    verdict = audit.verdict()
    results = [str(audit.verdict_file), *outputs]
    run = AuditRun(
        audit=audit.audit,
        title=title,
        sentence=verdict.sentence,
        finished=datetime.fromisoformat(verdict.time).timestamp(),
        root=Path(),
        workflow_folder=workflow_folder,
        workflow=workflow,
        config=config,
        inputs=inputs,
        outputs=results,
        steps=recorded_steps([*inputs, *results], root=Path(), workflow=workflow),
    )
    write_crate(targets["crate"], run, settings)


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        inputs, params = snakemake.input, snakemake.params
        export_audit(
            AuditFolder(Path(inputs.verdict).parent, snakemake.wildcards.audit),
            dict(snakemake.output.items()),
            title=params.title,
            measures=named_measures(params.measures),
            fp_lambda=params.fp_lambda,
            config=params.config,
            workflow=[os.path.relpath(path, params.workflow_folder) for path in inputs.workflow],
            workflow_folder=Path(params.workflow_folder),
            datasets=inputs.datasets,
            samples=inputs.samples,
            inputs=list(inputs.manifests),
            outputs=list(inputs.results),
        )
