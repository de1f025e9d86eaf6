"""Complete and consistent configuration of a run, from files and the command line."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gfscore.audit.settings import ATTACK_DISTANCE
from gfscore.audit.verdicts import gate_rules
from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import LOGARITHMS
from gfscore.measures import KINDS, kind_of, measure_of
from gfscore.measures.great import NEED_LOGITS
from gfscore.networks import leaderboard
from gfscore.networks.model_source import Gives
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place, read_configuration, shown_path
from gfscore.workflow.resolution import ConfigMistake, Resolution, message_of
from gfscore.workflow.resolving import resolve
from gfscore.workflow.user_files import path_mistakes

SHIPPED = "config.yaml"
"""Default configuration file: the demo."""

ENDS = ("</", "<!--")
"""Strings that end a script in an HTML page, or change where it ends, even within quotes."""


def configured(paths: Iterable[Path | str], given: Mapping[str, Any], *, thorough: bool = True) -> Resolution:
    """Complete configuration from files, by default the file SHIPPED, and the command line (`given`).

    `thorough` includes the slowest check: whether the sequential tests of the audits to run can reach a decision.
    Raises InputError, listing the mistakes of the first stage that finds any, each with file, line, value, the nearest
    known name and the remedy.
    """
    files = list(paths) or [SHIPPED]
    resolution = resolve(read_configuration(files, given))
    resolution = replace(resolution, files=tuple(map(shown_path, files)), given=given)
    require_consistent(resolution, thorough=thorough)
    return resolution


def require_consistent(resolution: Resolution, *, thorough: bool = True) -> None:
    """Raise InputError unless the names in a resolved configuration exist and its entries are consistent."""
    mistakes = [*_mistakes(resolution.config)]
    if thorough and not mistakes:
        mistakes = [*_test_mistakes(resolution.config)]
    if mistakes:
        raise InputError(message_of(mistakes, resolution.written))


def _mistakes(config: dict[str, Any]) -> Iterator[ConfigMistake]:
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                place: Place = ("models", zoo, threat, name)
                yield from path_mistakes(place, entry)
                yield from _dataset_names(config, place, entry, "train_on", "evaluate_on")
    for name, entry in config["datasets"].items():
        yield from path_mistakes(("datasets", name), entry)
        for key in ("corrupted", "generator"):
            yield from path_mistakes(("datasets", name, key), entry.get(key, {}))
        yield from _dataset_names(config, ("datasets", name), entry, "fitted_on")
        rates, classes = entry["label_error_rate"], entry["classes"]
        if isinstance(rates, list) and classes and len(rates) != len(classes):
            message = f"{len(rates)} rates for {len(classes)} classes; give one for each"
            yield ConfigMistake(("datasets", name, "label_error_rate"), message)
        attributes = entry["attributes"]
        if attributes is not None:
            place = ("datasets", name, "attributes")
            yield from path_mistakes(place, attributes)
            yield from _dataset_names(config, place, attributes, "fixed_on")
    for name, entry in config["measures"].items():
        yield from measure_mistakes(("measures", name), entry)
    for name, entry in config["mappers"].items():
        yield from _mapper_mistakes(config, name, entry)
    for name, audit in config["audits"].items():
        yield from audit_mistakes(config, name, audit)
    yield from _text_mistakes(config)
    yield from case_mistakes(config)


def measure_mistakes(
    place: Place, entry: Mapping[str, Any], *, classes: int | None = None, thorough: bool = False
) -> Iterator[ConfigMistake]:
    """Yield the mistakes in a measure's settings beyond their types; `classes` is their number, None if unknown."""
    kind = KINDS[entry["kind"]]
    for found in kind.mistakes(kind.parse(entry), classes=classes, thorough=thorough):
        yield ConfigMistake((*place, *found.key), found.words)


def _test_mistakes(config: dict[str, Any]) -> Iterator[ConfigMistake]:
    measures = {name: entry for audit in config["run"] for name, entry in plan.measures_of(config, audit).items()}
    for name, entry in measures.items():
        yield from measure_mistakes(("measures", name), entry, thorough=True)


def _dataset_names(
    config: dict[str, Any], place: Place, entry: Mapping[str, Any], *keys: str
) -> Iterator[ConfigMistake]:
    for key in keys:
        name = entry.get(key)
        if name is not None and name not in config["datasets"]:
            yield ConfigMistake((*place, key), unknown("dataset", name, config["datasets"]))


def _mapper_mistakes(config: dict[str, Any], name: str, entry: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    for key in ("train_on", "evaluate_on"):
        yield from _dataset_names(config, ("mappers", name), entry, key)
        if entry[key] in config["datasets"]:
            yield from attribute_mistakes(config, ("mappers", name, key), entry, entry[key])


def case_mistakes(config: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield names in one section that differ only in case, which on macOS and Windows would share their files."""
    sections: dict[Place, Any] = {(name,): config[name] for name in ("audits", "datasets", "measures", "mappers")}
    # Includes RobustBench's models, which need no entry.
    zoos = [*config["models"], *(listing.dataset for listing in leaderboard.listings())]
    sections["models",] = dict.fromkeys(zoos)
    for zoo, threats in config["models"].items():
        sections |= {("models", zoo, threat): plan.known_models(config, zoo, threat) for threat in threats}
    for place, entries in sections.items():
        alike: dict[str, list[str]] = {}
        for name in entries:
            alike.setdefault(name.casefold(), []).append(name)
        for names in alike.values():
            if len(names) > 1:
                what = " and ".join(map(repr, names))
                message = f"{what} differ only in case and would share files on macOS; rename one"
                yield ConfigMistake((*place, names[-1]), message)


def _text_mistakes(config: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield titles, contacts and architectures that would end a script of Snakemake's report."""
    texts: dict[Place, Any] = {("report", "contact"): config["report"]["contact"]}
    texts |= {("audits", name, "title"): audit["title"] for name, audit in config["audits"].items()}
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                texts["models", zoo, threat, name, "architecture"] = entry.get("architecture")
    for place, text in texts.items():
        for end in ENDS:
            if end in (text or ""):
                yield ConfigMistake(place, f"{end} in {text!r} would end a script of Snakemake's report; leave it out")


# ---- Consistency checks of an audit's settings: measures that its models do not support, rules that judge nothing.


def audit_mistakes(config: dict[str, Any], name: str, audit: Mapping[str, Any]) -> Iterator[ConfigMistake]:
    """Yield the mistakes in an audit of a resolved configuration."""
    place = ("audits", name)
    classes = config["datasets"][audit["dataset"]]["classes"]
    for position, measure in enumerate(audit["measures"]):
        yield from _unsupported_measure(config, name, measure, (*place, "measures", position))
        yield from _needs_logits(config, name, measure, (*place, "measures", position))
        if classes:
            kind, entry = KINDS[config["measures"][measure]["kind"]], config["measures"][measure]
            whatever = [*kind.mistakes(kind.parse(entry))]
            for found in kind.mistakes(kind.parse(entry), classes=len(classes)):
                if found not in whatever:
                    yield ConfigMistake((*place, "measures", position), f"{measure}: {found}")
    for number, rule in enumerate(audit["gate"]):
        yield from _rule_mistakes(config, audit, rule, (*place, "gate", number))
    yield from _corruption_mistakes(config, audit, place)
    tasks = [*_task_mistakes(config, name, audit, (*place, "tasks"))]
    yield from tasks
    if not tasks:
        for task in plan.tasks_of(config, name):
            yield from _group_mistakes(config, name, task, (*place, "groups"))
            yield from _projection_mistakes(config, name, task, (*place, "projection"))
    if audit["calibration"] is not None:
        yield from _calibration_mistakes(config, name, audit, (*place, "calibration"))


def _unsupported_measure(config: dict[str, Any], audit: str, measure: str, place: Place) -> Iterator[ConfigMistake]:
    entry = config["measures"][measure]
    sources: dict[tuple[str, Gives], dict[str, Any]] = {}
    for model in plan.models_of(config, audit):
        known = plan.entry_of(config, **model)
        sources.setdefault((known["source"], plan.given_by(known)), model)
    for (source, gives), model in sources.items():
        if not plan.serves(gives, entry):
            served = [name for name in plan.measures_of(config, audit) if plan.serves(gives, config["measures"][name])]
            kind = kind_of(entry)
            remedy = kind.hint or f"of the audit's measures it supports {', '.join(served) or 'none'}"
            if source == "onnx" and plan.serves("gradients", entry):
                remedy = f"set gradients: true in the model's entry; without, {remedy}"
            yield ConfigMistake(
                place,
                f"model {model['threat']}/{model['model']} (source {source}) does not support {measure!r} (kind "
                f"{kind.name}); {remedy}",
            )


def _needs_logits(config: dict[str, Any], audit: str, measure: str, place: Place) -> Iterator[ConfigMistake]:
    # Scores that logarithms of probabilities do not tell.
    activation = config["measures"][measure].get("activation")
    if activation not in NEED_LOGITS:
        return
    for model in plan.models_of(config, audit):
        if plan.entry_of(config, **model).get("allow_probabilities") == LOGARITHMS:
            yield ConfigMistake(
                place,
                f"{measure} (activation {activation}) needs logits, but of model {model['threat']}/{model['model']} "
                f"there are probabilities (allow_probabilities: {LOGARITHMS}), which do not tell their size; leave the "
                "measure out, or take great-softmax",
            )


def _corruption_mistakes(config: dict[str, Any], audit: Mapping[str, Any], place: Place) -> Iterator[ConfigMistake]:
    baseline = audit["corruption_baseline"]
    if baseline is not None and baseline not in audit["models"]:
        yield ConfigMistake((*place, "corruption_baseline"), unknown("model of the audit", baseline, audit["models"]))
    for measure in audit["measures"] if "corrupted" in config["datasets"][audit["dataset"]] else ():
        entry = config["measures"][measure]
        stated = [key for key in ("corruptions", "severities") if kind_of(entry).copies and entry[key] is not None]
        if stated:
            message = f"dataset {audit['dataset']!r} brings its own copies; state {' and '.join(stated)} there"
            yield ConfigMistake(("measures", measure, stated[0]), f"{message}, under `corrupted`")


def _calibration_mistakes(
    config: dict[str, Any], name: str, audit: Mapping[str, Any], place: Place
) -> Iterator[ConfigMistake]:
    calibrated = audit["calibration"]["measure"]
    if calibrated not in audit["measures"]:
        yield ConfigMistake((*place, "measure"), unknown("measure of the audit", calibrated, audit["measures"]))
    elif config["measures"][calibrated]["kind"] != "great":
        yield ConfigMistake((*place, "measure"), f"{calibrated!r} has no temperature; name a measure of kind great")
    if ATTACK_DISTANCE in audit["calibration"]["objectives"] and not plan.distance_measure(config, name):
        message = f"{ATTACK_DISTANCE} needs distances; name a measure of kind minimal with norm: l2 among `measures`"
        yield ConfigMistake((*place, "objectives"), message)


# ---- the gate ----


def _rule_mistakes(
    config: dict[str, Any], audit: Mapping[str, Any], rule: Any, place: Place
) -> Iterator[ConfigMistake]:
    if rule["measure"] not in audit["measures"]:
        yield ConfigMistake((*place, "measure"), unknown("measure of the audit", rule["measure"], audit["measures"]))
        return
    names = config["datasets"][audit["dataset"]]["classes"]
    if names and "class" in rule and rule["class"] not in names:
        yield ConfigMistake((*place, "class"), unknown("class", rule["class"], names))
    parsed = gate_rules.RuleSettings.model_validate(rule)
    low, high = gate_rules.range_of(
        rule["statistic"],
        measure_of(config["measures"][rule["measure"]]).value_range,
        # The number of classes is unknown if only the data contain their names.
        classes=len(names) if names else math.inf,
        lam=config["disparity"]["fp_lambda"],
    )
    if not low <= parsed.threshold <= high:
        what = f"{rule['statistic']} of {rule['measure']}"
        message = f"{parsed.threshold:g} is outside the range of {what}, {low:g} to {high:g}"
        yield ConfigMistake((*place, parsed.direction), f"{message}; give a threshold within")
    if rule["statistic"] == gate_rules.FALSIFICATION:
        yield from _falsification_mistakes(config, audit, rule, place)
    compared = audit["groups"]["attributes"] if audit["groups"] else []
    if rule["statistic"] == gate_rules.GROUP_GAP and rule["attribute"] not in compared:
        message = f"{rule['attribute']!r} is not among the attributes of `groups` of the audit; name it there"
        yield ConfigMistake((*place, "attribute"), message)


def _falsification_mistakes(
    config: dict[str, Any], audit: Mapping[str, Any], rule: Mapping[str, Any], place: Place
) -> Iterator[ConfigMistake]:
    measures = [config["measures"][name] for name in audit["measures"]]
    distances = sum(settings["kind"] == "minimal" and settings["norm"] == "l2" for settings in measures)
    what = gate_rules.FALSIFICATION
    if config["measures"][rule["measure"]]["kind"] != "great":
        message = f"{what}: {rule['measure']!r} is no attack-free score; name a measure of kind great"
        yield ConfigMistake((*place, "measure"), message)
    if distances != 1:
        message = f"{what} needs one measure of kind minimal with norm l2 in the audit, and there are {distances}"
        yield ConfigMistake((*place, "statistic"), message)
    if config["datasets"][audit["dataset"]]["label_error_rate"] is not None:
        message = f"{what} assumes correct labels, but dataset {audit['dataset']!r} has a label_error_rate; drop it"
        yield ConfigMistake((*place, "statistic"), message)


# ---- groups and projections ----


def _task_mistakes(
    config: dict[str, Any], name: str, audit: Mapping[str, Any], place: Place
) -> Iterator[ConfigMistake]:
    if audit["tasks"] and not audit["projection"]:
        yield ConfigMistake(place, "tasks are compared by projections; name a mapper in `projection`, or drop them")
    positive = (audit["groups"] or {}).get("positive")
    for task in positive if isinstance(positive, Mapping) else ():
        if task not in plan.tasks_of(config, name):
            message = unknown("task", task, plan.tasks_of(config, name))
            yield ConfigMistake(("audits", name, "groups", "positive"), message)
    for position, task in enumerate(audit["tasks"]):
        here = (*place, position)
        if task not in config["datasets"]:
            yield ConfigMistake(here, unknown("dataset", task, config["datasets"]))
        elif task == audit["dataset"]:
            yield ConfigMistake(here, f"{task!r} is the dataset of the audit; name other ones")
        elif plan.zoo_of(config, task) is None:
            yield ConfigMistake(here, f"{task!r} names no models_of, so no model is evaluated on it; name a zoo there")
        else:
            zoo = plan.zoo_of(config, task)
            for model in plan.models_of(config, name, task):
                known = plan.known_models(config, zoo, model["threat"])
                if model["model"] not in known:
                    yield ConfigMistake(here, f"{zoo}/{model['threat']}: {unknown('model', model['model'], known)}")


def _group_mistakes(config: dict[str, Any], audit: str, task: str, place: Place) -> Iterator[ConfigMistake]:
    groups, dataset = config["audits"][audit]["groups"], config["datasets"][task]
    if groups is None:
        return
    if dataset["attributes"] is None:
        message = f"dataset {task!r} has no attributes; describe them in its entry"
        yield ConfigMistake(place, message)
        return
    if dataset["label_error_rate"] is not None:
        yield ConfigMistake(place, "the rate of wrong labels within a group is unknown; set label_error_rate: null")
    known, label = plan.attribute_names(dataset["attributes"]), dataset.get("task")
    balanced = [groups["balanced"]["attribute"]] if groups["balanced"] else []
    for name in [*groups["attributes"], *balanced]:
        if known and name not in known:
            yield ConfigMistake((*place, "attributes"), unknown("attribute", name, known))
    if label in groups["attributes"] and len(plan.tasks_of(config, audit)) == 1:
        message = f"{label!r} is the task, so its groups are the classes; leave it out"
        yield ConfigMistake((*place, "attributes"), message)
    names = dataset["classes"] or ([f"no {label}", label] if label is not None else None)
    positive = plan.positive_of(config, audit, task)
    if names and positive is not None and positive not in names:
        yield ConfigMistake((*place, "positive"), unknown("class", positive, names))


def _projection_mistakes(config: dict[str, Any], audit: str, task: str, place: Place) -> Iterator[ConfigMistake]:
    mappers = plan.mappers_of(config, audit)
    for mapper in mappers:
        if mapper not in config["mappers"]:
            yield ConfigMistake(place, unknown("mapper", mapper, config["mappers"]))
        else:
            yield from attribute_mistakes(config, place, config["mappers"][mapper], task)
    for model in plan.models_of(config, audit, task) if mappers else ():
        entry = plan.entry_of(config, **model)
        if plan.given_by(entry) not in ("gradients", "predictions"):
            name = f"model {model['threat']}/{model['model']} (source {entry['source']})"
            yield ConfigMistake(place, f"{name} cannot classify images; leave it out, or set projection: null")


def attribute_mistakes(
    config: dict[str, Any], place: Place, mapper: Mapping[str, Any], dataset: str
) -> Iterator[ConfigMistake]:
    """Yield a mistake for each attribute that a mapper needs and a dataset lacks."""
    if not mapper_kinds()[mapper["kind"]].conditions:
        return
    attributes = config["datasets"][dataset]["attributes"]
    if attributes is None:
        message = f"dataset {dataset!r} has no attributes for the mapper; describe them in its entry"
        yield ConfigMistake(place, message)
        return
    known = plan.attribute_names(attributes)
    for name in mapper["attributes"] or ():
        if known and name not in known:
            yield ConfigMistake(place, unknown("attribute", name, known))
