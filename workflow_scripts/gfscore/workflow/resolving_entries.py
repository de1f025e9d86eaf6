"""Resolving the sections of entries but for the audits: datasets, models, measures and mappers."""

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

from gfscore.core.errors import unknown_name
from gfscore.core.settings import PlainSettings
from gfscore.images.attribute_source import attribute_sources
from gfscore.images.dataset_source import dataset_sources
from gfscore.measures import KINDS
from gfscore.measures.names import entry_named, usual_names
from gfscore.networks import leaderboard
from gfscore.networks.model_source import model_sources
from gfscore.networks.sources import adjusted, robustbench
from gfscore.workflow.config_files import KeyPath, Mark, Marked, MarkedList, mark_of, marked, merge, shown
from gfscore.workflow.entries import CHECKPOINTS, model_entries, zoo_models
from gfscore.workflow.remedies import KIND
from gfscore.workflow.resolution import Draft

THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; "none" for models without a particular one."""

DEFAULTS = "defaults"
"""Key of a zoo, next to the threat models, for the defaults of its entries."""

REPLACED_KEYS = ("arguments",)
"""Mappings of a model that replace the defaults as a whole, since they belong to its architecture."""

CLAIMED_BY_FILE = ("onnx", "logits", "samples")
"""Sources of models that need only a file, without further settings."""


# ---- datasets ----


def resolve_datasets(draft: Draft) -> None:
    """Resolve the section `datasets`."""
    zoos = list(draft.written["models"])
    zoos += [listing.dataset for listing in leaderboard.listings()]
    zoos = list(dict.fromkeys(zoos))

    datasets = draft.config["datasets"]
    for name, entry in draft.entries("datasets"):
        key_path = ("datasets", name)
        source = draft.choose("source", entry, dataset_sources(), key_path)
        if source is None:
            continue
        settings = draft.parsed(source.settings, {**entry, "source": source.name}, key_path)
        if settings is None:
            continue

        explicit = settings.explicit()
        if explicit["classes"] is None:
            explicit["classes"] = source.class_names(settings)
        if explicit["attributes"] is not None:
            path_of_attributes = (*key_path, "attributes")
            draft.require_mapping(*path_of_attributes)
            written = draft.written["datasets"][name]["attributes"]
            explicit["attributes"] = draft.explicit("source", written, attribute_sources(), path_of_attributes)
        if "models_of" not in settings.model_fields_set:
            explicit["models_of"] = name if name in zoos else None
        elif explicit["models_of"] not in (None, *zoos):
            draft.add_mistake(unknown_name("zoo", explicit["models_of"], zoos), *key_path, "models_of")
            continue
        datasets[name] = explicit

    for explicit in datasets.values():
        if explicit["source"] == "generated" and explicit["classes"] is None:
            # A generator has the classes of the dataset that it is fitted on.
            explicit["classes"] = datasets.get(explicit["fitted_on"], {}).get("classes")


# ---- models ----


def name_files(draft: Draft) -> None:
    """Add an entry for each file that an audit names as a model, in the zoo of the audit's dataset.

    Its name is the file's without extension, followed by four characters of its digest if another file has that name.
    """
    for entry in draft.written["audits"].values():
        if not isinstance(entry, Marked):
            continue
        names = entry.get("models")
        if not isinstance(names, MarkedList):
            continue
        dataset_name = entry.get("dataset")
        if not isinstance(dataset_name, str):
            continue
        dataset = draft.written["datasets"].get(dataset_name)
        if not isinstance(dataset, Marked):
            continue
        zoo = dataset.get("models_of") or dataset_name
        for position, name in enumerate(names):
            if isinstance(name, str) and _is_file(draft, name):
                names[position] = f"{zoo}/none/{_add_file(draft, zoo, name, names.marks[position])}"


def _is_file(draft: Draft, name: str) -> bool:
    # Whether the name of a model names a file, not an entry.
    entry: Any = draft.written["models"]
    for step in name.split("/"):
        entry = entry.get(step) if isinstance(entry, Marked) else None
    if entry is not None:
        return False
    return any(model_sources()[source].claims({"path": name}) for source in CLAIMED_BY_FILE)


def _add_file(draft: Draft, zoo: str, path: str, mark: Mark) -> str:
    # Adds the entry of a file, and returns its name.
    entries = draft.written["models"]
    for step in (zoo, "none"):
        if not isinstance(entries.get(step), Marked):
            entries[step] = Marked()
            entries.marks[step] = mark
        entries = entries[step]

    name = PurePosixPath(path).name.removesuffix(".gz").rpartition(".")[0]
    if name in entries and entries[name].get("path") != path:
        content = Path(path).read_bytes() if Path(path).is_file() else path.encode()
        name = f"{name}-{hashlib.sha256(content).hexdigest()[:4]}"
    entries[name] = Marked({"path": path}, {"path": mark})
    entries.marks[name] = mark
    return name


def expand_models(draft: Draft) -> None:
    """Merge the defaults of each zoo into its entries."""
    for zoo, threats in draft.entries("models"):
        defaults = threats.pop(DEFAULTS, None)
        if defaults is not None and not isinstance(defaults, Marked):
            draft.add_mistake(f"{shown(defaults)} does not fit; give a mapping", "models", zoo, DEFAULTS)
            defaults = None
        for threat in list(threats):
            if threat not in THREATS:
                draft.add_mistake(unknown_name("threat", threat, [*THREATS, DEFAULTS]), "models", zoo, threat)
                continue
            draft.require_mapping("models", zoo, threat)
            # Entries that an alias shares with another zoo stay without the defaults of this one.
            threats[threat] = Marked(threats[threat], threats[threat].marks)
            for name, entry in draft.entries("models", zoo, threat):
                # Defaults are those of networks, which a model with offsets is not.
                if defaults is not None and not adjusted.SOURCE.claims(entry):
                    threats[threat][name] = merge(defaults, entry, replaced=REPLACED_KEYS)


def resolve_models(draft: Draft) -> None:
    """Resolve the section `models`; models must be expanded and datasets resolved."""
    for zoo, threats in draft.written["models"].items():
        resolved = draft.config["models"].setdefault(zoo, {})
        for threat in THREATS:
            if threat not in threats:
                continue
            resolved[threat] = {}
            for name, entry in threats[threat].items():
                if isinstance(entry, Marked):
                    resolved[threat][name] = _model(draft, entry, zoo, threat, name)


def _model(draft: Draft, entry: Marked, zoo: str, threat: str, name: str) -> PlainSettings | None:
    key_path = ("models", zoo, threat, name)
    source = draft.choose("source", entry, model_sources(), key_path)
    if source is None:
        return None
    data = {**entry, "source": source.name}
    if source is robustbench.SOURCE:
        data = robustbench.completed(data, zoo, threat, name, folder=CHECKPOINTS)
    settings = draft.parsed(source.settings, data, key_path)
    if settings is None:
        return None
    explicit = settings.explicit()
    if explicit.get("evaluate_on", "") is None:
        explicit["evaluate_on"] = _evaluating_dataset(draft, zoo, key_path)
    return explicit


def require_adjustable(draft: Draft) -> None:
    """Add mistakes in the models with offsets: all other entries must be resolved."""
    for zoo, threat, name, entry in model_entries(draft.config["models"]):
        # None has mistakes of its own.
        if entry is None or entry["source"] != adjusted.SOURCE.name:
            continue
        key_path = ("models", zoo, threat, name)
        original_threat, _, original = entry["of"].partition("/")
        names = zoo_models(draft.config["models"], zoo, original_threat)
        if original not in names:
            draft.add_mistake(unknown_name(f"model of {zoo}/{original_threat}", original, names), *key_path, "of")
        else:
            reason = no_gradients(draft, f"{zoo}/{original_threat}/{original}")
            if reason:
                draft.add_mistake(f"{entry['of']}: {reason}", *key_path, "of")

        datasets = draft.config["datasets"]
        dataset = datasets.get(entry["choose_on"])
        if dataset is None:
            draft.add_mistake(unknown_name("dataset", entry["choose_on"], datasets), *key_path, "choose_on")
        elif dataset["models_of"] != zoo:
            message = f"{entry['choose_on']!r} has models_of: {dataset['models_of']}; name data with models_of: {zoo}"
            draft.add_mistake(message, *key_path, "choose_on")
        else:
            message = wrong_weights(entry["class_weights"], dataset["classes"])
            if message:
                draft.add_mistake(message, *key_path, "class_weights")

        if entry["measure"] not in draft.config["measures"]:
            mark = mark_of(draft.written, (*key_path, "measure"))
            assert mark is not None  # somebody wrote the entry
            add_named_measure(draft, entry["measure"], (*key_path, "measure"), mark)
        measure = draft.config["measures"].get(entry["measure"])
        if measure is not None and measure["kind"] != KIND:
            message = f"{entry['measure']!r} is of kind {measure['kind']}; offsets are chosen under one of kind {KIND}"
            draft.add_mistake(message, *key_path, "measure")


def model_entry(draft: Draft, model: str) -> PlainSettings:
    """Resolved entry of a model zoo/threat/name; of a model of RobustBench without an entry, its source alone."""
    zoo, threat, name = model.split("/")
    entry = draft.config["models"].get(zoo, {}).get(threat, {}).get(name)
    return entry or {"source": robustbench.SOURCE.name}


def no_gradients(draft: Draft, model: str) -> str:
    """Why offsets cannot be chosen for a model zoo/threat/name, with the remedy; empty where they can."""
    entry = model_entry(draft, model)
    source = model_sources()[entry["source"]]
    if source is adjusted.SOURCE:
        return f"has offsets itself; name the model that they are added to, {entry['of']}"
    if source.given_by(entry) == "gradients":
        return ""
    reason = f"gives no gradients (source {source.name}), and offsets are chosen under attacks that follow them"
    if source.name == "onnx":
        return f"{reason}; set gradients: true in its entry"
    return f"{reason}; give the network, or leave the model out"


def wrong_weights(weights: list[float] | None, classes: list[str] | None) -> str:
    """What is wrong with weights of classes, empty where nothing is; only the data may contain the classes (None)."""
    if weights is None or classes is None or len(weights) == len(classes):
        return ""
    return f"{len(weights)} weights for {len(classes)} classes; give one for each"


def _evaluating_dataset(draft: Draft, zoo: str, key_path: KeyPath) -> str | None:
    # Default of evaluate_on: the dataset of the zoo's name, or the only one, but for halves, that evaluates its models.
    datasets = draft.config["datasets"]
    evaluating = []
    for name, dataset in datasets.items():
        if dataset["models_of"] == zoo and "half" not in dataset:
            evaluating.append(name)
    if zoo in evaluating:
        return zoo
    if len(evaluating) == 1:
        return evaluating[0]
    # Datasets with mistakes are not among the resolved ones.
    if len(datasets) == len(draft.written["datasets"]):
        message = f"is missing, and {len(evaluating)} datasets evaluate the models of {zoo!r}; name one"
        draft.add_mistake(message, *key_path, "evaluate_on")
    return None


# ---- measures ----


def measure_settings(draft: Draft, entry: Marked, key_path: KeyPath) -> PlainSettings | None:
    """Complete settings of a measure; None, with mistakes, where they are none."""
    return draft.explicit("kind", entry, KINDS, key_path)


def add_named_measure(draft: Draft, name: str, key_path: KeyPath, mark: Mark) -> None:
    """Add the entry of a measure whose name determines its settings."""
    entry = entry_named(name)
    if entry is None:
        choice = dict.fromkeys([*draft.config["measures"], *usual_names()])
        draft.add_mistake(unknown_name("measure", name, choice), *key_path)
        return
    written = marked(entry, mark)
    add_measure(draft, name, measure_settings(draft, written, key_path), written, mark)


def add_measure(draft: Draft, name: str, explicit: PlainSettings | None, written: Marked, mark: Mark | None) -> None:
    """Add a resolved measure; a mistake where another one has its name."""
    if draft.config["measures"].setdefault(name, explicit) != explicit:
        draft.add_mistake(f"{name!r} has other settings under `measures`; rename that entry", "measures", name)
    elif name not in draft.written["measures"] and mark:
        draft.written["measures"][name] = written
        draft.written["measures"].marks[name] = mark
