"""Resolving a configuration: from what the user wrote to the complete settings of a run."""

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import LONGEST_NAME, Half, PlainSettings
from gfscore.images.attribute_source import attribute_sources
from gfscore.images.dataset_source import dataset_sources
from gfscore.measures import KINDS, named_measures
from gfscore.measures.names import entry_named, name_of, usual_names
from gfscore.networks import leaderboard
from gfscore.networks.model_source import Gives, model_sources
from gfscore.networks.sources import adjusted, robustbench
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow.audit_settings import AuditSettings, RunSettings, default_measures, explicit_audit
from gfscore.workflow.config_files import KeyPath, Mark, Marked, MarkedList, mark_of, marked, merge, shown
from gfscore.workflow.entries import CHECKPOINTS, PlannedDataset, choice_name
from gfscore.workflow.plan import zoo_models
from gfscore.workflow.remedies import KIND, RemedySettings, adjusted_entry, adjusted_name, half_entry, half_name
from gfscore.workflow.resolution import Resolution, State

SETTINGS = RunSettings.sections()
"""Sections that are settings themselves, with their classes."""

ENTRIES = ("audits", "datasets", "models", "measures", "mappers")
"""Sections of entries, by names that the user chooses."""

SECTIONS = ("run", *ENTRIES, *SETTINGS)

THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; "none" for models without a particular one."""

DEFAULTS = "defaults"
"""Key of a zoo, next to the threat models, for the defaults of its entries."""

REPLACED_KEYS = ("arguments",)
"""Mappings of a model that replace the defaults as a whole, since they belong to its architecture."""

CLAIMED_BY_FILE = ("onnx", "logits", "samples")
"""Sources of models that need only a file, without further settings."""

EVERY = "*"
"""Instead of a model's name: all models of its zoo and threat, entries first, then RobustBench's."""


def resolve(written: Marked) -> Resolution:
    """Complete configuration of what the user wrote.

    Parameters
    ----------
    written : Marked
        Configuration from read_configuration, which is changed.

    Returns
    -------
    Resolution
        Every setting, also those that are left out.

    Raises
    ------
    InputError
        Listing the mistakes with file, line, value, the nearest known name and the remedy: unknown keys, invalid
        values, and unknown names that a derived name, a source or a default depends on. Other names are checked by
        gfscore.workflow.configuration.
    """
    state = State(written, {section: {} for section in SECTIONS})
    for key in written:
        if key not in SECTIONS:
            state.add_mistake(unknown_name("section", key, SECTIONS), key)
    for section in (*ENTRIES, *SETTINGS):
        state.require_mapping(section)
    state.stop_at_mistakes()

    for section, model in SETTINGS.items():
        settings = state.parsed(model, written[section], (section,))
        state.config[section] = settings.model_dump() if settings else {}
    name_files(state)
    expand_models(state)
    resolve_datasets(state)
    resolve_models(state)
    for name, entry in state.entries("measures"):
        state.config["measures"][name] = _measure(state, entry, ("measures", name))
    for name, entry in state.entries("mappers"):
        state.config["mappers"][name] = state.explicit("kind", entry, mapper_kinds(), ("mappers", name))
    require_adjustable(state)
    state.stop_at_mistakes()

    resolve_audits(state)
    resolve_run(state)
    state.stop_at_mistakes()
    # After all audits: their patterns and defaults mean what the user wrote.
    for name in state.config["audits"]:
        derive_remedy(state, name)
    state.stop_at_mistakes()
    return Resolution(state.config, written)


def _measure(state: State, entry: Marked, key_path: KeyPath) -> PlainSettings | None:
    return state.explicit("kind", entry, KINDS, key_path)


# ---- datasets ----


def resolve_datasets(state: State) -> None:
    """Resolve the section `datasets`."""
    zoos = list(state.written["models"])
    zoos += [listing.dataset for listing in leaderboard.listings()]
    zoos = list(dict.fromkeys(zoos))

    datasets = state.config["datasets"]
    for name, entry in state.entries("datasets"):
        explicit = _dataset(state, name, entry, zoos)
        if explicit is not None:
            datasets[name] = explicit
    for explicit in datasets.values():
        if explicit["source"] == "generated" and explicit["classes"] is None:
            # A generator has the classes of the dataset that it is fitted on.
            explicit["classes"] = datasets.get(explicit["fitted_on"], {}).get("classes")


def _dataset(state: State, name: str, entry: Marked, zoos: list[str]) -> PlainSettings | None:
    key_path = ("datasets", name)
    source = state.choose("source", entry, dataset_sources(), key_path)
    if source is None:
        return None
    settings = state.parsed(source.settings, {**entry, "source": source.name}, key_path)
    if settings is None:
        return None

    explicit = settings.explicit()
    if explicit["classes"] is None:
        explicit["classes"] = source.class_names(settings)
    if explicit["attributes"] is not None:
        explicit["attributes"] = _attributes(state, name)
    if "models_of" not in settings.model_fields_set:
        explicit["models_of"] = name if name in zoos else None
    elif explicit["models_of"] not in (None, *zoos):
        state.add_mistake(unknown_name("zoo", explicit["models_of"], zoos), *key_path, "models_of")
        return None
    return explicit


def _attributes(state: State, dataset: str) -> PlainSettings | None:
    key_path = ("datasets", dataset, "attributes")
    state.require_mapping(*key_path)
    entry = state.written["datasets"][dataset]["attributes"]
    return state.explicit("source", entry, attribute_sources(), key_path)


# ---- models ----


def name_files(state: State) -> None:
    """Add an entry for each file that an audit names as a model, in the zoo of the audit's dataset.

    Its name is the file's without extension, followed by four characters of its digest if another file has that name.
    """
    for entry in state.written["audits"].values():
        if not isinstance(entry, Marked):
            continue
        names = entry.get("models")
        if not isinstance(names, MarkedList):
            continue
        dataset = state.written["datasets"].get(entry.get("dataset"))
        if not isinstance(dataset, Marked):
            continue
        zoo = dataset.get("models_of") or entry["dataset"]
        for position, name in enumerate(names):
            if isinstance(name, str) and _is_file(state, name):
                names[position] = f"{zoo}/none/{_add_file(state, zoo, name, names.marks[position])}"


def _is_file(state: State, name: str) -> bool:
    # Whether the name of a model is that of a file, not of an entry.
    entry: Any = state.written["models"]
    for step in name.split("/"):
        entry = entry.get(step) if isinstance(entry, Marked) else None
    if entry is not None:
        return False
    return any(model_sources()[source].claims({"path": name}) for source in CLAIMED_BY_FILE)


def _add_file(state: State, zoo: str, path: str, mark: Mark) -> str:
    # Adds the entry of a file, and returns its name.
    entries = state.written["models"]
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


def expand_models(state: State) -> None:
    """Merge the defaults of each zoo into its entries."""
    for zoo, threats in state.entries("models"):
        defaults = threats.pop(DEFAULTS, None)
        if defaults is not None and not isinstance(defaults, Marked):
            state.add_mistake(f"{shown(defaults)} does not fit; give a mapping", "models", zoo, DEFAULTS)
            defaults = None
        for threat in list(threats):
            if threat not in THREATS:
                state.add_mistake(unknown_name("threat", threat, [*THREATS, DEFAULTS]), "models", zoo, threat)
                continue
            state.require_mapping("models", zoo, threat)
            # Entries that an alias shares with another zoo stay without the defaults of this one.
            threats[threat] = Marked(threats[threat], threats[threat].marks)
            for name, entry in state.entries("models", zoo, threat):
                # Defaults are those of networks, which a model with offsets is not.
                if defaults is not None and not adjusted.SOURCE.claims(entry):
                    threats[threat][name] = merge(defaults, entry, replaced=REPLACED_KEYS)


def resolve_models(state: State) -> None:
    """Resolve the section `models`; models must be expanded and datasets resolved."""
    for zoo, threats in state.written["models"].items():
        resolved = state.config["models"].setdefault(zoo, {})
        for threat in THREATS:
            if threat not in threats:
                continue
            resolved[threat] = {}
            for name, entry in threats[threat].items():
                if isinstance(entry, Marked):
                    resolved[threat][name] = _model(state, entry, zoo, threat, name)


def _model(state: State, entry: Marked, zoo: str, threat: str, name: str) -> PlainSettings | None:
    key_path = ("models", zoo, threat, name)
    source = state.choose("source", entry, model_sources(), key_path)
    if source is None:
        return None
    data = {**entry, "source": source.name}
    if source is robustbench.SOURCE:
        data = robustbench.completed(data, zoo, threat, name, folder=CHECKPOINTS)
    settings = state.parsed(source.settings, data, key_path)
    if settings is None:
        return None
    explicit = settings.explicit()
    if explicit.get("evaluate_on", "") is None:
        explicit["evaluate_on"] = _evaluating_dataset(state, zoo, key_path)
    return explicit


def require_adjustable(state: State) -> None:
    """Add mistakes in the models with offsets: all other entries must be resolved."""
    for zoo, threats in state.config["models"].items():
        for threat, entries in threats.items():
            for name, entry in entries.items():
                # None has mistakes of its own.
                if entry is not None and entry["source"] == adjusted.SOURCE.name:
                    _require_adjustable(state, entry, zoo, ("models", zoo, threat, name))


def _require_adjustable(state: State, entry: PlainSettings, zoo: str, key_path: KeyPath) -> None:
    threat, _, name = entry["of"].partition("/")
    names = zoo_models(state.config["models"], zoo, threat)
    if name not in names:
        state.add_mistake(unknown_name(f"model of {zoo}/{threat}", name, names), *key_path, "of")
    else:
        reason = no_gradients(state.config["models"], zoo, threat, name)
        if reason:
            state.add_mistake(f"{entry['of']}: {reason}", *key_path, "of")

    datasets = state.config["datasets"]
    dataset = datasets.get(entry["choose_on"])
    if dataset is None:
        state.add_mistake(unknown_name("dataset", entry["choose_on"], datasets), *key_path, "choose_on")
    elif dataset["models_of"] != zoo:
        message = f"{entry['choose_on']!r} has models_of: {dataset['models_of']}; name data with models_of: {zoo}"
        state.add_mistake(message, *key_path, "choose_on")
    else:
        message = wrong_weights(entry["class_weights"], dataset["classes"])
        if message:
            state.add_mistake(message, *key_path, "class_weights")

    if entry["measure"] not in state.config["measures"]:
        mark = mark_of(state.written, (*key_path, "measure"))
        assert mark is not None  # somebody wrote the entry
        _add_named(state, entry["measure"], (*key_path, "measure"), mark)
    measure = state.config["measures"].get(entry["measure"])
    if measure is not None and measure["kind"] != KIND:
        message = f"{entry['measure']!r} is of kind {measure['kind']}; offsets are chosen under one of kind {KIND}"
        state.add_mistake(message, *key_path, "measure")


def no_gradients(models: PlainSettings, zoo: str, threat: str, name: str) -> str:
    """Why offsets cannot be chosen for a model of a zoo, with the remedy; empty where they can."""
    entry = models.get(zoo, {}).get(threat, {}).get(name) or {"source": robustbench.SOURCE.name}
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


def _evaluating_dataset(state: State, zoo: str, key_path: KeyPath) -> str | None:
    # Default of evaluate_on: the dataset of the zoo's name, or the only one, but for halves, that evaluates its models.
    datasets = state.config["datasets"]
    evaluating = []
    for name, dataset in datasets.items():
        if dataset["models_of"] == zoo and "half" not in dataset:
            evaluating.append(name)
    if zoo in evaluating:
        return zoo
    if len(evaluating) == 1:
        return evaluating[0]
    # Datasets with mistakes are not among the resolved ones.
    if len(datasets) == len(state.written["datasets"]):
        message = f"is missing, and {len(evaluating)} datasets evaluate the models of {zoo!r}; name one"
        state.add_mistake(message, *key_path, "evaluate_on")
    return None


# ---- audits ----


def resolve_audits(state: State) -> None:
    """Resolve the section `audits`; all other entries must be resolved."""
    if not state.written["audits"]:
        state.add_mistake("no audit; write one under `audits`, as in config.yaml")
    for name, entry in state.entries("audits"):
        earlier_mistakes = len(state.mistakes)
        _name_measures(state, name, entry)
        settings = state.parsed(AuditSettings, entry, ("audits", name))
        if settings is None:
            continue
        models = _models(state, name, settings)
        if models and len(state.mistakes) == earlier_mistakes:
            state.config["audits"][name] = _audit(state, name, settings, models)


def _audit(state: State, name: str, settings: AuditSettings, models: list[str]) -> PlainSettings:
    names = settings.measures or _default_measures(state, models)
    names = _with_derived_measures(state, name, names)
    measures = {measure: state.config["measures"][measure] for measure in names}
    dataset = PlannedDataset(settings.dataset, state.config["datasets"][settings.dataset])
    explicit = dict(explicit_audit(name, settings, models, measures, dataset.attribute_names))
    if settings.remedy:
        explicit["remedy"] = _remedy(state, name, settings.remedy, dataset=dataset, models=models, measures=measures)
    if not explicit["gate"]:
        message = "is missing, and there is no default without a measure of kind clean; write its rules"
        state.add_mistake(message, "audits", name, "gate")
    if explicit["groups"] and not explicit["groups"]["attributes"]:
        state.add_mistake("is missing, and the dataset lists none; name some", "audits", name, "groups", "attributes")
    return explicit


def _remedy(
    state: State,
    audit: str,
    remedy: RemedySettings,
    *,
    dataset: PlannedDataset,
    models: list[str],
    measures: dict[str, PlainSettings],
) -> PlainSettings:
    # Complete settings of a remedy, with mistakes where it cannot be.
    key_path = ("audits", audit, "remedy")
    explicit = remedy.model_dump()
    reasons = {model: no_gradients(state.config["models"], *model.split("/")) for model in models}
    explicit["models"] = remedy.models or [model for model, reason in reasons.items() if not reason]
    if not explicit["models"]:
        state.add_mistake("no model of the audit gives gradients; leave the remedy out", *key_path)
    for position, model in enumerate(remedy.models):
        if model not in reasons:
            message = unknown_name("model of the audit", model, models)
            state.add_mistake(message, *key_path, "models", position)
        elif reasons[model]:
            state.add_mistake(f"{model}: {reasons[model]}", *key_path, "models", position)

    attacks = [name for name, entry in measures.items() if entry["kind"] == KIND]
    if remedy.measure is None and not attacks:
        message = f"the audit has no measure of kind {KIND}, under which offsets are chosen; name one in `measures`"
        state.add_mistake(message, *key_path)
    elif remedy.measure is None:
        explicit["measure"] = attacks[0]
    elif remedy.measure not in attacks:
        message = unknown_name(f"measure of the audit of kind {KIND}", remedy.measure, attacks)
        state.add_mistake(message, *key_path, "measure")

    if dataset.entry.get("half"):
        message = f"{dataset.name!r} is a half already, and both are needed; audit the whole dataset"
        state.add_mistake(message, *key_path)
    message = wrong_weights(remedy.class_weights, dataset.entry["classes"])
    if message:
        state.add_mistake(message, *key_path, "class_weights")
    explicit["strengths"] = sorted(remedy.strengths)
    return explicit


def derive_remedy(state: State, audit: str) -> None:
    """Add the entries that the remedy of an audit needs: two halves of its dataset, and models with offsets."""
    entry = state.config["audits"][audit]
    if entry["remedy"] is None:
        return
    remedy = RemedySettings.model_validate(entry["remedy"])
    dataset = entry["dataset"]
    whole = state.config["datasets"][dataset]
    for half in get_args(Half):
        _add_derived(state, half_entry(whole, half), "datasets", half_name(dataset, half))

    choice = choice_name(remedy.choosing, state.config["measures"][remedy.measure])
    for model in remedy.models:
        zoo, threat, name = model.split("/")
        for strength in remedy.strengths:
            derived = adjusted_entry(remedy, f"{threat}/{name}", dataset, strength)
            _add_derived(state, derived, "models", zoo, threat, adjusted_name(name, choice, strength))


def _add_derived(state: State, entry: PlainSettings, *key_path: str) -> None:
    section = state.config
    for step in key_path[:-1]:
        section = section.setdefault(step, {})
    if len(key_path[-1]) > LONGEST_NAME:
        message = f"a remedy needs this name, of more than {LONGEST_NAME} characters; give what it is of a shorter one"
        state.add_mistake(message, *key_path)
    elif section.setdefault(key_path[-1], entry) != entry:
        state.add_mistake("a remedy needs this name for other settings; rename this entry", *key_path)


def resolve_run(state: State) -> None:
    """Resolve `run`: all audits by default; a single name need not be a list."""
    audits = state.written["audits"]
    run = state.written.get("run")
    if run is None:
        run = list(audits)
    if isinstance(run, str):
        run = [run]
    if not isinstance(run, list) or not run or not all(isinstance(name, str) for name in run):
        state.add_mistake(f"{shown(run)} does not fit; give a list of audits", "run")
        return
    for position, name in enumerate(run):
        if name in run[:position]:
            state.add_mistake(f"{name!r} is listed more than once; list it once", "run", position)
        elif name not in audits:
            state.add_mistake(unknown_name("audit", name, audits), "run", position)
    state.config["run"] = list(run)


# ---- measures of an audit ----


def _name_measures(state: State, audit: str, entry: Marked) -> None:
    # Replaces settings of measures by names, and adds entries for measures whose name determines their settings.
    measures = entry.get("measures")
    if not isinstance(measures, MarkedList):
        return
    measures = entry["measures"] = MarkedList(measures, measures.marks)
    for position, measure in enumerate(measures):
        key_path = ("audits", audit, "measures", position)
        if isinstance(measure, Marked):
            measures[position] = _name_settings(state, measure, key_path, measures.marks[position])
        elif isinstance(measure, str) and measure not in state.config["measures"]:
            _add_named(state, measure, key_path, measures.marks[position])


def _name_settings(state: State, settings: Marked, key_path: KeyPath, mark: Mark) -> str:
    explicit = _measure(state, settings, key_path)
    if explicit is None:
        # Any name: the mistakes of the settings are listed once, those of the audit with them.
        return f"measure-{key_path[-1]}"
    name = name_of(explicit)
    _add_measure(state, name, explicit, settings, mark)
    return name


def _add_named(state: State, name: str, key_path: KeyPath, mark: Mark) -> None:
    entry = entry_named(name)
    if entry is None:
        choice = dict.fromkeys([*state.config["measures"], *usual_names()])
        state.add_mistake(unknown_name("measure", name, choice), *key_path)
        return
    written = marked(entry, mark)
    _add_measure(state, name, _measure(state, written, key_path), written, mark)


def _add_measure(state: State, name: str, explicit: PlainSettings | None, written: Marked, mark: Mark | None) -> None:
    if state.config["measures"].setdefault(name, explicit) != explicit:
        state.add_mistake(f"{name!r} has other settings under `measures`; rename that entry", "measures", name)
    elif name not in state.written["measures"] and mark:
        state.written["measures"][name] = written
        state.written["measures"].marks[name] = mark


def _with_derived_measures(state: State, audit: str, names: list[str]) -> list[str]:
    # Names of an audit's measures, with those that are made of others and that it does not name itself.
    measures = named_measures({name: state.config["measures"][name] for name in names})
    for position, measure in enumerate(measures.values()):
        if not measure.derived:
            continue
        try:
            measure.members(measures)
        except InputError as error:
            state.add_mistake(f"{measure.name!r} {error}", "audits", audit, "measures", position)

    names = list(names)
    for kind in KINDS.values():
        for entry in kind.entries_for(measures):
            name = name_of(entry)
            _add_measure(state, name, _measure(state, Marked(entry), ()), Marked(), None)
            names.append(name)
    return names


def _default_measures(state: State, models: list[str]) -> list[str]:
    threats: list[str] = []
    gives: set[Gives] = set()
    for model in models:
        zoo, threat, name = model.split("/")
        threats.append(threat)
        entries = state.config["models"].get(zoo, {}).get(threat, {})
        entry = entries.get(name) or {"source": robustbench.SOURCE.name}
        gives.add(model_sources()[entry["source"]].given_by(entry))

    names = default_measures(threats, gradients=gives == {"gradients"}, logits="samples" not in gives)
    for name in names:
        if name not in state.config["measures"]:
            _add_measure(state, name, _measure(state, Marked(entry_named(name)), ()), Marked(), None)
    return names


# ---- models of an audit ----


def _models(state: State, audit: str, settings: AuditSettings) -> list[str]:
    # Names zoo/threat/name of an audit's models; empty, with a mistake, where there are none.
    datasets = state.config["datasets"]
    if settings.dataset not in datasets:
        state.add_mistake(unknown_name("dataset", settings.dataset, datasets), "audits", audit, "dataset")
        return []
    zoo = datasets[settings.dataset]["models_of"]
    if zoo is None:
        message = f"{settings.dataset!r} names no models_of, so no model is evaluated on it; name a zoo there"
        state.add_mistake(message, "audits", audit, "dataset")
        return []
    if not settings.models:
        return _every_entry(state, audit, zoo)

    choice = _choice_of_models(state, zoo)
    models: list[str] = []
    for position, model in enumerate(settings.models):
        if model in choice:
            models += choice[model]
        else:
            message = _message_for_unknown(state, settings.dataset, zoo, model, list(choice))
            state.add_mistake(message, "audits", audit, "models", position)
    return list(dict.fromkeys(models))


def _every_entry(state: State, audit: str, zoo: str) -> list[str]:
    threats = state.config["models"].get(zoo, {})
    models: list[str] = []
    for threat in THREATS:
        models += _without_offsets(state, [f"{zoo}/{threat}/{name}" for name in threats.get(threat, {})])
    if not models:
        message = f"is missing, and zoo {zoo!r} has no entries under `models`; name some"
        state.add_mistake(message, "audits", audit, "models")
    return models


def _choice_of_models(state: State, zoo: str) -> dict[str, list[str]]:
    # What an audit may write, "zoo/threat/name" or "zoo/threat/*", with the models that it denotes.
    choice: dict[str, list[str]] = {}
    patterns: dict[str, list[str]] = {}
    for threat in THREATS:
        names = [f"{zoo}/{threat}/{name}" for name in zoo_models(state.config["models"], zoo, threat)]
        for name in names:
            choice[name] = [name]
        if names:
            patterns[f"{zoo}/{threat}/{EVERY}"] = _without_offsets(state, names)
    return choice | patterns


def _without_offsets(state: State, models: list[str]) -> list[str]:
    # Models with offsets are named one by one: the data that choose them must not judge them.
    others = []
    for model in models:
        zoo, threat, name = model.split("/")
        entry = state.config["models"].get(zoo, {}).get(threat, {}).get(name)
        if entry is None or entry["source"] != adjusted.SOURCE.name:
            others.append(model)
    return others


def _message_for_unknown(state: State, dataset: str, zoo: str, model: str, choice: list[str]) -> str:
    steps = model.split("/")
    if len(steps) == 3:
        names = zoo_models(state.config["models"], steps[0], steps[1])
        if steps[2] in names or (steps[2] == EVERY and names):
            return (
                f"model {model!r} is of another zoo: dataset {dataset!r} evaluates models of {zoo!r}; see its models_of"
            )
    return unknown_name("model", model, choice)
