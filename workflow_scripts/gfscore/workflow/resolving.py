"""Settings of an audit and their defaults."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, Field

from gfscore.audit.settings import (
    ATTACK_DISTANCE,
    OBJECTIVES,
    CalibrationSettings,
    CheckSettings,
    ComparisonSettings,
    ConfusionSettings,
    DisparitySettings,
    GreatSettings,
    GroupSettings,
    IntervalSettings,
)
from gfscore.audit.verdicts.gate_rules import RuleSettings
from gfscore.core.errors import unknown
from gfscore.core.settings import Closed, Name, Text, Unique
from gfscore.images.attribute_source import attribute_sources
from gfscore.images.dataset_source import dataset_sources
from gfscore.measures import KINDS
from gfscore.measures.names import entry_named, name_of, usual_names
from gfscore.networks import leaderboard
from gfscore.networks.device_choice import InferenceSettings
from gfscore.networks.model_source import model_sources
from gfscore.networks.sources import robustbench
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.show.page.page_settings import ReportSettings
from gfscore.workflow.config_files import Mark, Marked, MarkedList, Place, marked, merge, shown
from gfscore.workflow.plan import CHECKPOINTS, attribute_names, known_models
from gfscore.workflow.resolution import Resolution, State

DEFAULT_CLEAN_ACCURACY = 0.5
"""Least clean accuracy of every class in the default gate."""

DEFAULT_MEASURES = ("clean", "great-softmax")
"""Default measures of an audit; an attack is added if its models have gradients."""

ATTACK_BY_THREAT = {"L2": "adversarial-l2-0.5"}
DEFAULT_ATTACK = "adversarial-linf-8of255"
"""Default attacks, by the threat model that all models are trained for."""


class AuditSettings(Closed):
    """Settings of an audit: models on one dataset that are judged together."""

    title: Text | None = Field(None, description="Heading of the report: its name where it is left out.")
    dataset: Name = Field(description="Data evaluated.")
    tasks: Unique[Name] = Field(
        [],
        description="More datasets, of the same images with other labels, that projections are about as well; the zoo "
        "of each has models of the same names.",
    )
    models: Unique[Text] = Field(
        [],
        min_length=1,
        description="Models as zoo/threat/name, zoo/threat/* for all of them, or a file that is a model by itself; all "
        "that have entries in the dataset's zoo where they are left out.",
    )
    measures: Unique[Text] = Field(
        [],
        min_length=1,
        description="Names of measures, or their settings. Where they are left out: clean accuracy, the attack-free "
        "score and, if every model gives gradients, accuracy under attack.",
    )
    calibration: CalibrationSettings | None = Field(
        None,
        description="Temperature search: of the first score where it is left out; null for none.",
    )
    groups: GroupSettings | None = Field(
        None, description="Fairness between the groups that attributes of the dataset make; null for none."
    )
    corruption_baseline: Text | None = Field(
        None,
        description="Model of the audit, zoo/threat/name, whose errors under corruptions the mean corruption error "
        "divides by (Hendrycks and Dietterich 2019: AlexNet); null for none.",
    )
    projection: Name | Unique[Name] | None = Field(
        None,
        description="Mapper, or mappers, whose latent dimensions predictions are held against, see docs/projection.md; "
        "null: none.",
    )
    gate: list[RuleSettings] = Field(
        [],
        min_length=1,
        description="Rules that give the verdict. Where they are left out: the clean accuracy of every class is at "
        "least 0.5, with 95% confidence.",
    )


def title_of(name: str) -> str:
    """Default title of an audit: "cifar10-l2" becomes "Cifar10 l2"."""
    message = name.replace("-", " ").replace("_", " ").strip() or name
    return message[:1].upper() + message[1:]


def default_measures(threats: Sequence[str], *, gradients: bool, logits: bool) -> list[str]:
    """Names of the default measures of an audit, by the threat models of its models.

    `gradients`, `logits`: whether every model has them.
    """
    if not logits:
        return ["clean"]
    attack = ATTACK_BY_THREAT.get(threats[0], DEFAULT_ATTACK) if len(set(threats)) == 1 else DEFAULT_ATTACK
    return [*DEFAULT_MEASURES, *([attack] if gradients else [])]


def explicit_audit(
    name: str, settings: AuditSettings, models: list[str], measures: Mapping[str, Any], attributes: list[str]
) -> dict[str, Any]:
    """Complete settings of an audit as plain values, defaults filled in.

    `models`: names of its models; `measures`: its measures with their settings; `attributes`: names that the entry of
    its dataset lists.
    """
    kinds = {measure: entry["kind"] for measure, entry in measures.items()}
    scores = [measure for measure, kind in kinds.items() if kind == "great"]
    given = settings.calibration if "calibration" in settings.model_fields_set else CalibrationSettings()
    calibration = None
    if given is not None and (scores or given.measure):
        calibration = given.model_dump()
        calibration["measure"] = given.measure or scores[0]
        in_l2 = any(entry["kind"] == "minimal" and entry["norm"] == "l2" for entry in measures.values())
        usual = [objective for objective in OBJECTIVES if objective != ATTACK_DISTANCE or in_l2]
        calibration["objectives"] = given.objectives or usual
    groups = settings.groups and settings.groups.model_dump()
    if groups:
        groups["attributes"] = groups["attributes"] or attributes
    accuracies = [measure for measure, kind in kinds.items() if kind == "clean"]
    usual_rules = [RuleSettings(measure=measure, at_least=DEFAULT_CLEAN_ACCURACY) for measure in accuracies[:1]]
    rules = settings.gate or usual_rules
    return settings.model_dump() | {
        "title": settings.title or title_of(name),
        "models": models,
        "measures": list(measures),
        "calibration": calibration,
        "groups": groups,
        "gate": [rule.model_dump(by_alias=True) for rule in rules],
    }


# ---- Resolving models: defaults of their zoo, files that audits name, and sources that follow from other keys.


THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; "none" for models without a particular one."""

DEFAULTS = "defaults"
"""Key of a zoo, beside the threat models, for the defaults of its entries."""

REPLACED_KEYS = ("arguments",)
"""Mappings of a model that replace the defaults as a whole, since they belong to its architecture."""

CLAIMED_BY_FILE = ("onnx", "logits", "samples")
"""Sources of models that need only a file, without further settings."""


def name_files(state: State) -> None:
    """Add an entry for each file that an audit names as a model, in the zoo of the audit's dataset.

    Its name is the file's without extension, followed by four characters of its digest if another file has that name.
    """
    for entry in state.written["audits"].values():
        names: Any = entry.get("models") if isinstance(entry, Marked) else None
        dataset = state.written["datasets"].get(entry.get("dataset")) if isinstance(names, MarkedList) else None
        if not isinstance(dataset, Marked):
            continue
        zoo = dataset.get("models_of") or entry["dataset"]
        for position, name in enumerate(names):
            if isinstance(name, str) and _is_file(state, name):
                names[position] = f"{zoo}/none/{_entry_of_file(state, zoo, name, names.marks[position])}"


def _is_file(state: State, name: str) -> bool:
    part: Any = state.written["models"]
    for step in name.split("/"):
        part = part.get(step) if isinstance(part, Marked) else None
    return part is None and any(model_sources()[source].claims({"path": name}) for source in CLAIMED_BY_FILE)


def _entry_of_file(state: State, zoo: str, path: str, mark: Mark) -> str:
    place = state.written["models"]
    for step in (zoo, "none"):
        if not isinstance(place.get(step), Marked):
            place[step] = Marked()
            place.marks[step] = mark
        place = place[step]
    name = PurePosixPath(path).name.removesuffix(".gz").rpartition(".")[0]
    if name in place and place[name].get("path") != path:
        content = Path(path).read_bytes() if Path(path).is_file() else path.encode()
        name = f"{name}-{hashlib.sha256(content).hexdigest()[:4]}"
    place[name] = Marked({"path": path}, {"path": mark})
    place.marks[name] = mark
    return name


def expand_models(state: State) -> None:
    """Merge the defaults of each zoo into its entries."""
    for zoo, threats in state.entries("models"):
        shared = threats.pop(DEFAULTS, None)
        if shared is not None and not isinstance(shared, Marked):
            state.add_mistake(f"{shown(shared)} does not fit; give a mapping", "models", zoo, DEFAULTS)
            shared = None
        for threat in list(threats):
            if threat not in THREATS:
                state.add_mistake(unknown("threat", threat, [*THREATS, DEFAULTS]), "models", zoo, threat)
                continue
            state.require_mapping("models", zoo, threat)
            # Entries that an alias shares with another zoo stay without the defaults of this one.
            threats[threat] = Marked(threats[threat], threats[threat].marks)
            for name, entry in state.entries("models", zoo, threat):
                threats[threat][name] = entry if shared is None else merge(shared, entry, whole=REPLACED_KEYS)


def resolve_models(state: State) -> None:
    """Resolve the section `models`; models must be expanded and datasets resolved."""
    for zoo, threats in state.written["models"].items():
        found = state.config["models"].setdefault(zoo, {})
        for threat in THREATS:
            if threat in threats:
                found[threat] = {}
                for name, entry in threats[threat].items():
                    if isinstance(entry, Marked):
                        found[threat][name] = _model(state, entry, zoo, threat, name)


def _model(state: State, entry: Marked, zoo: str, threat: str, name: str) -> Any:
    place = ("models", zoo, threat, name)
    source = state.choose("source", entry, model_sources(), place)
    if source is None:
        return None
    data = {**entry, "source": source.name}
    if source is robustbench.SOURCE:
        data = robustbench.completed(data, zoo, threat, name, folder=CHECKPOINTS)
    found = state.parsed(source.settings, data, place)
    explicit = found.explicit() if found else None
    if explicit and "evaluate_on" in explicit and explicit["evaluate_on"] is None:
        evaluating = [of for of, dataset in state.config["datasets"].items() if dataset["models_of"] == zoo]
        if zoo in evaluating or len(evaluating) == 1:
            explicit["evaluate_on"] = zoo if zoo in evaluating else evaluating[0]
        elif len(state.config["datasets"]) == len(state.written["datasets"]):
            message = f"is missing, and {len(evaluating)} datasets evaluate the models of {zoo!r}; name one"
            state.add_mistake(message, *place, "evaluate_on")
    return explicit


# ---- Resolving audits: the models and measures that their names denote, and defaults.


EVERY = "*"
"""Instead of a model's name: all models of its zoo and threat, entries first, then RobustBench's."""


def resolve_measures(state: State) -> None:
    """Resolve the section `measures`."""
    for name, entry in state.entries("measures"):
        state.config["measures"][name] = _measure(state, entry, ("measures", name))


def _measure(state: State, entry: Marked, place: Place) -> Any:
    kind = state.choose("kind", entry, KINDS, place)
    found = kind and state.parsed(kind.settings, entry, place)
    return found.explicit() if found else None


def resolve_audits(state: State) -> None:
    """Resolve the section `audits`; all other entries must be resolved."""
    if not state.written["audits"]:
        state.add_mistake("no audit; write one under `audits`, as in config.yaml")
    for name, entry in state.entries("audits"):
        known = len(state.mistakes)
        _name_measures(state, name, entry)
        settings = state.parsed(AuditSettings, entry, ("audits", name))
        models = _models(state, name, settings) if settings else None
        if models and len(state.mistakes) == known:
            state.config["audits"][name] = _audit(state, name, settings, models)


def _audit(state: State, name: str, settings: AuditSettings, models: list[str]) -> dict[str, Any]:
    names = settings.measures or _default_measures(state, models)
    measures = {measure: state.config["measures"][measure] for measure in names}
    attributes = attribute_names(state.config["datasets"][settings.dataset]["attributes"] or {})
    explicit = explicit_audit(name, settings, models, measures, attributes)
    if not explicit["gate"]:
        message = "is missing, and there is no default without a measure of kind clean; write its rules"
        state.add_mistake(message, "audits", name, "gate")
    if explicit["groups"] and not explicit["groups"]["attributes"]:
        state.add_mistake("is missing, and the dataset lists none; name some", "audits", name, "groups", "attributes")
    return explicit


def resolve_run(state: State) -> None:
    """Resolve `run`: all audits by default; a single name need not be a list."""
    run = state.written.get("run")
    run = [run] if isinstance(run, str) else run
    if run is None:
        run = list(state.written["audits"])
    if not isinstance(run, list) or not run or not all(isinstance(name, str) for name in run):
        state.add_mistake(f"{shown(run)} does not fit; give a list of audits", "run")
        return
    for position, name in enumerate(run):
        if name in run[:position]:
            state.add_mistake(f"{name!r} is listed more than once; list it once", "run", position)
        elif name not in state.written["audits"]:
            state.add_mistake(unknown("audit", name, state.written["audits"]), "run", position)
    state.config["run"] = list(run)


# ---- measures of an audit ----


def _name_measures(state: State, audit: str, entry: Marked) -> None:
    """Replace settings of measures by names, and add entries for measures whose name determines their settings."""
    measures = entry.get("measures")
    if not isinstance(measures, MarkedList):
        return
    measures = entry["measures"] = MarkedList(measures, measures.marks)
    for position, wanted in enumerate(measures):
        place, mark = ("audits", audit, "measures", position), measures.marks[position]
        if isinstance(wanted, Marked):
            explicit = _measure(state, wanted, place)
            # Where the settings have mistakes, any name: those of a measure are listed once, the audit's beside them.
            measures[position] = name_of(explicit) if explicit else f"measure-{position}"
            if explicit:
                _add_measure(state, measures[position], explicit, wanted, mark)
        elif isinstance(wanted, str) and wanted not in state.config["measures"]:
            known = entry_named(wanted)
            if known is None:
                choice = dict.fromkeys([*state.config["measures"], *usual_names()])
                state.add_mistake(unknown("measure", wanted, choice), *place)
            else:
                written = marked(known, mark)
                _add_measure(state, wanted, _measure(state, written, place), written, mark)


def _add_measure(state: State, name: str, explicit: Any, written: Marked, mark: Mark | None) -> None:
    if state.config["measures"].setdefault(name, explicit) != explicit:
        state.add_mistake(f"{name!r} has other settings under `measures`; rename that entry", "measures", name)
    elif name not in state.written["measures"] and mark:
        state.written["measures"][name] = written
        state.written["measures"].marks[name] = mark


def _default_measures(state: State, models: list[str]) -> list[str]:
    threats, gives = [], set()
    for model in models:
        zoo, threat, name = model.split("/")
        threats.append(threat)
        entry = state.config["models"].get(zoo, {}).get(threat, {}).get(name)
        entry = entry or {"source": "robustbench"}
        gives.add(model_sources()[entry["source"]].given_by(entry))
    names = default_measures(threats, gradients=gives == {"gradients"}, logits="samples" not in gives)
    for name in names:
        if name not in state.config["measures"]:
            _add_measure(state, name, _measure(state, Marked(entry_named(name)), ()), Marked(), None)
    return names


# ---- models of an audit ----


def _models(state: State, audit: str, settings: AuditSettings) -> list[str] | None:
    """Names zoo/threat/name of an audit's models; None if its dataset has mistakes."""
    dataset = state.config["datasets"].get(settings.dataset)
    if dataset is None:
        state.add_mistake(unknown("dataset", settings.dataset, state.config["datasets"]), "audits", audit, "dataset")
        return None
    zoo = dataset["models_of"]
    if zoo is None:
        message = f"{settings.dataset!r} names no models_of, so no model is evaluated on it; name a zoo there"
        state.add_mistake(message, "audits", audit, "dataset")
        return None
    if not settings.models:
        entries = state.config["models"].get(zoo, {})
        own = [f"{zoo}/{threat}/{name}" for threat in THREATS for name in entries.get(threat, {})]
        if not own:
            message = f"is missing, and zoo {zoo!r} has no entries under `models`; name some"
            state.add_mistake(message, "audits", audit, "models")
        return own
    known = {threat: [f"{zoo}/{threat}/{of}" for of in known_models(state.config, zoo, threat)] for threat in THREATS}
    standing = {name: [name] for names in known.values() for name in names}
    standing |= {f"{zoo}/{threat}/{EVERY}": names for threat, names in known.items() if names}
    for position, model in enumerate(settings.models):
        if model not in standing:
            message = _message_for_unknown(state, settings.dataset, zoo, model, list(standing))
            state.add_mistake(message, "audits", audit, "models", position)
    return list(dict.fromkeys(name for model in settings.models for name in standing.get(model, ())))


def _message_for_unknown(state: State, dataset: str, zoo: str, model: str, known: list[str]) -> str:
    # Message for a model zoo/threat/name that is not known for its dataset.
    steps = model.split("/")
    elsewhere = known_models(state.config, *steps[:2]) if len(steps) == 3 else []
    if steps[-1] in elsewhere or (steps[-1] == EVERY and elsewhere):
        return f"model {model!r} is of another zoo: dataset {dataset!r} evaluates models of {zoo!r}; see its models_of"
    return unknown("model", model, known)


# ---- Resolving a configuration: from what the user wrote to the complete settings of a run.


WHOLE: dict[str, type[BaseModel]] = {
    "checks": CheckSettings,
    "inference": InferenceSettings,
    "great": GreatSettings,
    "intervals": IntervalSettings,
    "disparity": DisparitySettings,
    "confusions": ConfusionSettings,
    "comparison": ComparisonSettings,
    "report": ReportSettings,
}
"""Sections that are settings themselves, with their models."""

ENTRIES = ("audits", "datasets", "models", "measures", "mappers")
"""Sections of entries, by names that the user chooses."""

SECTIONS = ("run", *ENTRIES, *WHOLE)


def resolve(written: Marked) -> Resolution:
    """Resolve a configuration from read_configuration, which is changed.

    Raises InputError, listing the mistakes with file, line, value, the nearest known name and the remedy, for unknown
    keys, invalid values, and unknown names that a derived name, a source or a default depends on
    (gfscore.workflow.configuration checks the other names).
    """
    state = State(written, {section: {} for section in SECTIONS})
    for key in written:
        if key not in SECTIONS:
            state.add_mistake(unknown("section", key, SECTIONS), key)
    for section in (*ENTRIES, *WHOLE):
        state.require_mapping(section)
    state.stop_at_mistakes()
    for section, model in WHOLE.items():
        found = state.parsed(model, written[section], (section,))
        state.config[section] = found.model_dump() if found else {}
    name_files(state)
    expand_models(state)
    _resolve_datasets(state)
    resolve_models(state)
    resolve_measures(state)
    for name, entry in state.entries("mappers"):
        kind = state.choose("kind", entry, mapper_kinds(), ("mappers", name))
        found = kind and state.parsed(kind.settings, entry, ("mappers", name))
        state.config["mappers"][name] = found and found.explicit()
    state.stop_at_mistakes()
    resolve_audits(state)
    resolve_run(state)
    state.stop_at_mistakes()
    return Resolution(state.config, written)


def _resolve_datasets(state: State) -> None:
    zoos = dict.fromkeys([*state.written["models"], *(listing.dataset for listing in leaderboard.listings())])
    resolved = state.config["datasets"]
    for name, entry in state.entries("datasets"):
        place = ("datasets", name)
        source = state.choose("source", entry, dataset_sources(), place)
        found = source and state.parsed(source.settings, {**entry, "source": source.name}, place)
        if not found:
            continue
        resolved[name] = explicit = found.explicit()
        if explicit["classes"] is None:
            explicit["classes"] = source.class_names(found)
        if "models_of" not in found.model_fields_set:
            explicit["models_of"] = name if name in zoos else None
        elif explicit["models_of"] not in (None, *zoos):
            state.add_mistake(unknown("zoo", explicit["models_of"], zoos), *place, "models_of")
            del resolved[name]
        if explicit["attributes"] is not None:
            explicit["attributes"] = _attributes(state, name)
    for explicit in resolved.values():
        if explicit["source"] == "generated" and explicit["classes"] is None:
            # A generator has the classes of the dataset that it is fitted on.
            explicit["classes"] = resolved.get(explicit["fitted_on"], {}).get("classes")


def _attributes(state: State, dataset: str) -> Any:
    place = ("datasets", dataset, "attributes")
    state.require_mapping(*place)
    entry = state.written["datasets"][dataset]["attributes"]
    source = state.choose("source", entry, attribute_sources(), place)
    found = source and state.parsed(source.settings, entry, place)
    return found.explicit() if found else None
