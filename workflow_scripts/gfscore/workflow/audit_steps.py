"""Inputs and params of the steps of an audit; rules/audit.smk and rules/exports.smk name them.

Params are plain values, or settings that dump as such: Snakemake tells by them whether a step has to run again.
"""

from collections.abc import Mapping

from gfscore.audit.settings import ATTACK_DISTANCE, GroupSettings
from gfscore.audit.step_params import JobRecord, TableSettings, TaskSettings, TemperatureSearch, TrainedModel
from gfscore.core.settings import PlainSettings
from gfscore.measures import NamedMeasure, entries_of
from gfscore.workflow.entries import SOURCES_OF_VALUES, PlannedDataset, PlannedModel
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.remedies import PlannedRemedy
from gfscore.workflow.targets import audit_results
from gfscore.workflow.user_files import STATEMENT, OptionalFile, digest, present

STEPS = {"logits": "score_models", "network": "measure_model"}
"""Step that computes a measure, by the input that its kind needs."""


def subject(audit: PlannedAudit, measures: Mapping[str, NamedMeasure] | None = None) -> PlainSettings:
    """What a step reads of an audit: models, measures, calibrated measure, and files of logits by label of the model.

    `supplied` is the source, "logits" or "samples", of each model that is brought as values, by its label.

    Parameters
    ----------
    audit : PlannedAudit
    measures : mapping, optional
        Measures by name that the step reads; all by default.
    """
    calibration = audit.settings.calibration
    supplied = {}
    logits = {}
    for model in audit.models:
        if model.source.name in SOURCES_OF_VALUES:
            supplied[model.label] = model.source.name
        if model.has_logits:
            logits[model.label] = model.logits
    return {
        "models": [model.name.columns() for model in audit.models],
        "measures": entries_of(audit.measures if measures is None else measures),
        "calibrated_measure": calibration.measure if calibration else None,
        "supplied": supplied,
        "logits": logits,
    }


# ---- score_models ----


def logit_checks(audit: PlannedAudit) -> list[PlainSettings]:
    """Settings of the check of the logits, for each model that has logits."""
    samples = audit.dataset.settings.published_accuracy
    on_failure = audit.run.settings.checks.published_accuracy
    checks = []
    for model in audit.models:
        if model.has_logits:
            checks.append(model.logit_check(samples=samples, on_failure=on_failure))
    return checks


def user_logit_digests(audit: PlannedAudit) -> dict[str, str | None]:
    """SHA-256 (hex) of the logit files of the user, by path; None for a missing one."""
    digests = {}
    for model in audit.models:
        if model.source.name == "logits":
            digests[model.logits] = digest(model.logits)
    return digests


# ---- import_release ----


def release_statement(audit: PlannedAudit) -> OptionalFile:
    """Statement of the bundle of the last release; empty without one, and for a missing one."""
    release = audit.settings.last_release
    return present(f"{release.bundle}/{STATEMENT}") if release else []


def release_params(audit: PlannedAudit) -> PlainSettings:
    """Parameters of the comparison with the last release: models, measures, its bundle and the model in it.

    `state` is the digest of the bundle's statement, which names every file of it.
    """
    release = audit.settings.last_release
    if release is None:
        return {}
    return {
        "models": [model.name.columns() for model in audit.models],
        "measures": entries_of(audit.release_measures),
        "bundle": release.bundle,
        "model": release.model,
        "state": digest(release_statement(audit)),
    }


# ---- tabulate_audit ----


def table_inputs(audit: PlannedAudit) -> dict[str, OptionalFile]:
    """Inputs, by name, of the step that makes the tables, besides values per sample and logits."""
    return {
        "selection": f"{audit.folder}/models.json",
        "scores": f"results/scores/{audit.name}.parquet",
        "sweeps": f"results/sweeps/{audit.name}.parquet",
        "dataset": audit.dataset.samples,
        "manifest": audit.dataset.manifest,
        "manifests": audit.trained_manifests(),
        "generator": audit.dataset.generator_manifest,
        "attributes": audit.attributes_table(),
        "mappers": [mapper.manifest for mapper in audit.mappers],
        "projections": audit.projection_files(),
        **audit.task_files(),
        **audit.remedy_files(),
    }


def table_settings(audit: PlannedAudit) -> TableSettings:
    """Settings of the tables."""
    settings = audit.run.settings
    baseline = audit.settings.corruption_baseline
    tasks = []
    for task in audit.tasks:
        models = [model.name.columns() for model in audit.models_on(task)]
        tasks.append(TaskSettings(models=models, label_attribute=task.label_attribute, groups=_groups_of(audit, task)))
    return TableSettings(
        intervals=settings.intervals,
        disparity=settings.disparity,
        comparison=settings.comparison,
        confusions=settings.confusions,
        calibration=_temperature_search(audit),
        corruption_baseline=baseline and baseline.partition("/")[2],
        groups=_groups_of(audit, audit.dataset),
        tasks=tasks,
        label_error_rate=audit.dataset.settings.label_error_rate,
        published=[model.published for model in audit.models],
        methods=described_models(audit),
        baselines=training_baselines(audit),
        costs=job_records(audit),
        remedies=[remedy.parameters() for remedy in audit.remedies],
        gate=[rule.model_dump(by_alias=True) for rule in audit.settings.gate] if audit.remedies else [],
    )


def _temperature_search(audit: PlannedAudit) -> TemperatureSearch | None:
    calibration = audit.settings.calibration
    if calibration is None:
        return None
    great = audit.run.settings.great
    objectives = list(calibration.objectives or ())
    return TemperatureSearch(
        temperatures=great.temperatures,
        stability_window=great.stability_window,
        permutations=great.permutations,
        objectives=objectives,
        split=calibration.split,
        distances=audit.distance_measures[0] if ATTACK_DISTANCE in objectives else None,
    )


def _groups_of(audit: PlannedAudit, task: PlannedDataset) -> GroupSettings | None:
    groups = audit.settings.groups
    if groups is None:
        return None
    return groups.model_copy(update={"positive": audit.positive_class(task)})


def described_models(audit: PlannedAudit) -> list[TrainedModel]:
    """Models with their training method and architecture, as far as the workflow trains them."""
    return [model.description() for model in audit.models]


def training_baselines(audit: PlannedAudit) -> dict[str, str]:
    """Label of the baseline of each trained model: the one model whose training method its own changes.

    A model without a baseline, or with several, is left out.
    """
    baselines = {}
    trained = [model for model in audit.models if model.source.name == "trained"]
    for model in trained:
        candidates = [other.label for other in trained if other.is_baseline_of(model)]
        if len(candidates) == 1:
            baselines[model.label] = candidates[0]
    return baselines


# ---- costs of the jobs, which tabulate_audit reads ----


def step_of(measure: NamedMeasure) -> str:
    """Step that computes a measure, for models whose values are not imported."""
    return STEPS[measure.kind.needs]


def job_records(audit: PlannedAudit) -> list[JobRecord]:
    """Every job of the audit that is about one model, and the file with its cost, in order.

    A job that serves several models, as the training of a network that offsets are added to, is listed once.
    """
    records = []
    for model in audit.task_models:
        records += _records_of_model(audit, model)
    for remedy in audit.remedies:
        records += _records_of_remedy(remedy)

    records_by_path: dict[str, JobRecord] = {}
    for record in records:
        records_by_path.setdefault(record.path, record)
    return list(records_by_path.values())


def _records_of_model(audit: PlannedAudit, model: PlannedModel) -> list[JobRecord]:
    records = []
    if model.network.source.fitted:
        records.append(_job_record("train_model", model, model.network.zoo_path))
    if model.offsets:
        records.append(_job_record("choose_offsets", model, model.offsets.stem))
    if model.source.name not in SOURCES_OF_VALUES:
        records.append(_job_record("extract_logits", model, model.name.path))
    measures = audit.measures.values() if model.name.dataset == audit.dataset.name else ()
    for measure in measures:
        if not measure.derived:
            step = "import_samples" if model.source.name == "samples" else step_of(measure)
            records.append(_job_record(step, model, f"{measure.name}/{model.name.path}", measure=measure.name))
    for mapper in audit.mappers:
        records.append(_job_record("project_attributes", model, f"{mapper.name}/{model.name.path}"))
    return records


def _records_of_remedy(remedy: PlannedRemedy) -> list[JobRecord]:
    name, offsets = remedy.measure.name, remedy.planned_offsets
    records = [_job_record("choose_offsets", offsets.model, offsets.stem, measure=name)]
    for model in (remedy.original, remedy.judged):
        records.append(_job_record("extract_logits", model, model.name.path))
    for model in remedy.models:
        records.append(_job_record("measure_model", model, f"{name}/{model.name.path}", measure=name))
    return records


def _job_record(step: str, model: PlannedModel, path: str, measure: str | None = None) -> JobRecord:
    # The file has the path of the job's log.
    return JobRecord(step=step, **model.name.columns(), measure=measure, path=f"results/costs/{step}/{path}.json")


# ---- judge_audit ----


def verdict_inputs(audit: PlannedAudit) -> dict[str, OptionalFile]:
    """Inputs, by name, of the step that judges the audit, besides its tables and values per sample."""
    return {
        "scores": f"results/scores/{audit.name}.parquet",
        "dataset": audit.dataset.samples,
        "manifest": audit.dataset.manifest,
        "configuration": f"{audit.folder}/config.yaml",
        "generator": audit.dataset.generator_manifest,
        "attributes": audit.judged_attributes(),
        "release": audit.release_values(),
        "checkpoints": audit.fetched_manifests(),
    }


# ---- export_audit ----


def deposited_inputs(audit: PlannedAudit) -> list[str]:
    """Manifests of datasets and classifiers, which contain their digests; none of models brought as values."""
    manifests = [dataset.manifest for dataset in audit.datasets]
    for model in audit.models:
        if model.network.source.fitted or model.network.source.fetched:
            manifests.append(model.manifest)
    return manifests


def deposited_results(audit: PlannedAudit) -> list[str]:
    """Results of the audit without the verdict."""
    files = audit_results(audit)
    files.remove(f"{audit.folder}/verdict.json")
    return files
