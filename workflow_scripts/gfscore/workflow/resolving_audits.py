"""Resolving the audits of a configuration: their models, measures, rules, and the halves and models of remedies."""

from typing import get_args

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.mappings import only
from gfscore.core.settings import LONGEST_NAME, Half, PlainSettings
from gfscore.measures import KINDS, named_measures
from gfscore.measures.names import entry_named, name_of
from gfscore.networks.model_source import Gives, model_sources
from gfscore.networks.sources import adjusted
from gfscore.workflow.audit_settings import AuditSettings, default_measures, explicit_audit
from gfscore.workflow.config_files import Marked, MarkedList
from gfscore.workflow.entries import PlannedDataset, choice_name, zoo_models
from gfscore.workflow.remedies import KIND, RemedySettings, adjusted_entry, adjusted_name, half_entry, half_name
from gfscore.workflow.resolution import Draft
from gfscore.workflow.resolving_entries import (
    THREATS,
    add_measure,
    add_named_measure,
    measure_settings,
    model_entry,
    no_gradients,
    wrong_weights,
)

EVERY = "*"
"""Instead of a model's name: all models of its zoo and threat, entries first, then RobustBench's."""


def resolve_audits(draft: Draft) -> None:
    """Resolve the section `audits`; all other entries must be resolved."""
    if not draft.written["audits"]:
        draft.add_mistake("no audit; write one under `audits`, as in config.yaml")
    for name, entry in draft.entries("audits"):
        earlier_mistakes = len(draft.mistakes)
        _name_measures(draft, name, entry)
        settings = draft.parsed(AuditSettings, entry, ("audits", name))
        if settings is None:
            continue
        models = _models(draft, name, settings)
        if not models or len(draft.mistakes) > earlier_mistakes:
            continue

        names = settings.measures or _default_measures(draft, models)
        names = _with_derived_measures(draft, name, names)
        measures = only(draft.config["measures"], names)
        dataset = PlannedDataset(settings.dataset, draft.config["datasets"][settings.dataset])
        audit = dict(explicit_audit(name, settings, models, measures, dataset.attribute_names))
        if settings.remedy:
            audit["remedy"] = _remedy(draft, name, settings.remedy, dataset=dataset, models=models, measures=measures)
        if not audit["gate"]:
            message = "is missing, and there is no default without a measure of kind clean; write its rules"
            draft.add_mistake(message, "audits", name, "gate")
        if audit["groups"] and not audit["groups"]["attributes"]:
            message = "is missing, and the dataset lists none; name some"
            draft.add_mistake(message, "audits", name, "groups", "attributes")
        draft.config["audits"][name] = audit


def _remedy(
    draft: Draft,
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
    reasons = {}
    with_gradients = []
    for model in models:
        reasons[model] = no_gradients(draft, model)
        if not reasons[model]:
            with_gradients.append(model)
    explicit["models"] = remedy.models or with_gradients
    if not explicit["models"]:
        draft.add_mistake("no model of the audit gives gradients; leave the remedy out", *key_path)
    for position, model in enumerate(remedy.models):
        if model not in reasons:
            message = unknown_name("model of the audit", model, models)
            draft.add_mistake(message, *key_path, "models", position)
        elif reasons[model]:
            draft.add_mistake(f"{model}: {reasons[model]}", *key_path, "models", position)

    attacks = [name for name, entry in measures.items() if entry["kind"] == KIND]
    if remedy.measure is None and not attacks:
        message = f"the audit has no measure of kind {KIND}, under which offsets are chosen; name one in `measures`"
        draft.add_mistake(message, *key_path)
    elif remedy.measure is None:
        explicit["measure"] = attacks[0]
    elif remedy.measure not in attacks:
        message = unknown_name(f"measure of the audit of kind {KIND}", remedy.measure, attacks)
        draft.add_mistake(message, *key_path, "measure")

    if dataset.entry.get("half"):
        message = f"{dataset.name!r} is a half already, and both are needed; audit the whole dataset"
        draft.add_mistake(message, *key_path)
    message = wrong_weights(remedy.class_weights, dataset.entry["classes"])
    if message:
        draft.add_mistake(message, *key_path, "class_weights")
    explicit["strengths"] = sorted(remedy.strengths)
    return explicit


def derive_remedy(draft: Draft, audit: str) -> None:
    """Add the entries that the remedy of an audit needs: two halves of its dataset, and models with offsets."""
    entry = draft.config["audits"][audit]
    if entry["remedy"] is None:
        return
    remedy = RemedySettings.model_validate(entry["remedy"])
    dataset = entry["dataset"]
    whole = draft.config["datasets"][dataset]
    for half in get_args(Half):
        _add_derived(draft, half_entry(whole, half), "datasets", half_name(dataset, half))

    choice = choice_name(remedy.choosing, draft.config["measures"][remedy.measure])
    for model in remedy.models:
        zoo, threat, name = model.split("/")
        for strength in remedy.strengths:
            derived = adjusted_entry(remedy, f"{threat}/{name}", dataset, strength)
            _add_derived(draft, derived, "models", zoo, threat, adjusted_name(name, choice, strength))


def _add_derived(draft: Draft, entry: PlainSettings, *key_path: str) -> None:
    section = draft.config
    for step in key_path[:-1]:
        section = section.setdefault(step, {})
    if len(key_path[-1]) > LONGEST_NAME:
        message = f"a remedy needs this name, of more than {LONGEST_NAME} characters; give what it is of a shorter one"
        draft.add_mistake(message, *key_path)
    elif section.setdefault(key_path[-1], entry) != entry:
        draft.add_mistake("a remedy needs this name for other settings; rename this entry", *key_path)


# ---- measures of an audit ----


def _name_measures(draft: Draft, audit: str, entry: Marked) -> None:
    # Replaces settings of measures by names, and adds entries for measures whose name determines their settings.
    measures = entry.get("measures")
    if not isinstance(measures, MarkedList):
        return
    measures = entry["measures"] = MarkedList(measures, measures.marks)
    for position, measure in enumerate(measures):
        key_path = ("audits", audit, "measures", position)
        mark = measures.marks[position]
        if isinstance(measure, Marked):
            explicit = measure_settings(draft, measure, key_path)
            # Any name for settings with mistakes: these are listed once, with those of the audit.
            name = f"measure-{position}" if explicit is None else name_of(explicit)
            measures[position] = name
            if explicit is not None:
                add_measure(draft, name, explicit, measure, mark)
        elif isinstance(measure, str) and measure not in draft.config["measures"]:
            add_named_measure(draft, measure, key_path, mark)


def _with_derived_measures(draft: Draft, audit: str, names: list[str]) -> list[str]:
    # Names of an audit's measures, with those that are made of others and that it does not name itself.
    measures = named_measures(only(draft.config["measures"], names))
    for position, measure in enumerate(measures.values()):
        if not measure.derived:
            continue
        try:
            measure.members(measures)
        except InputError as error:
            draft.add_mistake(f"{measure.name!r} {error}", "audits", audit, "measures", position)

    names = list(names)
    for kind in KINDS.values():
        for entry in kind.entries_for(measures):
            name = name_of(entry)
            add_measure(draft, name, measure_settings(draft, Marked(entry), ()), Marked(), None)
            names.append(name)
    return names


def _default_measures(draft: Draft, models: list[str]) -> list[str]:
    threats: list[str] = []
    gives: set[Gives] = set()
    for model in models:
        _, threat, _ = model.split("/")
        threats.append(threat)
        entry = model_entry(draft, model)
        gives.add(model_sources()[entry["source"]].given_by(entry))

    names = default_measures(threats, gradients=gives == {"gradients"}, logits="samples" not in gives)
    for name in names:
        if name not in draft.config["measures"]:
            add_measure(draft, name, measure_settings(draft, Marked(entry_named(name)), ()), Marked(), None)
    return names


# ---- models of an audit ----


def _models(draft: Draft, audit: str, settings: AuditSettings) -> list[str]:
    # Names zoo/threat/name of an audit's models; empty, with a mistake, where there are none.
    datasets = draft.config["datasets"]
    if settings.dataset not in datasets:
        draft.add_mistake(unknown_name("dataset", settings.dataset, datasets), "audits", audit, "dataset")
        return []
    zoo = datasets[settings.dataset]["models_of"]
    if zoo is None:
        message = f"{settings.dataset!r} names no models_of, so no model is evaluated on it; name a zoo there"
        draft.add_mistake(message, "audits", audit, "dataset")
        return []

    models: list[str] = []
    if not settings.models:
        threats = draft.config["models"].get(zoo, {})
        for threat in THREATS:
            models += _without_offsets(draft, [f"{zoo}/{threat}/{name}" for name in threats.get(threat, {})])
        if not models:
            message = f"is missing, and zoo {zoo!r} has no entries under `models`; name some"
            draft.add_mistake(message, "audits", audit, "models")
        return models

    choice = _choice_of_models(draft, zoo)
    for position, model in enumerate(settings.models):
        if model in choice:
            models += choice[model]
            continue
        message = unknown_name("model", model, list(choice))
        steps = model.split("/")
        names = zoo_models(draft.config["models"], steps[0], steps[1]) if len(steps) == 3 else []
        if names and steps[2] in (*names, EVERY):
            of_zoo = f"dataset {settings.dataset!r} evaluates models of {zoo!r}"
            message = f"model {model!r} is of another zoo: {of_zoo}; see its models_of"
        draft.add_mistake(message, "audits", audit, "models", position)
    return list(dict.fromkeys(models))


def _choice_of_models(draft: Draft, zoo: str) -> dict[str, list[str]]:
    # What an audit may write, "zoo/threat/name" or "zoo/threat/*", with the models that it denotes.
    choice: dict[str, list[str]] = {}
    patterns: dict[str, list[str]] = {}
    for threat in THREATS:
        names = [f"{zoo}/{threat}/{name}" for name in zoo_models(draft.config["models"], zoo, threat)]
        for name in names:
            choice[name] = [name]
        if names:
            patterns[f"{zoo}/{threat}/{EVERY}"] = _without_offsets(draft, names)
    return choice | patterns


def _without_offsets(draft: Draft, models: list[str]) -> list[str]:
    # Models with offsets are named one by one: the data that choose them must not judge them.
    others = []
    for model in models:
        if model_entry(draft, model)["source"] != adjusted.SOURCE.name:
            others.append(model)
    return others
