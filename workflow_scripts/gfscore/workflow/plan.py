"""Queries of a complete configuration (gfscore.workflow.resolving): audits with their models, measures and datasets."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gfscore.audit.verdicts import gate_rules
from gfscore.core.identity import MODEL, label_of
from gfscore.images.dataset_source import dataset_sources
from gfscore.measures import kind_of, reference_measure
from gfscore.networks import leaderboard
from gfscore.networks.model_source import PUBLISHED, Gives, model_sources

CHECKPOINTS = "checkpoints"
"""Folder of downloaded checkpoints, beside config.yaml; may be a link to a larger disk."""
NOTHING = "(?!)"
"""Regular expression that matches nothing."""

STEPS = {"logits": "score_models", "network": "measure_model"}
"""Step that computes a measure, by the input that its kind needs."""

GIVEN = {"logits", "samples"}
"""Sources of models given as values, which cannot classify images."""

FETCHED = {name for name, source in model_sources().items() if source.fetched}
"""Sources whose checkpoint, for a probe the backbone, is located or downloaded by fetch_checkpoint."""

FITTED = {name for name, source in model_sources().items() if source.fitted}
"""Sources whose weights, all or those of the last layer, the workflow trains."""


DRAWN = {name for name, source in dataset_sources().items() if source.drawn}
"""Sources whose images the workflow draws from a generator."""


def one_of(names: Iterable[str]) -> str:
    """Regular expression that matches exactly these names; nothing if there are none."""
    return "|".join(map(re.escape, names)) or NOTHING


def dataset_of(config: Mapping[str, Any], audit: str) -> str:
    """Dataset that an audit evaluates."""
    return config["audits"][audit]["dataset"]


def tasks_of(config: Mapping[str, Any], audit: str) -> list[str]:
    """Datasets whose labels the models of an audit's projections predict: its own, then those of the same images."""
    return [dataset_of(config, audit), *config["audits"][audit]["tasks"]]


def models_of(config: Mapping[str, Any], audit: str, task: str | None = None) -> list[dict[str, str]]:
    """Models of an audit as mappings with dataset, threat, model, in the order of config.

    For one of its tasks, those of the same names in the zoo of that dataset.
    """
    dataset = task or dataset_of(config, audit)
    names = (name.split("/") for name in config["audits"][audit]["models"])
    return [{"dataset": dataset, "threat": threat, "model": model} for _, threat, model in names]


def models_of_tasks(config: Mapping[str, Any], audit: str) -> list[dict[str, str]]:
    """Models of all tasks of an audit, as models_of, the first task first."""
    return [model for task in tasks_of(config, audit) for model in models_of(config, audit, task)]


def known_models(config: Mapping[str, Any], zoo: str, threat: str) -> list[str]:
    """Names of a zoo's models for one threat model: entries of config, then models of RobustBench without an entry."""
    entries = list(config["models"].get(zoo, {}).get(threat, {}))
    listed = [listing.model for listing in leaderboard.listings(zoo, threat) if listing.supported]
    return entries + [name for name in listed if name not in entries]


def described_models(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Models of an audit with their training `method` and `architecture`, None if unknown, for the report."""
    described = []
    for model in models_of(config, audit):
        training = entry_of(config, **model).get("training", {})
        described.append({**model, "method": training.get("method"), "architecture": training.get("architecture")})
    return described


def zoo_of(config: Mapping[str, Any], dataset: str) -> str:
    """Zoo (key of `models`) whose models are evaluated on a dataset."""
    return config["datasets"][dataset]["models_of"]


def is_downloaded(entry: Mapping[str, Any]) -> bool:
    """Whether the workflow downloads the files of a model where they are missing."""
    return bool(entry.get("url")) or entry["source"] == "robustbench"


def entry_of(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> Mapping[str, Any]:
    """Settings of a model: its entry, or else those from RobustBench's table."""
    return zoo_entry_of(config, zoo_of(config, dataset), threat, model)


def zoo_entry_of(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> Mapping[str, Any]:
    """As entry_of, by the zoo instead of a dataset."""
    entries = config["models"].get(zoo, {}).get(threat, {})
    return entries[model] if model in entries else leaderboard.entry(zoo, threat, model, folder=CHECKPOINTS)


def checkpoint_settings_of(config: Mapping[str, Any], zoo: str, threat: str, model: str) -> dict[str, Any]:
    """Settings that determine a fetched classifier: its entry without published figures."""
    entry = zoo_entry_of(config, zoo, threat, model)
    return {key: value for key, value in entry.items() if key not in PUBLISHED}


def zoo_models_from(config: Mapping[str, Any], source: str) -> str:
    """Regular expression that matches "zoo/threat/model" for every model from a source."""
    return one_of(map("/".join, _entries_from(config, source)))


def subjects_from(config: Mapping[str, Any], source: str) -> str:
    """Regular expression that matches "dataset/threat/model" for every model from a source."""
    entries = _entries_from(config, source)
    zoos = {dataset: settings["models_of"] for dataset, settings in config["datasets"].items()}
    return one_of(f"{name}/{threat}/{model}" for name in zoos for zoo, threat, model in entries if zoo == zoos[name])


def _entries_from(config, source):
    # Zoo, threat and name of each entry from a source.
    return [
        (zoo, threat, model)
        for zoo, threats in config["models"].items()
        for threat, entries in threats.items()
        for model, entry in entries.items()
        if entry["source"] == source
    ]


def has_logits(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> bool:
    """Whether a model has logits, not only values per sample."""
    return entry_of(config, dataset, threat, model)["source"] != "samples"


def given_by(model: Mapping[str, Any]) -> Gives:
    """What the model of an entry provides."""
    return model_sources()[model["source"]].given_by(model)


def serves(gives: Gives, measure: Mapping[str, Any]) -> bool:
    """Whether models that provide this have what a measure, an entry of the section `measures`, needs."""
    kind = kind_of(measure)
    settings = kind.parse(measure)
    if kind.elsewhere and kind.elsewhere(settings) != (gives == "samples"):
        return False
    if gives == "samples":
        return bool(kind.imported)
    if kind.needs == "logits":
        return True
    return gives == "gradients" or (gives == "predictions" and not kind.gradients(settings))


def image_settings_of(config: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Settings that determine the images of a dataset: its source and the keys of that source."""
    other = {"classes", "models_of", "label_error_rate", "published_accuracy", "fitted_on", "generator", "path"}
    other |= {"attributes", "digest"}
    return {key: value for key, value in config["datasets"][dataset].items() if key not in other}


def attribute_names(attributes: Mapping[str, Any]) -> list[str]:
    """Names of the columns that an entry `attributes` lists; none if it reads all columns."""
    return [column if isinstance(column, str) else column["column"] for column in attributes.get("columns") or ()]


def positive_of(config: Mapping[str, Any], audit: str, task: str) -> str | None:
    """Positive class of one of an audit's tasks, or None."""
    positive = config["audits"][audit]["groups"]["positive"]
    if isinstance(positive, Mapping):
        return positive.get(task)
    return positive if task == dataset_of(config, audit) else None


def mappers_of(config: Mapping[str, Any], audit: str) -> list[str]:
    """Mappers of an audit's projections."""
    named = config["audits"][audit]["projection"] or []
    return [named] if isinstance(named, str) else named


def measures_of(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """Measures of an audit with their settings, in the order of config."""
    return {name: config["measures"][name] for name in config["audits"][audit]["measures"]}


def distance_measure(config: Mapping[str, Any], audit: str) -> str | None:
    """Measure of the l2 attack distances that an audit is calibrated with, or None."""
    calibration = config["audits"][audit]["calibration"]
    if not calibration or "attack_distance" not in calibration["objectives"]:
        return None
    return next(iter(_l2_distances(config, audit)), None)


def _l2_distances(config: Mapping[str, Any], audit: str) -> list[str]:
    measures = measures_of(config, audit).items()
    return [name for name, entry in measures if entry["kind"] == "minimal" and entry["norm"] == "l2"]


def subject_of(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """Models, measures, calibrated measure and files of logits of an audit.

    `given` maps the labels of models that are given as values to their source, "logits" or "samples".
    """
    models = models_of(config, audit)
    sources = {label_of(model): entry_of(config, **model)["source"] for model in models}
    return {
        "models": models,
        "measures": measures_of(config, audit),
        "calibrated_measure": (config["audits"][audit]["calibration"] or {}).get("measure"),
        "given": {label: source for label, source in sources.items() if source in GIVEN},
        "logits": {label_of(model): logits_file(config, **model) for model in models if has_logits(config, **model)},
    }


def logits_file(config: Mapping[str, Any], dataset: str, threat: str, model: str) -> str:
    """Path of a model's logits: in results/, or the file that its entry names."""
    entry = entry_of(config, dataset, threat, model)
    computed = f"results/logits/{MODEL.format(dataset=dataset, threat=threat, model=model)}.parquet"
    return entry["path"] if entry["source"] == "logits" else computed


def logit_checks(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Settings of the check of the logits, for each model of an audit that has logits.

    `gate` compares its clean accuracy with the published one.
    """
    return [
        {
            "model": model,
            "gate": {
                "published": entry["published_clean_accuracy"],
                "tolerance": entry["clean_accuracy_tolerance"],
                "samples": config["datasets"][model["dataset"]]["published_accuracy"],
                "on_failure": config["checks"]["published_accuracy"],
            },
            "member": entry.get("member"),
            "allow_probabilities": entry.get("allow_probabilities", False),
        }
        for model in models_of(config, audit)
        for entry in [entry_of(config, **model)]
        if has_logits(config, **model)
    ]


def judged_subject_of(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """As subject_of, with only the measures that the gate reads: those of its rules, and the attacks that falsify them.

    If none of these is computed from logits, a measure from logits is added, to check that one network gave all values.
    """
    rules = config["audits"][audit]["gate"]
    judged = {rule["measure"] for rule in rules}
    if any(rule["statistic"] == gate_rules.FALSIFICATION for rule in rules):
        judged |= set(_l2_distances(config, audit))
    subject = subject_of(config, audit)
    own = {name: entry for name, entry in subject["measures"].items() if name in judged}
    if own and not reference_measure(own):
        judged.add(reference_measure(subject["measures"]))
    return subject | {"measures": {name: entry for name, entry in subject["measures"].items() if name in judged}}


def published_accuracies(config: Mapping[str, Any], audit: str) -> list[dict[str, Any]]:
    """Published clean and robust accuracy of each model of an audit, fractions or None, in the order of config."""
    entries = [entry_of(config, **model) for model in models_of(config, audit)]
    names = ("published_clean_accuracy", "published_robust_accuracy")
    return [{name: entry[name] for name in names} for entry in entries]


def uncompared_datasets(config: Mapping[str, Any]) -> list[str]:
    """Datasets, sorted, of the audits to run whose published clean accuracies are not compared with measured ones."""
    stated = {
        dataset_of(config, audit)
        for audit in config["run"]
        for known in published_accuracies(config, audit)
        if known["published_clean_accuracy"] is not None
    }
    return sorted(name for name in stated if config["datasets"][name]["published_accuracy"] is None)


def datasets_of(config: Mapping[str, Any], audit: str) -> list[str]:
    """Names, sorted, of all datasets that an audit uses for evaluation or training."""
    tasks, entries = tasks_of(config, audit), [entry_of(config, **model) for model in models_of_tasks(config, audit)]
    names = set(tasks)
    for entry in [*entries, *(config["mappers"][mapper] for mapper in mappers_of(config, audit))]:
        names |= {entry[key] for key in ("train_on", "evaluate_on") if key in entry}
    if config["audits"][audit]["groups"]:
        references = [(config["datasets"][task]["attributes"] or {}).get("fixed_on") for task in tasks]
        names |= {name for name in references if name}
    return sorted(names)


def datasets_from(config: Mapping[str, Any], source: str) -> str:
    """Regular expression that matches every dataset from a source."""
    return one_of([name for name, entry in config["datasets"].items() if entry["source"] == source])


def step_of(config: Mapping[str, Any], measure: str) -> str:
    """Step that computes a measure, for models whose values are not imported."""
    return STEPS[kind_of(config["measures"][measure]).needs]


def names_of_network_measures(config: Mapping[str, Any]) -> str:
    """Regular expression that matches the names of the measures that need a network; nothing if there are none."""
    return one_of(name for name, entry in config["measures"].items() if kind_of(entry).needs == "network")
