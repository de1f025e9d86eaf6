"""Files of the targets of the Snakefile, for one audit.

A target names its file and every file that it depends on: a failed step deletes its output, and files that depend on a
deleted one must not count as up to date.
"""

from gfscore.audit.table_names import OTHER_FILES, TABLES_OF_AUDIT
from gfscore.workflow.plan import PlannedAudit

EXPORTS = ("latex", "model-cards", "croissant", "ro-crate")
"""Folders of an audit's exports."""


def input_results(audit: PlannedAudit) -> list[str]:
    """Datasets that are not drawn from a generator, and fetched checkpoints: what may need a network."""
    files = []
    for dataset in audit.datasets:
        if not dataset.source.drawn:
            files += [dataset.manifest, dataset.samples]
    return files + audit.fetched_manifests()


def logit_results(audit: PlannedAudit) -> list[str]:
    """Checked logits, and all files that they depend on."""
    files = []
    for dataset in audit.datasets:
        files += [dataset.manifest, dataset.samples]
        if isinstance(dataset.generator_manifest, str):
            files += [dataset.generated_images, dataset.generator_manifest]
    files += audit.fetched_manifests()
    for model in audit.task_models:
        if isinstance(model.weights, str):
            files += [model.weights, model.manifest]
        if model.offsets:
            files.append(model.offsets.file)
    files += audit.logit_files()
    files += [f"results/scores/{audit.name}.parquet", f"results/sweeps/{audit.name}.parquet"]
    return [*files, f"{audit.folder}/models.json"]


def sample_results(audit: PlannedAudit) -> list[str]:
    """Values per sample, and all files that they depend on."""
    files = logit_results(audit) + audit.sample_files(audit.measures)
    for remedy_files in audit.remedy_files().values():
        files += remedy_files
    for path in (audit.attributes_table(), audit.release_values()):
        if isinstance(path, str):
            files.append(path)
    return files


def model_results(audit: PlannedAudit) -> list[str]:
    """All files per model: values per sample, projections with their mappers, and inputs of the tables for tasks."""
    files = sample_results(audit)
    for mapper in audit.mappers:
        files += [mapper.weights, mapper.manifest, mapper.pictures]
    files += audit.projection_files()
    for task_files in audit.task_files().values():
        files += task_files
    return files


def audit_results(audit: PlannedAudit) -> list[str]:
    """All files in results/audits/<audit>/, so that any missing one is made again."""
    names = []
    for table in TABLES_OF_AUDIT:
        names += [f"{table}.parquet", f"{table}.csv"]
    names += [*OTHER_FILES, "figures"]
    return [f"{audit.folder}/{name}" for name in names]


def verdict_results(audit: PlannedAudit) -> list[str]:
    """Verdict, and every file that it rests on: of all measures, since it cites attacks that no rule names."""
    tables = [f"{audit.folder}/{name}.parquet" for name in TABLES_OF_AUDIT]
    return [f"{audit.folder}/verdict.json", *tables, *model_results(audit)]


def report_results(audit: PlannedAudit) -> list[str]:
    """Report, and every file that it rests on."""
    return audit_results(audit) + model_results(audit)


def export_results(audit: PlannedAudit) -> list[str]:
    """Folders of the exports."""
    return [f"{audit.folder}/exports/{name}" for name in EXPORTS]
