"""Paths of the inputs and outputs of the workflow's steps.

Every function takes a complete configuration and the name of an audit or dataset.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.verdicts import gate_rules
from gfscore.core.identity import MODEL
from gfscore.measures import from_logits
from gfscore.networks.device_choice import OF_LARGE, threads_for_size
from gfscore.networks.model_source import model_sources
from gfscore.workflow import plan
from gfscore.workflow.projection_layout import projection_results
from gfscore.workflow.user_files import architecture_files, digest, present, size_of


def logit_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the logits of an audit's models, without missing files of the user."""
    files = plan.subject_of(config, audit)["logits"].values()
    return [file for file in files if file.startswith("results/") or present(file)]


def user_logit_digests(config: Mapping[str, Any], audit: str) -> dict[str, str | None]:
    """SHA-256 (hex) of the logit files of the user, by path; None for a missing one."""
    entries = [plan.entry_of(config, **model) for model in plan.models_of(config, audit)]
    return {entry["path"]: digest(entry["path"]) for entry in entries if entry["source"] == "logits"}


def sample_files(config: Mapping[str, Any], audit: str, *, judged: bool = False) -> list[str]:
    """Paths of the sample tables of an audit that are not computed from logits, by model, then measure.

    `judged`: those of the measures that the gate reads; a verdict depends on no others.
    """
    subject = (plan.judged_subject_of if judged else plan.subject_of)(config, audit)
    return [
        f"results/samples/{measure}/{MODEL.format(**model)}.parquet"
        for model in subject["models"]
        for measure, entry in subject["measures"].items()
        if not (from_logits(entry) and plan.has_logits(config, **model))
    ]


def checkpoint_file(
    config: Mapping[str, Any], dataset: str, threat: str, model: str, *, extension: str
) -> str | list[str]:
    """Path of a model's checkpoint (safetensors) or manifest (json), one for all datasets of its zoo.

    Fetched classifiers have no checkpoint in results/, [], since their manifest names its path.
    """
    zoo = plan.zoo_of(config, dataset)
    if plan.entry_of(config, dataset, threat, model)["source"] in plan.FITTED:
        return f"results/trained/{zoo}/{threat}/{model}.{extension}"
    return f"results/checkpoints/{zoo}/{threat}/{model}.json" if extension == "json" else []


def threads_of_model(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> int:
    """Number of threads for a classifier: one where it is trained on a CPU, else by the size of its checkpoint."""
    entry = plan.entry_of(config, dataset, threat, model)
    if entry.get("training", {}).get("device") == "cpu":
        return 1
    size = size_of(entry.get("path"))
    return OF_LARGE if size is None else threads_for_size(size)


def classifier_files(
    config: Mapping[str, Any], dataset: str, threat: str, model: str
) -> dict[str, str | list[str] | list[Path]]:
    """Inputs, by name, of a job in which a classifier classifies images."""
    of_model = {"dataset": dataset, "threat": threat, "model": model}
    zoo = plan.zoo_of(config, dataset)
    return {
        "dataset": f"results/datasets/{dataset}.json",
        "images": stored_images(config, dataset),
        "checkpoint": checkpoint_file(config, **of_model, extension="safetensors"),
        "model": checkpoint_file(config, **of_model, extension="json"),
        "architecture": architecture_files(config, zoo, threat, model),
    }


def trained_manifests(config: Mapping[str, Any], audit: str) -> list[str | list[str]]:
    """Manifests of the classifiers of an audit that the workflow trains, which contain the measured robust accuracy."""
    return [
        checkpoint_file(config, **model, extension="json")
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] == "trained"
    ]


def fetched_manifests(config: Mapping[str, Any], audit: str) -> list[str]:
    """Manifests of the checkpoints and backbones of an audit that are downloaded or provided by the user."""
    return [
        f"results/checkpoints/{plan.zoo_of(config, model['dataset'])}/{model['threat']}/{model['model']}.json"
        for model in plan.models_of_tasks(config, audit)
        if plan.entry_of(config, **model)["source"] in plan.FETCHED
    ]


def dataset_file(config: Mapping[str, Any], audit: str, *, extension: str) -> str:
    """Manifest (json) or samples (parquet) of the dataset that an audit evaluates."""
    return f"results/datasets/{plan.dataset_of(config, audit)}.{extension}"


def generator_manifest(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """Manifest of the generator of an audit's samples, with its digest or label error rates; [] without one."""
    dataset = plan.dataset_of(config, audit)
    return f"results/generated/{dataset}.json" if config["datasets"][dataset]["source"] in plan.DRAWN else []


def path_of_images(config: Mapping[str, Any], dataset: str) -> str | None:
    """File or folder of a dataset's images; None if they are part of a package."""
    entry = config["datasets"][dataset]
    return f"results/generated/{dataset}.npz" if entry["source"] in plan.DRAWN else entry.get("path")


def stored_images(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """As path_of_images, if it is a file that jobs can depend on; [] for folders, whose modification times say little.

    Also [] if it is missing, unless the workflow makes it.
    """
    entry, path = config["datasets"][dataset], path_of_images(config, dataset)
    if path and entry["source"] in plan.DRAWN:
        return path
    # For a folder, the file that lists its images.
    return present(path) or present(entry.get("list"))


def attributes_reference(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """Manifest of the dataset that fixes the thresholds of a dataset's attributes; [] without one."""
    name = config["datasets"][dataset]["attributes"].get("fixed_on")
    return f"results/datasets/{name}.json" if name else []


def attributes_file(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """File of a dataset's attributes; [] if they are part of the dataset, or the file is missing.

    read_attributes reports a missing file.
    """
    return present(config["datasets"][dataset]["attributes"].get("path"))


def attributes_table(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """Path of the attributes of an audit's samples; [] without groups."""
    asked = config["audits"][audit]
    return f"results/attributes/{asked['dataset']}.parquet" if asked["groups"] else []


def gate_attributes(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """As attributes_table, but [] unless a rule of the gate judges groups."""
    rules = config["audits"][audit]["gate"]
    judged = any(rule["statistic"] == gate_rules.GROUP_GAP for rule in rules)
    return attributes_table(config, audit) if judged else []


def cost_records(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Path of the cost record of every job of an audit, with step, model and measure, in order."""
    records: list[dict[str, Any]] = []
    own, mappers = plan.dataset_of(config, audit), plan.mappers_of(config, audit)
    for model in plan.models_of_tasks(config, audit):
        source = plan.entry_of(config, **model)["source"]
        of_zoo = {**model, "dataset": plan.zoo_of(config, model["dataset"])}
        fitted_by = model_sources()[source].fitted_by
        records += [_cost(fitted_by, model, place=of_zoo)] if fitted_by else []
        records += [] if source in plan.GIVEN else [_cost("extract_logits", model)]
        for measure in plan.measures_of(config, audit) if model["dataset"] == own else ():
            step = "import_samples" if source == "samples" else plan.step_of(config, measure)
            records += [_cost(step, model, measure=measure)]
        records += [_cost("project_attributes", model, mapper=mapper) for mapper in mappers]
    return records


def _cost(step, model, *, place=None, measure=None, mapper=None):
    # The path of the job's log: in a folder named after the measure or the mapper, if there is one.
    names = filter(None, [step, measure or mapper, MODEL.format(**place or model)])
    return {"step": step, **model, "measure": measure, "path": f"results/costs/{'/'.join(names)}.json"}


def table_settings(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """Settings of the tables of an audit."""
    settings = {name: config[name] for name in ("intervals", "disparity", "comparison", "confusions")}
    baseline = config["audits"][audit]["corruption_baseline"]
    return settings | {
        "calibration": _calibration_settings(config, audit),
        # As threat/model, or None.
        "corruption_baseline": baseline and baseline.partition("/")[2],
        "groups": _group_settings(config, audit),
        "tasks": _task_settings(config, audit),
        "label_error_rate": config["datasets"][plan.dataset_of(config, audit)]["label_error_rate"],
        "published": plan.published_accuracies(config, audit),
        "methods": plan.described_models(config, audit),
        "costs": cost_records(config, audit),
    }


def _group_settings(config: Mapping[str, Any], audit: str, task: str | None = None) -> dict[str, Any] | None:
    groups = config["audits"][audit]["groups"]
    return groups and groups | {"positive": plan.positive_of(config, audit, task or plan.dataset_of(config, audit))}


def _task_settings(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    return [
        {
            "models": plan.models_of(config, audit, task),
            # The attribute that the labels are, if they are one, which is not a sensitive one.
            "own_attribute": config["datasets"][task].get("task", config["datasets"][task].get("label")),
            "groups": _group_settings(config, audit, task),
        }
        for task in plan.tasks_of(config, audit)
    ]


def _calibration_settings(config: Mapping[str, Any], audit: str) -> dict[str, Any] | None:
    calibration, great = config["audits"][audit]["calibration"], config["great"]
    if not calibration:
        return None
    shared = {name: great[name] for name in ("temperatures", "stability_window", "resampling")}
    own = {"objectives": calibration["objectives"], "split": calibration["split"]}
    return shared | own | {"distances": plan.distance_measure(config, audit)}


def audit_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of all files in results/audits/<audit>/, so that any missing one is made again."""
    names = [f"{table}.{extension}" for table in TABLES_OF_AUDIT for extension in ("parquet", "csv")]
    names += [f"{name}.json" for name in ("calibration", "comparison", "models", "verdict")]
    names += ["config.yaml", "figures", "report.html"]
    return [f"results/audits/{audit}/{name}" for name in names]


# A target of the Snakefile names its file and every file that it depends on: a failed step deletes its output, and
# files that depend on a deleted one must not count as up to date.


def logit_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Checked logits of an audit, all files that they depend on, and the checks of pinned digests."""
    models = plan.models_of_tasks(config, audit)
    datasets = plan.datasets_of(config, audit)
    files: list[Any] = [
        f"results/datasets/{name}.{extension}" for name in datasets for extension in ("json", "parquet")
    ]
    # A digest may be pinned after fetching.
    files += [f"results/checks/{name}.json" for name in datasets if config["datasets"][name]["digest"]]
    drawn = [name for name in datasets if config["datasets"][name]["source"] in plan.DRAWN]
    files += [f"results/generated/{name}.{extension}" for name in drawn for extension in ("npz", "json")]
    files += fetched_manifests(config, audit)
    fitted = [model for model in models if plan.entry_of(config, **model)["source"] in plan.FITTED]
    files += [checkpoint_file(config, **model, extension=end) for model in fitted for end in ("safetensors", "json")]
    scored = [f"results/{stage}/{audit}.parquet" for stage in ("scores", "sweeps")]
    return files + logit_files(config, audit) + scored + [f"results/audits/{audit}/models.json"]


def sample_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Values per sample of an audit, and all files that they depend on."""
    attributes: Any = attributes_table(config, audit)
    return logit_results(config, audit) + sample_files(config, audit) + ([attributes] if attributes else [])


def verdict_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Verdict of an audit, and every file that it stands on: of all measures, since it says what attacks say."""
    tables = [f"results/audits/{audit}/{name}.parquet" for name in TABLES_OF_AUDIT]
    return [f"results/audits/{audit}/verdict.json", *tables, *model_results(config, audit)]


def model_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """All files per model that an audit depends on."""
    return sample_results(config, audit) + projection_results(config, audit)


def report_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Report of an audit, and every file that it stands on."""
    return audit_results(config, audit) + model_results(config, audit)
