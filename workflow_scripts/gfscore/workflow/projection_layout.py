"""Settings of mappers and paths of the files of mappers and projections.

Imports nothing heavy, because every run of Snakemake reads it. Expects a complete configuration.
"""

from collections.abc import Mapping
from typing import Any

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


def mapper_file(config: Mapping[str, Any], audit: str, *, extension: str) -> str | list[str]:
    """Path of the weights (safetensors), manifest (json) or pictures (npz) of an audit's mapper; [] without one."""
    mapper = plan.projection_of(config, audit)
    return f"results/mappers/{mapper}.{extension}" if mapper else []


def projection_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the projections of an audit's models on its mapper, in the order of config; [] without a mapper."""
    mapper = plan.projection_of(config, audit)
    models = plan.models_of(config, audit) if mapper else []
    return [f"results/projections/{mapper}/{{dataset}}/{{threat}}/{{model}}.parquet".format(**m) for m in models]


def projection_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of an audit's projections and of its mapper; [] without one."""
    mapper: list[Any] = [mapper_file(config, audit, extension=end) for end in ("safetensors", "json", "npz")]
    return [path for path in [*mapper, *projection_files(config, audit)] if path]
