"""Complete and consistent configuration of a run, from files and the command line."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gfscore.audit.settings import ATTACK_DISTANCE
from gfscore.audit.verdicts.gate_rules import DECLINE, FALSIFICATION, GROUP_GAP, RuleSettings
from gfscore.core.errors import unknown_name
from gfscore.core.settings import LOGARITHMS, PlainSettings
from gfscore.measures import NamedMeasure
from gfscore.measures.great import NEED_LOGITS
from gfscore.networks import leaderboard
from gfscore.networks.model_source import Gives
from gfscore.workflow.config_files import KeyPath, read_configuration, shown_path
from gfscore.workflow.entries import PlannedDataset, PlannedMapper, PlannedModel, model_entries, serves, zoo_models
from gfscore.workflow.plan import PlannedAudit, Run
from gfscore.workflow.resolution import Draft, Resolution
from gfscore.workflow.resolving import resolve
from gfscore.workflow.user_files import INVALID_PATH

SHIPPED = "config.yaml"
"""Default configuration file: the demo."""

SCRIPT_ENDS = ("</", "<!--")
"""Strings that end a script in an HTML page, or change where it ends, even within quotes."""

RESERVED_CHARACTERS = set("{}<>")
"""Characters with a meaning for Snakemake in file names."""

PATH_KEYS = ("path", "list", "images", "bundle")
"""Settings of entries that name files and folders."""


def resolved_configuration(
    paths: Iterable[Path | str], overrides: PlainSettings, *, thorough: bool = True
) -> Resolution:
    """Complete configuration of a run.

    Parameters
    ----------
    paths : iterable of path
        Configuration files, later ones overriding earlier ones; SHIPPED where there is none.
    overrides : mapping
        Values of the command line.
    thorough : bool
        Whether to include the slowest check: whether the sequential tests of the audits to run can reach a decision.

    Raises
    ------
    InputError
        Listing the mistakes of the first stage that finds any, each with file, line, value, the nearest known name and
        the remedy.
    """
    files = list(paths) or [SHIPPED]
    resolution = resolve(read_configuration(files, overrides))
    resolution = replace(resolution, files=tuple(map(shown_path, files)), overrides=overrides)
    require_consistent(resolution, thorough=thorough)
    return resolution


def require_consistent(resolution: Resolution, *, thorough: bool) -> None:
    """Raise InputError unless the names in a resolved configuration exist and its entries are consistent.

    Parameters
    ----------
    resolution : Resolution
        A complete configuration, with the marks of what the user wrote.
    thorough : bool
        Whether to include the slowest check, of sequential tests.
    """
    run = Run(resolution.config)
    draft = Draft(resolution.written, resolution.config)
    for zoo, threat, name, entry in model_entries(draft.config["models"]):
        key_path = ("models", zoo, threat, name)
        _check_paths(draft, entry, key_path)
        _check_datasets(draft, entry, key_path, "train_on", "evaluate_on")
    for dataset in run.datasets.values():
        _check_dataset(draft, dataset)
    for measure in run.measures.values():
        _check_measure(draft, measure)
    for mapper in run.mappers.values():
        _check_mapper(draft, run, mapper)
    for audit in run.audits.values():
        _check_audit(draft, audit)
    _check_texts(draft)
    check_case(draft)
    draft.stop_at_mistakes()

    if thorough:
        measures: dict[str, NamedMeasure] = {}
        for audit in run.selected:
            measures.update(audit.measures)
        for measure in measures.values():
            _check_measure(draft, measure, thorough=True)
        draft.stop_at_mistakes()


# ---- paths, names and texts ----


def path_mistakes(entry: PlainSettings) -> Iterator[tuple[str, str]]:
    """Yield the paths of an entry that no file can have, and those that Snakemake would misinterpret.

    Parameters
    ----------
    entry : mapping
        Settings, of which those of PATH_KEYS name files and folders.

    Yields
    ------
    key : str
        One of PATH_KEYS.
    message : str
        The value and the remedy.
    """
    for key in PATH_KEYS:
        path = entry.get(key)
        if not isinstance(path, str):
            continue
        try:
            Path(path).stat()
        except (OSError, ValueError) as error:
            # A null byte, half a surrogate pair, or a name or path that is too long for the file system.
            if isinstance(error, ValueError) or error.errno in INVALID_PATH:
                reason = getattr(error, "strerror", None) or error
                yield key, f"no file can have the path {path[:100]!r} ({reason}); correct it"
        if set(path) & RESERVED_CHARACTERS:
            yield key, f"{path!r} contains braces or angle brackets, which Snakemake interprets; rename it"


def _check_paths(draft: Draft, entry: PlainSettings, key_path: KeyPath) -> None:
    for key, message in path_mistakes(entry):
        draft.add_mistake(message, *key_path, key)


def _check_datasets(draft: Draft, entry: PlainSettings, key_path: KeyPath, *keys: str) -> None:
    # Settings of an entry that name datasets.
    datasets = draft.config["datasets"]
    for key in keys:
        name = entry.get(key)
        if name is not None and name not in datasets:
            draft.add_mistake(unknown_name("dataset", name, datasets), *key_path, key)


def check_case(draft: Draft) -> None:
    """Add a mistake for names of one section that differ only in case: on macOS and Windows they would share files."""
    for section in ("audits", "datasets", "measures", "mappers"):
        _check_case_of(draft, (section,), draft.config[section])
    # RobustBench's zoos and models need no entry.
    models = draft.config["models"]
    _check_case_of(draft, ("models",), models, [listing.dataset for listing in leaderboard.listings()])
    for zoo, threats in models.items():
        for threat, entries in threats.items():
            _check_case_of(draft, ("models", zoo, threat), entries, zoo_models(models, zoo, threat))


def _check_case_of(
    draft: Draft, key_path: KeyPath, entries: Collection[str], without_entry: Iterable[str] = ()
) -> None:
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys([*entries, *without_entry]):
        alike.setdefault(name.casefold(), []).append(name)
    for names in alike.values():
        if len(names) > 1:
            # The last one that has an entry, which the user can rename.
            last = [name for name in names if name in entries][-1]
            listed = " and ".join(map(repr, names))
            message = f"{listed} differ only in case and would share files on macOS and Windows; rename {last!r}"
            draft.add_mistake(message, *key_path, last)


def _check_texts(draft: Draft) -> None:
    # Titles and architectures that would end a script of Snakemake's report.
    texts: dict[KeyPath, str | None] = {}
    for name, audit in draft.config["audits"].items():
        texts["audits", name, "title"] = audit["title"]
    for zoo, threat, name, entry in model_entries(draft.config["models"]):
        texts["models", zoo, threat, name, "architecture"] = entry.get("architecture")
    for key_path, text in texts.items():
        for end in SCRIPT_ENDS:
            if end in (text or ""):
                message = f"{end} in {text!r} would end a script of Snakemake's report; leave it out"
                draft.add_mistake(message, *key_path)


# ---- datasets, measures, mappers ----


def _check_dataset(draft: Draft, dataset: PlannedDataset) -> None:
    key_path, entry = ("datasets", dataset.name), dataset.entry
    _check_paths(draft, entry, key_path)
    for key in ("corrupted", "generator"):
        _check_paths(draft, entry.get(key, {}), (*key_path, key))
    _check_datasets(draft, entry, key_path, "fitted_on")

    rates, classes = dataset.settings.label_error_rate, dataset.settings.classes
    if isinstance(rates, list) and classes and len(rates) != len(classes):
        message = f"{len(rates)} rates for {len(classes)} classes; give one for each"
        draft.add_mistake(message, *key_path, "label_error_rate")

    if entry["attributes"] is not None:
        _check_paths(draft, entry["attributes"], (*key_path, "attributes"))
        _check_datasets(draft, entry["attributes"], (*key_path, "attributes"), "fixed_on")


def _check_measure(draft: Draft, measure: NamedMeasure, *, thorough: bool = False) -> None:
    for mistake in measure.kind.mistakes(measure.settings, thorough=thorough):
        draft.add_mistake(mistake.words, "measures", measure.name, *mistake.key)


def _check_mapper(draft: Draft, run: Run, mapper: PlannedMapper) -> None:
    key_path = ("mappers", mapper.name)
    _check_datasets(draft, mapper.entry, key_path, "train_on", "evaluate_on")
    for key in ("train_on", "evaluate_on"):
        dataset = run.datasets.get(mapper.entry[key])
        if dataset is not None:
            _check_conditions(draft, mapper, dataset, (*key_path, key))


def _check_conditions(draft: Draft, mapper: PlannedMapper, dataset: PlannedDataset, key_path: KeyPath) -> None:
    # Attributes that a mapper is conditional on must be those of the dataset.
    if not mapper.kind.conditions:
        return
    if dataset.attributes is None:
        message = f"dataset {dataset.name!r} has no attributes for the mapper; describe them in its entry"
        draft.add_mistake(message, *key_path)
        return
    names = dataset.attribute_names
    for name in getattr(mapper.settings, "attributes", None) or ():
        if names and name not in names:
            draft.add_mistake(unknown_name("attribute", name, names), *key_path)


# ---- audits ----


def _check_audit(draft: Draft, audit: PlannedAudit) -> None:
    key_path = ("audits", audit.name)
    for position, measure in enumerate(audit.measures.values()):
        _check_measure_of_audit(draft, audit, measure, (*key_path, "measures", position))
    for number, rule in enumerate(audit.settings.gate):
        _check_rule(draft, audit, rule, (*key_path, "gate", number))
    if audit.settings.last_release:
        _check_paths(draft, audit.settings.last_release.model_dump(), (*key_path, "last_release"))
        if not audit.release_measures:
            message = f"no rule of `gate` compares with it; write one with statistic: {DECLINE}, or leave it out"
            draft.add_mistake(message, *key_path, "last_release")
    _check_corruptions(draft, audit)
    _check_unseen_samples(draft, audit)

    earlier_mistakes = len(draft.mistakes)
    _check_tasks(draft, audit)
    if len(draft.mistakes) == earlier_mistakes:
        for task in audit.tasks:
            _check_groups(draft, audit, task)
            _check_projection(draft, audit, task)
    _check_calibration(draft, audit)


def _check_measure_of_audit(draft: Draft, audit: PlannedAudit, measure: NamedMeasure, key_path: KeyPath) -> None:
    # Models that lack what the measure needs. One of each source, and of what it gives, stands for all of them.
    examples: dict[tuple[str, Gives], PlannedModel] = {}
    for model in audit.models:
        examples.setdefault((model.source.name, model.gives), model)
    for model in examples.values():
        if serves(model.gives, measure):
            continue
        supported = [name for name, candidate in audit.measures.items() if serves(model.gives, candidate)]
        source = model.source.name
        remedy = measure.kind.hint or f"of the audit's measures it supports {', '.join(supported) or 'none'}"
        if source == "onnx" and serves("gradients", measure):
            remedy = f"set gradients: true in the model's entry; without, {remedy}"
        message = f"model {model.label} (source {source}) does not support {measure.name!r} (kind {measure.kind.name})"
        draft.add_mistake(f"{message}; {remedy}", *key_path)

    # Log-probabilities fix logits up to a constant only, and some activations depend on it.
    activation = getattr(measure.settings, "activation", None)
    for model in audit.models:
        probabilities = getattr(model.network.settings, "allow_probabilities", None)
        if activation in NEED_LOGITS and probabilities == LOGARITHMS:
            message = (
                f"{measure.name} (activation {activation}) needs logits, but model {model.label} gives probabilities "
                f"(allow_probabilities: {LOGARITHMS}), which fix logits up to a constant only; leave the measure out, "
                "or take great-softmax"
            )
            draft.add_mistake(message, *key_path)

    # Settings that need more classes than the dataset has.
    classes = audit.dataset.settings.classes
    if classes:
        mistakes_without_classes = list(measure.kind.mistakes(measure.settings))
        for mistake in measure.kind.mistakes(measure.settings, classes=len(classes)):
            if mistake not in mistakes_without_classes:
                draft.add_mistake(f"{measure.name}: {mistake}", *key_path)


def _check_unseen_samples(draft: Draft, audit: PlannedAudit) -> None:
    # Models that are trained on samples that the audit evaluates, or whose offsets are chosen on some.
    key_path = ("audits", audit.name, "dataset")
    datasets = audit.run.datasets
    for model in audit.models:
        for name in model.network.training_datasets[:1]:
            if name in datasets and audit.dataset.may_hold_samples_of(datasets[name]):
                message = (
                    f"{model.label} is trained on samples of {audit.dataset.name!r} (train_on: {name}), which would "
                    "flatter the model; audit samples that it has not seen"
                )
                draft.add_mistake(message, *key_path)
    for model in audit.models:
        if model.offsets is None:
            continue
        choosing = datasets[model.offsets.model.name.dataset]
        if audit.dataset.may_hold_samples_of(choosing):
            message = (
                f"the offsets of {model.label} are chosen on samples of {audit.dataset.name!r} ({choosing.name}), "
                "which would flatter the model; choose them on the half: choosing of these data, and audit the half: "
                "judging"
            )
            draft.add_mistake(message, *key_path)


def _check_corruptions(draft: Draft, audit: PlannedAudit) -> None:
    baseline, models = audit.settings.corruption_baseline, audit.settings.models
    if baseline is not None and baseline not in models:
        message = unknown_name("model of the audit", baseline, models)
        draft.add_mistake(message, "audits", audit.name, "corruption_baseline")
    if audit.dataset.settings.corrupted is None:
        return
    for measure in audit.measures.values():
        if not measure.kind.copies:
            continue
        keys = [key for key in ("corruptions", "severities") if getattr(measure.settings, key) is not None]
        if keys:
            message = f"dataset {audit.dataset.name!r} brings its own copies; state {' and '.join(keys)} there"
            draft.add_mistake(f"{message}, under `corrupted`", "measures", measure.name, keys[0])


def _check_calibration(draft: Draft, audit: PlannedAudit) -> None:
    key_path = ("audits", audit.name, "calibration")
    calibration = audit.settings.calibration
    if calibration is None:
        return
    name = str(calibration.measure)
    if name not in audit.measures:
        draft.add_mistake(unknown_name("measure of the audit", name, audit.measures), *key_path, "measure")
    elif audit.measures[name].kind.name != "great":
        draft.add_mistake(f"{name!r} has no temperature; name a measure of kind great", *key_path, "measure")
    if ATTACK_DISTANCE in (calibration.objectives or ()) and not audit.distance_measures:
        message = f"{ATTACK_DISTANCE} needs distances; name a measure of kind minimal with norm: l2 among `measures`"
        draft.add_mistake(message, *key_path, "objectives")


# ---- the gate ----


def _check_rule(draft: Draft, audit: PlannedAudit, rule: RuleSettings, key_path: KeyPath) -> None:
    if rule.measure not in audit.measures:
        draft.add_mistake(unknown_name("measure of the audit", rule.measure, audit.measures), *key_path, "measure")
        return
    classes = audit.dataset.settings.classes
    if classes and rule.class_ is not None and rule.class_ not in classes:
        draft.add_mistake(unknown_name("class", rule.class_, classes), *key_path, "class")

    statistic = rule.statistic_of(lam=audit.run.settings.disparity.fp_lambda)
    low, high = statistic.value_range(
        statistic.bounded_range(audit.measures[rule.measure].description.value_range),
        # The number of classes is unknown if only the data contain their names.
        len(classes) if classes else math.inf,
    )
    if not low <= rule.threshold <= high:
        message = f"{rule.threshold:g} is outside the range of {rule.statistic} of {rule.measure}, {low:g} to {high:g}"
        draft.add_mistake(f"{message}; give a threshold within", *key_path, rule.direction)

    if rule.statistic == FALSIFICATION:
        distances = len(audit.distance_measures)
        if audit.measures[rule.measure].kind.name != "great":
            message = f"{FALSIFICATION}: {rule.measure!r} is no attack-free score; name a measure of kind great"
            draft.add_mistake(message, *key_path, "measure")
        if distances != 1:
            message = f"{FALSIFICATION} needs one measure of kind minimal with norm l2 in the audit, and there are"
            draft.add_mistake(f"{message} {distances}", *key_path, "statistic")
        if audit.dataset.settings.label_error_rate is not None:
            dataset = audit.dataset.name
            message = f"{FALSIFICATION} assumes correct labels, but dataset {dataset!r} has a label_error_rate; drop it"
            draft.add_mistake(message, *key_path, "statistic")
    if rule.statistic == DECLINE and audit.settings.last_release is None:
        message = f"{DECLINE} compares with an earlier release; name its bundle as `last_release` of the audit"
        draft.add_mistake(message, *key_path, "statistic")
    if rule.statistic == GROUP_GAP:
        groups = audit.settings.groups
        if groups is None or rule.attribute not in (groups.attributes or ()):
            message = f"{rule.attribute!r} is not among the attributes of `groups` of the audit; name it there"
            draft.add_mistake(message, *key_path, "attribute")


# ---- tasks, groups and projections ----


def _check_tasks(draft: Draft, audit: PlannedAudit) -> None:
    key_path = ("audits", audit.name, "tasks")
    run, names = audit.run, audit.settings.tasks
    if names and not audit.settings.mappers:
        message = "tasks are compared by projections; name a mapper in `projection`, or drop them"
        draft.add_mistake(message, *key_path)

    groups = audit.settings.groups
    positive = groups.positive if groups else None
    if isinstance(positive, Mapping):
        tasks = [audit.dataset.name, *names]
        for task in positive:
            if task not in tasks:
                draft.add_mistake(unknown_name("task", task, tasks), "audits", audit.name, "groups", "positive")

    for position, name in enumerate(names):
        if name not in run.datasets:
            draft.add_mistake(unknown_name("dataset", name, run.datasets), *key_path, position)
            continue
        if name == audit.dataset.name:
            draft.add_mistake(f"{name!r} is the dataset of the audit; name other ones", *key_path, position)
            continue
        zoo = run.datasets[name].zoo
        if zoo is None:
            message = f"{name!r} names no models_of, so no model is evaluated on it; name a zoo there"
            draft.add_mistake(message, *key_path, position)
            continue
        for model in audit.models:
            threat, classifier = model.name.threat, model.name.classifier
            models = zoo_models(draft.config["models"], zoo, threat)
            if classifier not in models:
                message = unknown_name("model", classifier, models)
                draft.add_mistake(f"{zoo}/{threat}: {message}", *key_path, position)


def _check_groups(draft: Draft, audit: PlannedAudit, task: PlannedDataset) -> None:
    key_path = ("audits", audit.name, "groups")
    groups = audit.settings.groups
    if groups is None:
        return
    if task.attributes is None:
        draft.add_mistake(f"dataset {task.name!r} has no attributes; describe them in its entry", *key_path)
        return
    if task.settings.label_error_rate is not None:
        message = "the rate of wrong labels within a group is unknown; set label_error_rate: null"
        draft.add_mistake(message, *key_path)

    listed = task.attribute_names
    attributes = list(groups.attributes or ())
    for name in attributes:
        if listed and name not in listed:
            draft.add_mistake(unknown_name("attribute", name, listed), *key_path, "attributes")
    if groups.balanced and listed and groups.balanced.attribute not in listed:
        message = unknown_name("attribute", groups.balanced.attribute, listed)
        draft.add_mistake(message, *key_path, "balanced", "attribute")

    if task.label_attribute in attributes and len(audit.tasks) == 1:
        message = f"{task.label_attribute!r} is the task, so its groups are the classes; name `attributes` without it"
        draft.add_mistake(message, *key_path, "attributes")

    classes = task.settings.classes
    celeba_task = getattr(task.settings, "task", None)
    if not classes and celeba_task is not None:
        classes = [f"no {celeba_task}", celeba_task]
    positive = audit.positive_class(task)
    if classes and positive is not None and positive not in classes:
        draft.add_mistake(unknown_name("class", positive, classes), *key_path, "positive")


def _check_projection(draft: Draft, audit: PlannedAudit, task: PlannedDataset) -> None:
    key_path = ("audits", audit.name, "projection")
    if not audit.settings.mappers:
        return
    mappers = audit.run.mappers
    for name in audit.settings.mappers:
        if name in mappers:
            _check_conditions(draft, mappers[name], task, key_path)
        else:
            draft.add_mistake(unknown_name("mapper", name, mappers), *key_path)
    for model in audit.models_on(task):
        if not model.classifies:
            message = f"model {model.label} (source {model.source.name}) cannot classify images"
            draft.add_mistake(f"{message}; leave it out, or set projection: null", *key_path)
