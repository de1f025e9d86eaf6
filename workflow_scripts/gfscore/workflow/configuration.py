"""Complete and consistent configuration of a run, from files and the command line."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gfscore.audit.settings import ATTACK_DISTANCE
from gfscore.audit.verdicts.gate_rules import DECLINE, FALSIFICATION, GROUP_GAP, RuleSettings
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import LOGARITHMS, PlainSettings
from gfscore.measures import NamedMeasure
from gfscore.measures.great import NEED_LOGITS
from gfscore.networks import leaderboard
from gfscore.networks.model_source import Gives
from gfscore.workflow.config_files import KeyPath, read_configuration, shown_path
from gfscore.workflow.entries import PlannedDataset, PlannedMapper, PlannedModel, serves
from gfscore.workflow.mistakes import ConfigMistake, message_of
from gfscore.workflow.plan import PlannedAudit, Run, model_entries
from gfscore.workflow.resolution import Resolution
from gfscore.workflow.resolving import resolve
from gfscore.workflow.user_files import INVALID_PATH

SHIPPED = "config.yaml"
"""Default configuration file: the demo."""

ENDS = ("</", "<!--")
"""Strings that end a script in an HTML page, or change where it ends, even within quotes."""

RESERVED_CHARACTERS = set("{}<>")
"""Characters with a meaning for Snakemake in file names."""

PATH_KEYS = ("path", "list", "images", "bundle")
"""Settings of entries that name files and folders."""


def configured(paths: Iterable[Path | str], overrides: PlainSettings, *, thorough: bool = True) -> Resolution:
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
    mistakes: list[ConfigMistake] = []
    for zoo, threat, name, entry in model_entries(run.config["models"]):
        key_path = ("models", zoo, threat, name)
        mistakes += path_mistakes(key_path, entry)
        mistakes += _dataset_names(run, key_path, entry, "train_on", "evaluate_on")
    for dataset in run.datasets.values():
        mistakes += _dataset_mistakes(run, dataset)
    for measure in run.measures.values():
        mistakes += _measure_mistakes(measure)
    for mapper in run.mappers.values():
        mistakes += _mapper_mistakes(run, mapper)
    for audit in run.audits.values():
        mistakes += _audit_mistakes(audit)
    mistakes += _text_mistakes(run)
    mistakes += case_mistakes(run)

    if thorough and not mistakes:
        measures: dict[str, NamedMeasure] = {}
        for audit in run.selected:
            measures.update(audit.measures)
        for measure in measures.values():
            mistakes += _measure_mistakes(measure, thorough=True)
    if mistakes:
        raise InputError(message_of(mistakes, resolution.written))


# ---- paths, names and texts ----


def path_mistakes(key_path: KeyPath, entry: PlainSettings) -> Iterator[ConfigMistake]:
    """Yield the invalid paths of an entry and those that Snakemake would misinterpret.

    Parameters
    ----------
    key_path : tuple
        Path of the entry in the configuration.
    entry : mapping
        Settings, of which those of PATH_KEYS name files and folders.
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
                yield ConfigMistake(
                    (*key_path, key), f"no file can have the path {path[:100]!r} ({reason}); correct it"
                )
        if set(path) & RESERVED_CHARACTERS:
            message = f"{path!r} contains braces or angle brackets, which Snakemake interprets; rename it"
            yield ConfigMistake((*key_path, key), message)


def _dataset_names(run: Run, key_path: KeyPath, entry: PlainSettings, *keys: str) -> Iterator[ConfigMistake]:
    for key in keys:
        name = entry.get(key)
        if name is not None and name not in run.datasets:
            yield ConfigMistake((*key_path, key), unknown_name("dataset", name, run.datasets))


def case_mistakes(run: Run) -> Iterator[ConfigMistake]:
    """Yield names in one section that differ only in case, which on macOS and Windows would share their files."""
    models = run.config["models"]
    sections: dict[KeyPath, Iterable[str]] = {
        ("audits",): run.audits,
        ("datasets",): run.datasets,
        ("measures",): run.measures,
        ("mappers",): run.mappers,
        ("models",): models,
    }
    # Zoos and models of RobustBench, which need no entry.
    without_entry: dict[KeyPath, Iterable[str]] = {("models",): [listing.dataset for listing in leaderboard.listings()]}
    for zoo, threats in models.items():
        for threat in threats:
            sections["models", zoo, threat] = threats[threat]
            without_entry["models", zoo, threat] = run.zoo_models(zoo, threat)

    for key_path, entries in sections.items():
        alike: dict[str, list[str]] = {}
        for name in dict.fromkeys([*entries, *without_entry.get(key_path, [])]):
            alike.setdefault(name.casefold(), []).append(name)
        for names in alike.values():
            if len(names) > 1:
                # The last one that has an entry, which the user can rename.
                last = [name for name in names if name in entries][-1]
                listed = " and ".join(map(repr, names))
                message = f"{listed} differ only in case and would share files on macOS and Windows; rename {last!r}"
                yield ConfigMistake((*key_path, last), message)


def _text_mistakes(run: Run) -> Iterator[ConfigMistake]:
    # Titles and architectures that would end a script of Snakemake's report.
    texts: dict[KeyPath, str | None] = {}
    for audit in run.audits.values():
        texts["audits", audit.name, "title"] = audit.title
    for zoo, threat, name, entry in model_entries(run.config["models"]):
        texts["models", zoo, threat, name, "architecture"] = entry.get("architecture")
    for key_path, text in texts.items():
        for end in ENDS:
            if end in (text or ""):
                yield ConfigMistake(
                    key_path, f"{end} in {text!r} would end a script of Snakemake's report; leave it out"
                )


# ---- datasets, measures, mappers ----


def _dataset_mistakes(run: Run, dataset: PlannedDataset) -> Iterator[ConfigMistake]:
    key_path, entry = ("datasets", dataset.name), dataset.entry
    yield from path_mistakes(key_path, entry)
    for key in ("corrupted", "generator"):
        yield from path_mistakes((*key_path, key), entry.get(key, {}))
    yield from _dataset_names(run, key_path, entry, "fitted_on")

    rates, classes = dataset.settings.label_error_rate, dataset.settings.classes
    if isinstance(rates, list) and classes and len(rates) != len(classes):
        message = f"{len(rates)} rates for {len(classes)} classes; give one for each"
        yield ConfigMistake((*key_path, "label_error_rate"), message)

    if entry["attributes"] is not None:
        yield from path_mistakes((*key_path, "attributes"), entry["attributes"])
        yield from _dataset_names(run, (*key_path, "attributes"), entry["attributes"], "fixed_on")


def _measure_mistakes(measure: NamedMeasure, *, thorough: bool = False) -> Iterator[ConfigMistake]:
    for mistake in measure.kind.mistakes(measure.settings, thorough=thorough):
        yield ConfigMistake(("measures", measure.name, *mistake.key), mistake.words)


def _mapper_mistakes(run: Run, mapper: PlannedMapper) -> Iterator[ConfigMistake]:
    key_path = ("mappers", mapper.name)
    yield from _dataset_names(run, key_path, mapper.entry, "train_on", "evaluate_on")
    for key, name in (("train_on", mapper.settings.train_on), ("evaluate_on", mapper.settings.evaluate_on)):
        if name in run.datasets:
            yield from _attribute_mistakes((*key_path, key), mapper, run.datasets[name])


def _attribute_mistakes(key_path: KeyPath, mapper: PlannedMapper, dataset: PlannedDataset) -> Iterator[ConfigMistake]:
    # Attributes that a mapper needs and a dataset lacks.
    if not mapper.kind.conditions:
        return
    if dataset.attributes is None:
        message = f"dataset {dataset.name!r} has no attributes for the mapper; describe them in its entry"
        yield ConfigMistake(key_path, message)
        return
    names = dataset.attribute_names
    for name in getattr(mapper.settings, "attributes", None) or ():
        if names and name not in names:
            yield ConfigMistake(key_path, unknown_name("attribute", name, names))


# ---- audits: measures that models do not support, rules that judge nothing ----


def _audit_mistakes(audit: PlannedAudit) -> Iterator[ConfigMistake]:
    key_path = ("audits", audit.name)
    for position, measure in enumerate(audit.measures.values()):
        path_of_measure = (*key_path, "measures", position)
        yield from _unsupported_measure(audit, measure, path_of_measure)
        yield from _probabilities_alone(audit, measure, path_of_measure)
        yield from _too_few_classes(audit, measure, path_of_measure)
    for number, rule in enumerate(audit.rules):
        yield from _rule_mistakes(audit, rule, (*key_path, "gate", number))
    if audit.settings.last_release:
        path_of_release = (*key_path, "last_release")
        yield from path_mistakes(path_of_release, audit.settings.last_release.model_dump())
        if not audit.release_measures():
            message = f"no rule of `gate` compares with it; write one with statistic: {DECLINE}, or leave it out"
            yield ConfigMistake(path_of_release, message)
    yield from _corruption_mistakes(audit, key_path)
    yield from _training_mistakes(audit, (*key_path, "dataset"))
    yield from _offset_mistakes(audit, (*key_path, "dataset"))

    task_mistakes = list(_task_mistakes(audit, (*key_path, "tasks")))
    yield from task_mistakes
    if not task_mistakes:
        for task in audit.tasks:
            yield from _group_mistakes(audit, task, (*key_path, "groups"))
            yield from _projection_mistakes(audit, task, (*key_path, "projection"))
    yield from _calibration_mistakes(audit, (*key_path, "calibration"))


def _unsupported_measure(audit: PlannedAudit, measure: NamedMeasure, key_path: KeyPath) -> Iterator[ConfigMistake]:
    # Models that lack what the measure needs. One of each source, and of what it gives, stands for all of them.
    examples: dict[tuple[str, Gives], PlannedModel] = {}
    for model in audit.models:
        examples.setdefault((model.source.name, model.gives), model)
    for model in examples.values():
        if serves(model.gives, measure):
            continue
        supported = []
        for name, candidate in audit.measures.items():
            if serves(model.gives, candidate):
                supported.append(name)
        source = model.source.name
        remedy = measure.kind.hint or f"of the audit's measures it supports {', '.join(supported) or 'none'}"
        if source == "onnx" and serves("gradients", measure):
            remedy = f"set gradients: true in the model's entry; without, {remedy}"
        yield ConfigMistake(
            key_path,
            f"model {model.label} (source {source}) does not support {measure.name!r} (kind {measure.kind.name}); "
            f"{remedy}",
        )


def _probabilities_alone(audit: PlannedAudit, measure: NamedMeasure, key_path: KeyPath) -> Iterator[ConfigMistake]:
    # Log-probabilities fix logits up to a constant only; some activations depend on it.
    activation = getattr(measure.settings, "activation", None)
    for model in audit.models:
        probabilities = getattr(model.network.settings, "allow_probabilities", None)
        if activation in NEED_LOGITS and probabilities == LOGARITHMS:
            yield ConfigMistake(
                key_path,
                f"{measure.name} (activation {activation}) needs logits, but of model {model.label} there are "
                f"probabilities (allow_probabilities: {LOGARITHMS}), which do not tell their size; leave the measure "
                "out, or take great-softmax",
            )


def _too_few_classes(audit: PlannedAudit, measure: NamedMeasure, key_path: KeyPath) -> Iterator[ConfigMistake]:
    # Settings that need more classes than the dataset has.
    classes = audit.dataset.settings.classes
    if not classes:
        return
    for_any_classes = list(measure.kind.mistakes(measure.settings))
    for mistake in measure.kind.mistakes(measure.settings, classes=len(classes)):
        if mistake not in for_any_classes:
            yield ConfigMistake(key_path, f"{measure.name}: {mistake}")


def _training_mistakes(audit: PlannedAudit, key_path: KeyPath) -> Iterator[ConfigMistake]:
    # Models that the workflow trains on samples that the audit evaluates.
    for model in audit.models:
        for name in model.network.training_datasets[:1]:
            if name in audit.run.datasets and audit.dataset.may_hold_samples_of(audit.run.datasets[name]):
                yield ConfigMistake(
                    key_path,
                    f"{model.label} is trained on samples of {audit.dataset.name!r} (train_on: {name}), which would "
                    "flatter the model; audit samples that it has not seen",
                )


def _offset_mistakes(audit: PlannedAudit, key_path: KeyPath) -> Iterator[ConfigMistake]:
    # Models whose offsets were chosen on samples that the audit evaluates.
    for model in audit.models:
        if model.offsets is None:
            continue
        choosing = audit.run.datasets[model.offsets.model.name.dataset]
        if audit.dataset.may_hold_samples_of(choosing):
            yield ConfigMistake(
                key_path,
                f"the offsets of {model.label} are chosen on samples of {audit.dataset.name!r} ({choosing.name}), "
                "which would flatter the model; choose them on the half: choosing of these data, and audit the half: "
                "judging",
            )


def _corruption_mistakes(audit: PlannedAudit, key_path: KeyPath) -> Iterator[ConfigMistake]:
    baseline, models = audit.settings.corruption_baseline, audit.settings.models
    if baseline is not None and baseline not in models:
        yield ConfigMistake((*key_path, "corruption_baseline"), unknown_name("model of the audit", baseline, models))
    if audit.dataset.settings.corrupted is None:
        return
    for measure in audit.measures.values():
        if not measure.kind.copies:
            continue
        keys = [key for key in ("corruptions", "severities") if getattr(measure.settings, key) is not None]
        if keys:
            message = f"dataset {audit.dataset.name!r} brings its own copies; state {' and '.join(keys)} there"
            yield ConfigMistake(("measures", measure.name, keys[0]), f"{message}, under `corrupted`")


def _calibration_mistakes(audit: PlannedAudit, key_path: KeyPath) -> Iterator[ConfigMistake]:
    calibration = audit.settings.calibration
    if calibration is None:
        return
    name = str(calibration.measure)
    if name not in audit.measures:
        message = unknown_name("measure of the audit", name, audit.measures)
        yield ConfigMistake((*key_path, "measure"), message)
    elif audit.measures[name].kind.name != "great":
        yield ConfigMistake((*key_path, "measure"), f"{name!r} has no temperature; name a measure of kind great")
    if ATTACK_DISTANCE in (calibration.objectives or ()) and not audit.distance_measures:
        message = f"{ATTACK_DISTANCE} needs distances; name a measure of kind minimal with norm: l2 among `measures`"
        yield ConfigMistake((*key_path, "objectives"), message)


# ---- the gate ----


def _rule_mistakes(audit: PlannedAudit, rule: RuleSettings, key_path: KeyPath) -> Iterator[ConfigMistake]:
    if rule.measure not in audit.measures:
        message = unknown_name("measure of the audit", rule.measure, audit.measures)
        yield ConfigMistake((*key_path, "measure"), message)
        return
    classes = audit.dataset.settings.classes
    if classes and rule.class_ is not None and rule.class_ not in classes:
        yield ConfigMistake((*key_path, "class"), unknown_name("class", rule.class_, classes))

    statistic = rule.statistic_of(lam=audit.run.settings.disparity.fp_lambda)
    low, high = statistic.value_range(
        statistic.bounded_range(audit.measures[rule.measure].description.value_range),
        # The number of classes is unknown if only the data contain their names.
        len(classes) if classes else math.inf,
    )
    if not low <= rule.threshold <= high:
        message = f"{rule.threshold:g} is outside the range of {rule.statistic} of {rule.measure}, {low:g} to {high:g}"
        yield ConfigMistake((*key_path, rule.direction), f"{message}; give a threshold within")

    if rule.statistic == FALSIFICATION:
        distances = len(audit.distance_measures)
        if audit.measures[rule.measure].kind.name != "great":
            message = f"{FALSIFICATION}: {rule.measure!r} is no attack-free score; name a measure of kind great"
            yield ConfigMistake((*key_path, "measure"), message)
        if distances != 1:
            message = f"{FALSIFICATION} needs one measure of kind minimal with norm l2 in the audit, and there are"
            yield ConfigMistake((*key_path, "statistic"), f"{message} {distances}")
        if audit.dataset.settings.label_error_rate is not None:
            dataset = audit.dataset.name
            message = f"{FALSIFICATION} assumes correct labels, but dataset {dataset!r} has a label_error_rate; drop it"
            yield ConfigMistake((*key_path, "statistic"), message)
    if rule.statistic == DECLINE and audit.settings.last_release is None:
        message = f"{DECLINE} compares with an earlier release; name its bundle as `last_release` of the audit"
        yield ConfigMistake((*key_path, "statistic"), message)
    if rule.statistic == GROUP_GAP:
        groups = audit.settings.groups
        if groups is None or rule.attribute not in (groups.attributes or ()):
            message = f"{rule.attribute!r} is not among the attributes of `groups` of the audit; name it there"
            yield ConfigMistake((*key_path, "attribute"), message)


# ---- tasks, groups and projections ----


def _task_mistakes(audit: PlannedAudit, key_path: KeyPath) -> Iterator[ConfigMistake]:
    run, names = audit.run, audit.settings.tasks
    if names and not audit.mapper_names:
        yield ConfigMistake(key_path, "tasks are compared by projections; name a mapper in `projection`, or drop them")

    groups = audit.settings.groups
    positive = groups.positive if groups else None
    if isinstance(positive, Mapping):
        tasks = [audit.dataset.name, *names]
        for task in positive:
            if task not in tasks:
                yield ConfigMistake(("audits", audit.name, "groups", "positive"), unknown_name("task", task, tasks))

    for position, name in enumerate(names):
        path_of_task = (*key_path, position)
        if name not in run.datasets:
            yield ConfigMistake(path_of_task, unknown_name("dataset", name, run.datasets))
            continue
        if name == audit.dataset.name:
            yield ConfigMistake(path_of_task, f"{name!r} is the dataset of the audit; name other ones")
            continue
        zoo = run.datasets[name].zoo
        if zoo is None:
            message = f"{name!r} names no models_of, so no model is evaluated on it; name a zoo there"
            yield ConfigMistake(path_of_task, message)
            continue
        for model in audit.models:
            threat, classifier = model.name.threat, model.name.classifier
            models = run.zoo_models(zoo, threat)
            if classifier not in models:
                yield ConfigMistake(path_of_task, f"{zoo}/{threat}: {unknown_name('model', classifier, models)}")


def _group_mistakes(audit: PlannedAudit, task: PlannedDataset, key_path: KeyPath) -> Iterator[ConfigMistake]:
    groups = audit.settings.groups
    if groups is None:
        return
    if task.attributes is None:
        yield ConfigMistake(key_path, f"dataset {task.name!r} has no attributes; describe them in its entry")
        return
    if task.settings.label_error_rate is not None:
        yield ConfigMistake(key_path, "the rate of wrong labels within a group is unknown; set label_error_rate: null")

    listed = task.attribute_names
    attributes = list(groups.attributes or ())
    for name in attributes:
        if listed and name not in listed:
            yield ConfigMistake((*key_path, "attributes"), unknown_name("attribute", name, listed))
    if groups.balanced and listed and groups.balanced.attribute not in listed:
        message = unknown_name("attribute", groups.balanced.attribute, listed)
        yield ConfigMistake((*key_path, "balanced", "attribute"), message)

    if task.label_attribute in attributes and len(audit.tasks) == 1:
        message = f"{task.label_attribute!r} is the task, so its groups are the classes; name `attributes` without it"
        yield ConfigMistake((*key_path, "attributes"), message)

    classes = task.settings.classes
    celeba_task = getattr(task.settings, "task", None)
    if not classes and celeba_task is not None:
        classes = [f"no {celeba_task}", celeba_task]
    positive = audit.positive_class(task)
    if classes and positive is not None and positive not in classes:
        yield ConfigMistake((*key_path, "positive"), unknown_name("class", positive, classes))


def _projection_mistakes(audit: PlannedAudit, task: PlannedDataset, key_path: KeyPath) -> Iterator[ConfigMistake]:
    if not audit.mapper_names:
        return
    mappers = audit.run.mappers
    for name in audit.mapper_names:
        if name in mappers:
            yield from _attribute_mistakes(key_path, mappers[name], task)
        else:
            yield ConfigMistake(key_path, unknown_name("mapper", name, mappers))
    for model in audit.models_on(task):
        if not model.classifies:
            message = f"model {model.label} (source {model.source.name}) cannot classify images"
            yield ConfigMistake(key_path, f"{message}; leave it out, or set projection: null")
