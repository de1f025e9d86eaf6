"""Resolving audits: the models and measures that their names denote, and defaults."""

from typing import Any

from gfscore.core.errors import unknown
from gfscore.measures import KINDS
from gfscore.measures.names import entry_named, name_of, usual_names
from gfscore.networks.model_source import model_sources
from gfscore.workflow.audit_settings import AuditSettings, default_measures, explicit_audit
from gfscore.workflow.config_files import Mark, Marked, MarkedList, Place, marked, shown
from gfscore.workflow.plan import attribute_names, known_models
from gfscore.workflow.resolution import State
from gfscore.workflow.resolving_models import THREATS

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
