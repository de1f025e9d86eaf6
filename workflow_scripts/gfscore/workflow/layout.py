"""Paths of the inputs and outputs of the workflow's steps.

Every function takes a complete configuration and the name of an audit or dataset. Imports nothing heavy, because every
run of Snakemake reads it.
"""

import hashlib
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.verdicts import gate_rules
from gfscore.core.errors import InputError
from gfscore.core.identity import MODEL
from gfscore.measures import from_logits
from gfscore.networks.architecture_files import describe_network, network_files
from gfscore.networks.callables import folder
from gfscore.networks.model_source import model_sources
from gfscore.networks.thread_count import OF_LARGE, threads_for_size
from gfscore.workflow import plan
from gfscore.workflow.projection_layout import projection_results

MAX_HASHED_BYTES = 1 << 20
"""Largest size in bytes of a file that is hashed whenever a run is planned, as Snakemake itself does."""


def logit_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the logits of an audit's models, without missing files of the user."""
    models = [model for model in plan.models_of(config, audit) if plan.has_logits(config, **model)]
    files = [plan.logits_file(config, **model) for model in models]
    return [file for file in files if file.startswith("results/") or present(file)]


def user_logit_states(config: Mapping[str, Any], audit: str) -> dict[str, str | list[int] | None]:
    """State (see `state`) of the logit files of the user, by path."""
    models = [model for model in plan.models_of(config, audit) if plan.entry_of(config, **model)["source"] == "logits"]
    return {file: state(file) for file in (plan.logits_file(config, **model) for model in models)}


def sample_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the sample tables of an audit that are not computed from logits, by model, then measure."""
    return _samples_of(config, plan.subject_of(config, audit))


def judged_sample_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """As sample_files, for the measures that the gate reads; a verdict depends on no others."""
    return _samples_of(config, plan.judged_subject_of(config, audit))


def _samples_of(config: Mapping[str, Any], subject: Mapping[str, Any]) -> list[str]:
    return [
        f"results/samples/{measure}/{MODEL.format(**model)}.parquet"
        for model in subject["models"]
        for measure, entry in subject["measures"].items()
        if not (from_logits(entry) and plan.has_logits(config, **model))
    ]


def pin_checks(config: Mapping[str, Any], audit: str) -> list[str]:
    """Paths of the digest checks of an audit's datasets with a pinned digest, which may be pinned after fetching."""
    pinned = [name for name in plan.datasets_of(config, audit) if plan.pinned_digest_of(config, name)]
    return [f"results/checks/{name}.json" for name in pinned]


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
    """Number of threads for a classifier, by the size of its checkpoint if it exists."""
    if plan.trained_on_cpu(config, dataset, threat, model):
        return 1
    path = plan.entry_of(config, dataset, threat, model).get("path")
    return threads_for_size(Path(path).stat().st_size) if path and _is_file(path) else OF_LARGE


def placed_checkpoint(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> str | list[str]:
    """Checkpoint file of an entry without url, as an input, so that its replacement is noticed; [] for other entries.

    Also [] if the file is missing, which fetch_checkpoint reports.
    """
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    own = entry["source"] != "robustbench" and not entry["url"]
    return present(entry["path"]) if own else []


def present(path: str | None) -> str | list[str]:
    """A file of the user as a job's input if it exists, else [], and the step that reads it reports it.

    With a missing file as input, Snakemake would consider earlier outputs up to date, whatever path the configuration
    has now. Raises InputError for a file in a folder without permission, and for a modification time more than
    MAX_CLOCK_DIFFERENCE in the future, since no output would be newer.
    """
    if not path or not _is_file(path):
        return []
    ahead = Path(path).stat().st_mtime - time.time()
    if ahead > MAX_CLOCK_DIFFERENCE:
        raise InputError(
            f"{path}: its modification time is {ahead / 3600:.1f} hours in the future, so everything made from it "
            f"would be out of date; set it to now with: touch {path}"
        )
    return path


def _is_file(path: str) -> bool:
    # Path.is_file raises PermissionError in a folder without permission.
    try:
        return Path(path).is_file()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be accessed ({error.strerror}); make its folder accessible, or move it"
        ) from error


def given_file(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> str | list[str]:
    """File of values per sample that a model's entry names; [] if it is missing."""
    return present(plan.entry_of(config, dataset, threat, model)["path"])


MAX_CLOCK_DIFFERENCE = 60
"""Largest difference in seconds between the clocks of machines that share files; Snakemake warns of smaller ones."""


def state(file: Any) -> str | list[int] | None:
    """Value that identifies the content of a user's file; None for a missing file or one in results/.

    The SHA-256 digest up to MAX_HASHED_BYTES, so that a copy counts as the same file; size and modification time (ns)
    of larger files.
    """
    if not file or file.startswith("results/") or not _is_file(file):
        return None
    found = Path(file).stat()
    if found.st_size <= MAX_HASHED_BYTES:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return [found.st_size, found.st_mtime_ns]


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
    entry = config["datasets"][dataset]
    if entry["source"] in plan.DRAWN:
        return cast(str, path_of_images(config, dataset))
    # For a folder, the file that lists its images.
    return present(path_of_images(config, dataset)) or present(entry.get("list"))


def generator_files(config: Mapping[str, Any], dataset: str) -> list[str | Path]:
    """File of a user's generator, if it is there, and those of the folder architectures/ that define its network."""
    generator = config["datasets"][dataset]["generator"]
    placed = present(generator["path"])
    return [*([placed] if isinstance(placed, str) else []), *_network_files(generator["architecture"] or "", folder())]


def generator_state(config: Mapping[str, Any], dataset: str) -> list[Any]:
    """State of a user's generator and digest of the code of its network, None without."""
    generator = config["datasets"][dataset]["generator"]
    return [state(generator["path"]), _network_digest(generator["architecture"] or "", folder())]


def attributes_reference(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """Manifest of the dataset that fixes the thresholds of a dataset's attributes; [] without one."""
    name = plan.attributes_of(config, dataset).get("fixed_on")
    return f"results/datasets/{name}.json" if name else []


def attributes_file(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """File of a dataset's attributes; [] if they are part of the dataset, or the file is missing.

    read_attributes reports a missing file.
    """
    return present(plan.attributes_of(config, dataset).get("path"))


def attributes_table(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """Path of the attributes of an audit's samples; [] without groups."""
    dataset = plan.dataset_of(config, audit)
    return f"results/attributes/{dataset}.parquet" if plan.groups_of(config, audit) else []


def gate_attributes(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """As attributes_table, but [] unless a rule of the gate judges groups."""
    rules = config["audits"][audit]["gate"]
    judged = any(rule["statistic"] == gate_rules.GROUP_GAP for rule in rules)
    return attributes_table(config, audit) if judged else []


def architecture_files(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> list[Path]:
    """Files of the folder architectures/ that define a network, in order; [] for other networks."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    return _network_files(entry["architecture"], folder()) if entry["source"] == "torch" else []


def checkpoint_state(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> str | list[Any] | None:
    """State of a user's checkpoint and digest of the code of its network; None without either."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    placed = state(placed_checkpoint(config, zoo, threat, model))
    digest = _network_digest(entry["architecture"], folder()) if entry["source"] == "torch" else None
    return [placed, digest] if digest else placed


@cache
def _network_files(architecture: str, home: Path | str) -> list[Path]:
    # Cached, since every job that loads a classifier needs it; `home` is a key, so that other folders are not mixed up.
    return network_files(architecture)


@cache
def _network_digest(architecture: str, home: Path | str) -> str | None:
    return describe_network(architecture).get("architecture_sha256")


def cost_records(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Path of the cost record of every job of an audit, with step, model and measure, in order."""
    records: list[dict[str, Any]] = []
    own, mappers = plan.dataset_of(config, audit), plan.mappers_of(config, audit)
    for model in plan.models_of_tasks(config, audit):
        source = plan.entry_of(config, **model)["source"]
        of_zoo = {**model, "dataset": plan.zoo_of(config, model["dataset"])}
        fitted_by = model_sources()[source].fitted_by
        records += [_cost(fitted_by, of_zoo, model=model)] if fitted_by else []
        records += [] if source in plan.GIVEN else [_cost("extract_logits", model)]
        for measure in plan.measures_of(config, audit) if model["dataset"] == own else ():
            step = "import_samples" if source == "samples" else plan.step_of(config, measure)
            records += [_cost(step, model, measure=measure)]
        records += [_cost("project_attributes", model, folder=mapper) for mapper in mappers]
    return records


def _cost(
    step: str,
    place: Mapping[str, str],
    *,
    model: Mapping[str, str] | None = None,
    measure: str | None = None,
    folder: str | None = None,
) -> dict[str, Any]:
    # The path of the job's log: in a folder named after the measure, or what else distinguishes its jobs.
    folder = folder or measure
    path = f"results/costs/{step}/{f'{folder}/' if folder else ''}{MODEL.format(**place)}.json"
    return {"step": step, **(model or place), "measure": measure, "path": path}


def table_settings(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """Settings of the tables of an audit."""
    settings = {name: config[name] for name in ("intervals", "disparity", "comparison", "confusions")}
    return settings | {
        "calibration": _calibration_settings(config, audit),
        "corruption_baseline": plan.corruption_baseline_of(config, audit),
        "groups": _group_settings(config, audit),
        "tasks": _task_settings(config, audit),
        "label_error_rate": plan.label_error_rate_of(config, audit),
        "published": plan.published_accuracies(config, audit),
        "methods": plan.described_models(config, audit),
        "costs": cost_records(config, audit),
    }


def _group_settings(config: Mapping[str, Any], audit: str, task: str | None = None) -> dict[str, Any] | None:
    groups = plan.groups_of(config, audit)
    return groups and groups | {"positive": plan.positive_of(config, audit, task or plan.dataset_of(config, audit))}


def _task_settings(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    return [
        {
            "models": plan.models_of(config, audit, task),
            "own_attribute": plan.own_attribute(config, task),
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
    files += pin_checks(config, audit)
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
