"""Where the files of results/ stand that a step of the workflow asks for.

Every function takes a complete configuration and the name of an audit or dataset. Imports nothing
heavy, because every run of Snakemake reads it.
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

SMALL = 1 << 20
"""Bytes of a file that is read whenever a run is planned, as Snakemake itself does."""


def logit_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Logits of every model of an audit that has any, but files of the user that are missing."""
    models = [model for model in plan.models_of(config, audit) if plan.has_logits(config, **model)]
    files = [plan.logits_file(config, **model) for model in models]
    return [file for file in files if file.startswith("results/") or present(file)]


def given_states(config: Mapping[str, Any], audit: str) -> dict[str, str | list[int] | None]:
    """What tells the logits that users placed from others in their place, by path."""
    models = [model for model in plan.models_of(config, audit) if plan.entry_of(config, **model)["source"] == "logits"]
    return {file: state(file) for file in (plan.logits_file(config, **model) for model in models)}


def sample_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Sample tables of an audit that stand in files of their own, the measures of the first model first."""
    return _samples_of(config, plan.subject_of(config, audit))


def judged_sample_files(config: Mapping[str, Any], audit: str) -> list[str]:
    """Those of the measures that its gate reads: a verdict waits for no other."""
    return _samples_of(config, plan.judged_subject_of(config, audit))


def _samples_of(config: Mapping[str, Any], subject: Mapping[str, Any]) -> list[str]:
    return [
        f"results/samples/{measure}/{MODEL.format(**model)}.parquet"
        for model in subject["models"]
        for measure, entry in subject["measures"].items()
        if not (from_logits(entry) and plan.has_logits(config, **model))
    ]


def pin_checks(config: Mapping[str, Any], audit: str) -> list[str]:
    """Checks of the datasets of an audit whose digest is pinned, which may have happened after they were fetched."""
    pinned = [name for name in plan.datasets_of(config, audit) if plan.pinned_digest_of(config, name)]
    return [f"results/checks/{name}.json" for name in pinned]


def checkpoint_file(
    config: Mapping[str, Any], dataset: str, threat: str, model: str, *, extension: str
) -> str | list[str]:
    """Checkpoint of a model (safetensors) or its manifest (json), one for all data of its zoo.

    Classifiers of others stay where their manifest says, so they have no checkpoint file in results/.
    """
    zoo = plan.zoo_of(config, dataset)
    if plan.entry_of(config, dataset, threat, model)["source"] in plan.FITTED:
        return f"results/trained/{zoo}/{threat}/{model}.{extension}"
    return f"results/checkpoints/{zoo}/{threat}/{model}.json" if extension == "json" else []


def threads_of_model(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> int:
    """Threads that the arithmetic of a classifier takes, as far as its checkpoint is there to tell."""
    if plan.trained_on_cpu(config, dataset, threat, model):
        return 1
    path = plan.entry_of(config, dataset, threat, model).get("path")
    return threads_for_size(Path(path).stat().st_size) if path and Path(path).is_file() else OF_LARGE


def placed_checkpoint(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> str | list[str]:
    """Checkpoint file of an entry without url, so that another file in its place is noticed; nothing for other entries.

    Nothing either where the file is missing: fetch_checkpoint says what to do about it.
    """
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    own = entry["source"] != "robustbench" and not entry["url"]
    return present(entry["path"]) if own else []


def present(path: str | None) -> str | list[str]:
    """A file of the user as a job's input, where there is one, else nothing: the step that reads it says what to do.

    An input that is missing would not do. For Snakemake what was made of it before is up to date then, whatever path
    the configuration has now. InputError for a file from the future, beyond CLOCKS_APART: nothing made of it is newer;
    and for one in a folder that may not be entered.
    """
    try:
        if not path or not Path(path).is_file():
            return []
    except OSError as error:
        raise InputError(
            f"{path}: cannot be looked at ({error.strerror}); make its folder accessible, or move it"
        ) from error
    ahead = Path(path).stat().st_mtime - time.time()
    if ahead > CLOCKS_APART:
        raise InputError(
            f"{path}: its time of change lies {ahead / 3600:.1f} hours in the future, so all that is made of it would "
            f"be out of date at once; set it to now with: touch {path}"
        )
    return path


def given_file(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> str | list[str]:
    """File of values per sample that a model's entry names; nothing where it is missing."""
    return present(plan.entry_of(config, dataset, threat, model)["path"])


CLOCKS_APART = 60
"""Seconds by which the clocks of machines that share files may differ; Snakemake itself tells of less."""


def state(file: Any) -> str | list[int] | None:
    """What tells a file that a user placed from another one; None for none, a missing one, or one of results/.

    Its SHA-256 up to SMALL bytes, so that a copy is the same file, and size and time of change (ns) beyond.
    """
    if not file or file.startswith("results/") or not Path(file).is_file():
        return None
    found = Path(file).stat()
    if found.st_size <= SMALL:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return [found.st_size, found.st_mtime_ns]


def classifier_files(
    config: Mapping[str, Any], dataset: str, threat: str, model: str
) -> dict[str, str | list[str] | list[Path]]:
    """What a job needs that shows images to a classifier, by the names of its inputs."""
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
    """Manifests of the classifiers of an audit that the workflow trains: they record the measured robust accuracy."""
    return [
        checkpoint_file(config, **model, extension="json")
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] == "trained"
    ]


def fetched_manifests(config: Mapping[str, Any], audit: str) -> list[str]:
    """Manifests of the checkpoints, or backbones, of an audit that are fetched or placed by hand."""
    zoo = plan.zoo_of(config, plan.dataset_of(config, audit))
    return [
        f"results/checkpoints/{zoo}/{model['threat']}/{model['model']}.json"
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] in plan.FETCHED
    ]


def dataset_file(config: Mapping[str, Any], audit: str, *, extension: str) -> str:
    """Manifest (json) or samples (parquet) of the data that an audit evaluates."""
    return f"results/datasets/{plan.dataset_of(config, audit)}.{extension}"


def generator_manifest(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """Manifest of the generator that measured an audit's label-error rates; nothing when config states them."""
    measured = plan.label_error_rate_of(config, audit) == "from_generator"
    return f"results/generated/{plan.dataset_of(config, audit)}.json" if measured else []


def path_of_images(config: Mapping[str, Any], dataset: str) -> str | None:
    """File or folder that holds the images of a dataset; None where they ship with a package."""
    entry = config["datasets"][dataset]
    return f"results/generated/{dataset}.npz" if entry["source"] == "generated" else entry.get("path")


def stored_images(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """The same where it is one file, which jobs depend on; nothing for folders, whose times of change say little.

    Nothing either where it is missing, unless the workflow makes it.
    """
    entry = config["datasets"][dataset]
    if entry["source"] == "generated":
        return cast(str, path_of_images(config, dataset))
    # The file that names the images of a folder decides which there are.
    return present(path_of_images(config, dataset)) or present(entry.get("list"))


def attributes_reference(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """Manifest of the dataset whose samples fix the thresholds of a dataset's attributes; nothing where none does."""
    name = plan.attributes_of(config, dataset).get("fixed_on")
    return f"results/datasets/{name}.json" if name else []


def attributes_file(config: Mapping[str, Any], dataset: str) -> str | list[str]:
    """File that a dataset's attributes are read from; nothing where that is the dataset itself.

    Nothing either where the file is missing: read_attributes says what to do about it.
    """
    return present(plan.attributes_of(config, dataset).get("path"))


def attributes_table(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """Attributes of the samples that an audit evaluates; nothing when it compares no groups."""
    dataset = plan.dataset_of(config, audit)
    return f"results/attributes/{dataset}.parquet" if plan.groups_of(config, audit) else []


def gate_attributes(config: Mapping[str, Any], audit: str) -> str | list[str]:
    """The same when a rule of its gate judges groups."""
    rules = config["audits"][audit]["gate"]
    judged = any(rule["statistic"] == gate_rules.GROUP_GAP for rule in rules)
    return attributes_table(config, audit) if judged else []


def architecture_files(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> list[Path]:
    """Files of the project's folder architectures/ that make a network, in order; nothing for all other networks."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    return _network_files(entry["architecture"], folder()) if entry["source"] == "torch" else []


def checkpoint_state(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> str | list[Any] | None:
    """What tells an entry's checkpoint and the code of its network from others in their places; None for neither."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    placed = state(placed_checkpoint(config, zoo, threat, model))
    digest = _network_digest(entry["architecture"], folder()) if entry["source"] == "torch" else None
    return [placed, digest] if digest else placed


@cache
def _network_files(architecture: str, home: Path | str) -> list[Path]:
    # Once in a run, since every job that opens a classifier asks; by the folder, so that another one is another answer.
    return network_files(architecture)


@cache
def _network_digest(architecture: str, home: Path | str) -> str | None:
    return describe_network(architecture).get("architecture_sha256")


def cost_records(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Where the cost of every job stands that an audit's values come from, with what it was spent on, in order."""
    records: list[dict[str, Any]] = []
    for model in plan.models_of(config, audit):
        source = plan.entry_of(config, **model)["source"]
        of_zoo = {**model, "dataset": plan.zoo_of(config, model["dataset"])}
        fitted_by = model_sources()[source].fitted_by
        records += [_cost(fitted_by, of_zoo, model=model)] if fitted_by else []
        records += [] if source in plan.GIVEN else [_cost("extract_logits", model)]
        for measure in plan.measures_of(config, audit):
            step = "import_samples" if source == "samples" else plan.step_of(config, measure)
            records += [_cost(step, model, measure=measure)]
        mapper = plan.projection_of(config, audit)
        records += [_cost("project_attributes", model, folder=mapper)] if mapper else []
    return records


def _cost(
    step: str,
    place: Mapping[str, str],
    *,
    model: Mapping[str, str] | None = None,
    measure: str | None = None,
    folder: str | None = None,
) -> dict[str, Any]:
    # As the job's log: in a folder named after the measure, or after what else tells its jobs apart.
    folder = folder or measure
    path = f"results/costs/{step}/{f'{folder}/' if folder else ''}{MODEL.format(**place)}.json"
    return {"step": step, **(model or place), "measure": measure, "path": path}


def table_settings(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """What the tables of an audit are made with, beside its values."""
    settings = {name: config[name] for name in ("intervals", "disparity", "comparison", "confusions")}
    return settings | {
        "calibration": _calibration_settings(config, audit),
        "groups": plan.groups_of(config, audit),
        "label_error_rate": plan.label_error_rate_of(config, audit),
        "published": plan.published_accuracies(config, audit),
        "methods": plan.described_models(config, audit),
        "costs": cost_records(config, audit),
    }


def _calibration_settings(config: Mapping[str, Any], audit: str) -> dict[str, Any] | None:
    asked, great = config["audits"][audit]["calibration"], config["great"]
    if not asked:
        return None
    shared = {name: great[name] for name in ("temperatures", "stability_window", "resampling")}
    own = {"objectives": asked["objectives"], "split": asked["split"]}
    return shared | own | {"distances": plan.distance_measure(config, audit)}


def audit_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Every file of results/audits/<audit>/: naming them all heals the loss of any of them."""
    names = [f"{table}.{extension}" for table in TABLES_OF_AUDIT for extension in ("parquet", "csv")]
    names += [f"{name}.json" for name in ("calibration", "comparison", "models", "verdict")]
    names += ["config.yaml", "figures", "report.html"]
    return [f"results/audits/{audit}/{name}" for name in names]


# What a target of the Snakefile names, beside its own file, is every file that this one stands on: a step that fails
# loses its output, and what stands on a file that is gone must not count as up to date.


def logit_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Checked logits of an audit, every file that they stand on, and the checks of pinned digests."""
    models = plan.models_of(config, audit)
    datasets = plan.datasets_of(config, audit)
    files: list[Any] = [
        f"results/datasets/{name}.{extension}" for name in datasets for extension in ("json", "parquet")
    ]
    files += pin_checks(config, audit)
    made = [name for name in datasets if config["datasets"][name]["source"] == "generated"]
    files += [f"results/generated/{name}.{extension}" for name in made for extension in ("npz", "json")]
    files += fetched_manifests(config, audit)
    fitted = [model for model in models if plan.entry_of(config, **model)["source"] in plan.FITTED]
    files += [checkpoint_file(config, **model, extension=end) for model in fitted for end in ("safetensors", "json")]
    scored = [f"results/{stage}/{audit}.parquet" for stage in ("scores", "sweeps")]
    return files + logit_files(config, audit) + scored + [f"results/audits/{audit}/models.json"]


def sample_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Values per sample of an audit, and every file that they stand on."""
    attributes: Any = attributes_table(config, audit)
    return logit_results(config, audit) + sample_files(config, audit) + ([attributes] if attributes else [])


def verdict_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Verdict of an audit, and every file that it stands on: of all measures, since it says what attacks say."""
    tables = [f"results/audits/{audit}/{name}.parquet" for name in TABLES_OF_AUDIT]
    return [f"results/audits/{audit}/verdict.json", *tables, *model_results(config, audit)]


def model_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Every file per model that an audit stands on."""
    return sample_results(config, audit) + projection_results(config, audit)


def report_results(config: Mapping[str, Any], audit: str) -> list[str]:
    """Report of an audit, and every file that it stands on."""
    return audit_results(config, audit) + model_results(config, audit)
