"""Which mapper an audit projects its classifiers on, and where the files of mappers and projections stand.

Imports nothing heavy, because every run of Snakemake reads it. Expects a complete configuration.
"""

from collections.abc import Mapping
from typing import Any

from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow import plan


def mapper_settings(config: Mapping[str, Any], mapper: str) -> dict[str, Any]:
    """Settings that decide a mapper: its entry without its search, which decides projections only."""
    return {key: value for key, value in config["mappers"][mapper].items() if key != "search"}


def mapper_attributes(config: Mapping[str, Any], mapper: str, dataset: str) -> str | list[str]:
    """Attributes of a dataset's samples for a mapper that takes any; nothing for another one."""
    conditions = mapper_kinds()[config["mappers"][mapper]["kind"]].conditions
    return f"results/attributes/{dataset}.parquet" if conditions else []


def mapper_inputs(config: Mapping[str, Any], mapper: str) -> dict[str, str | list[str]]:
    """What a mapper is trained and described on, by the names of the job's inputs."""
    entry = config["mappers"][mapper]
    names = {"train": entry["train_on"], "test": entry["evaluate_on"]}
    files: dict[str, str | list[str]] = {name: f"results/datasets/{dataset}.json" for name, dataset in names.items()}
    return files | {f"{name}_attributes": mapper_attributes(config, mapper, names[name]) for name in names}


def mapper_file(config: Mapping[str, Any], audit: str, *, extension: str) -> str | list[str]:
    """Weights (safetensors), manifest (json) or pictures (npz) of an audit's mapper; nothing without projections."""
    mapper = plan.projection_of(config, audit)
    return f"results/mappers/{mapper}.{extension}" if mapper else []


def projection_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Samples tables of an audit's models on its mapper, in the order of config; nothing without projections."""
    mapper = plan.projection_of(config, audit)
    models = plan.models_of(config, audit) if mapper else []
    return [f"results/projections/{mapper}/{{dataset}}/{{threat}}/{{model}}.parquet".format(**m) for m in models]


def projection_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Every file that an audit's projections stand on, mapper included; nothing without projections."""
    mapper: list[Any] = [mapper_file(config, audit, extension=end) for end in ("safetensors", "json", "npz")]
    return [path for path in [*mapper, *projection_files(config, audit)] if path]
