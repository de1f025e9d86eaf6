"""Settings of mappers and paths of the files of mappers and projections. Expects a complete configuration."""

from collections.abc import Mapping
from typing import Any

from gfscore.core.identity import MODEL
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow import plan


def mapper_settings(config: Mapping[str, Any], mapper: str) -> dict[str, Any]:
    """Settings that determine a mapper: its entry without `search`, which affects projections only."""
    return {key: value for key, value in config["mappers"][mapper].items() if key != "search"}


def mapper_attributes(config: Mapping[str, Any], mapper: str, dataset: str) -> str | list[str]:
    """Path of a dataset's attributes for a mapper with conditions; [] for other mappers."""
    conditions = mapper_kinds()[config["mappers"][mapper]["kind"]].conditions
    return f"results/attributes/{dataset}.parquet" if conditions else []


def mapper_inputs(config: Mapping[str, Any], mapper: str) -> dict[str, str | list[str]]:
    """Inputs of the job that trains and evaluates a mapper, by name."""
    entry = config["mappers"][mapper]
    names = {"train": entry["train_on"], "test": entry["evaluate_on"]}
    files: dict[str, str | list[str]] = {name: f"results/datasets/{dataset}.json" for name, dataset in names.items()}
    return files | {f"{name}_attributes": mapper_attributes(config, mapper, names[name]) for name in names}


def mapper_files(config: Mapping[str, Any], audit: str, *, extension: str) -> list[str]:
    """Paths of the weights (safetensors), manifests (json) or pictures (npz) of an audit's mappers."""
    return [f"results/mappers/{mapper}.{extension}" for mapper in plan.mappers_of(config, audit)]


def projection_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the projections of an audit by mapper, then task, then model, in the order of config."""
    return [
        f"results/projections/{mapper}/{MODEL.format(**model)}.parquet"
        for mapper in plan.mappers_of(config, audit)
        for model in plan.models_of_tasks(config, audit)
    ]


def task_files(config: Mapping[str, Any], audit: str) -> dict[str, list[str]]:
    """What the tables take of the tasks that an audit names beside its dataset, by name, each in the order of config.

    `task_manifests` and `task_datasets`, one per task; `task_logits`, one per task and model; `task_attributes`, one
    per task of an audit that compares groups.
    """
    tasks, compared = plan.tasks_of(config, audit)[1:], config["audits"][audit]["groups"]
    models = [model for task in tasks for model in plan.models_of(config, audit, task)]
    return {
        "task_manifests": [f"results/datasets/{task}.json" for task in tasks],
        "task_datasets": [f"results/datasets/{task}.parquet" for task in tasks],
        "task_attributes": [f"results/attributes/{task}.parquet" for task in tasks if compared],
        "task_logits": [plan.logits_file(config, **model) for model in models],
    }


def projection_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of an audit's projections, of its mappers and of what its other tasks are compared by."""
    mappers = [path for end in ("safetensors", "json", "npz") for path in mapper_files(config, audit, extension=end)]
    tasks = [path for paths in task_files(config, audit).values() for path in paths]
    return [*mappers, *projection_files(config, audit), *tasks]
