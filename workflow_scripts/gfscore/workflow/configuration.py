"""Checking config.yaml before any job starts: closed schema, and names that must exist.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import ast
import errno
import math
from contextlib import suppress
from functools import cache
from pathlib import Path

from gfscore.attacks.settings import require_attacks
from gfscore.audit.groups.settings import group_mistakes, task_mistakes
from gfscore.audit.verdicts import gate_rules
from gfscore.core.errors import InputError, unknown
from gfscore.core.names import spelled_alike
from gfscore.measures.declared import largest_radius
from gfscore.networks import leaderboard
from gfscore.statistics.error_rates import error_rate, require_budget
from gfscore.workflow import plan
from gfscore.workflow.config_files import children, require_written_out
from gfscore.workflow.gates import gate_mistakes
from gfscore.workflow.names import case_mistakes
from gfscore.workflow.pixels import mean_mistakes, radius_mistakes, training_mistakes
from gfscore.workflow.projection_settings import mapper_mistakes, projection_mistakes
from gfscore.workflow.schema_words import nearest_form, words_of
from gfscore.workflow.texts import text_mistakes

THREATS = ("none", "Linf", "L2", "corruptions")
"""Threat models, as RobustBench spells them; none for models that are made for no particular one."""

OF_SNAKEMAKE = set("{}<>")
"""Characters that mean something to Snakemake in the name of a file."""

NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
"""Errors of the system for a path that no file can have."""

LARGEST = 2**63 - 1
"""Of an integer, in either direction: what a table can hold."""

LONGEST_GRID = 100_000
"""Temperatures in one phase of a search, beyond which it would only look endless."""

LARGEST_BUDGET = 100_000
"""Draws of a test up to which its error rate is found in seconds; beyond, the step that tests looks at it."""

TAGGED = {"datasets": "source", "measures": "kind", "mappers": "kind"}
"""Sections whose entries are of several kinds, and the key that says which."""


def complete_schema(schema, path_to_sources):
    """The schema of config.yaml with one closed description per source of datasets and of attributes.

    Each file of `path_to_sources` describes its own keys in a literal SETTINGS, which is read without running the
    file; the keys that every dataset has are added. So a new source is one file, and nothing heavy is imported. The
    sources of attributes stand in the folder attributes/ beside it.
    """
    known = schema["$defs"]
    kinds = {**known["datasets"], **_described_sources(path_to_sources)}
    attributes = _described_sources(path_to_sources.with_name("attributes"))
    closed = {"datasets": _closed(kinds, known["any_dataset"])}
    closed["attributes"] = _closed(attributes, known["any_attributes"])
    return {**schema, "$defs": {**known, **closed}}


def _described_sources(folder):
    found = {path.stem: _literal(path, "SETTINGS") for path in sorted(folder.glob("[!_]*.py"))}
    return {
        name: {"properties": {"source": {"const": name}, **own}, "required": ["source", *own]}
        for name, own in found.items()
        if own is not None
    }


def _closed(kinds, shared):
    return {
        name: {
            "type": "object",
            "additionalProperties": False,
            "properties": {**kind["properties"], **shared},
            "required": [*kind["required"], *shared],
        }
        for name, kind in kinds.items()
    }


def _literal(path, name):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return ast.literal_eval(node.value)
    return None


def require_valid(config, schema, *, thorough=True):
    """Raise InputError, listing every mistake, unless `config` follows `schema` and its names exist.

    `thorough`: also what takes longest to find, whether the tests of neighbourhoods in the audits to run can decide.

    `schema` is JSON Schema, completed by complete_schema; its `$defs` hold one closed schema per kind of entry:
    `$defs/datasets/digits` describes
    a dataset whose source is digits, and so on for measures and models.
    """
    require_written_out(config)
    mistakes = [*_bad_numbers(config)] or _schema_mistakes(config, schema)
    mistakes = mistakes or [*_tagged_mistakes(config, schema)] or [*_name_mistakes(config)]
    mistakes = mistakes or (thorough and [*_test_mistakes(config)])
    if mistakes:
        listed = "\n".join(f"  - {mistake}" for mistake in dict.fromkeys(mistakes))
        raise InputError(f"config.yaml (with --config and --configfile merged in):\n{listed}")


def _bad_numbers(data, path=()):
    """YAML's .nan and .inf pass every comparison of a schema or fail it silently; larger integers fit no table."""
    if isinstance(data, float) and not math.isfinite(data):
        yield f"{': '.join(path)}: {data} is no finite number"
    if isinstance(data, int) and abs(data) > LARGEST:
        yield f"{': '.join(path)}: an integer of {len(str(abs(data)))} digits is larger than any that is computed with"
    for key, part in children(data):
        yield from _bad_numbers(part, (*path, str(key)))


def _schema_mistakes(config, schema):
    if isinstance(config.get("run"), str):
        name = config["run"]
        return [f"run is the text {name!r}, but a list is needed: --config 'run=[{name}]'"]
    return [*_mistakes_of(config, schema, schema, "")]


def _tagged_mistakes(config, schema):
    entries = [
        (section, tag, name, entry) for section, tag in TAGGED.items() for name, entry in config[section].items()
    ]
    entries += [
        ("models", "source", f"{zoo}/{threat}/{name}", entry)
        for zoo, threats in config["models"].items()
        for threat, models in threats.items()
        for name, entry in models.items()
    ]
    entries += [
        ("attributes", "source", name, entry["attributes"])
        for name, entry in config["datasets"].items()
        if entry.get("attributes") is not None
    ]
    for section, tag, name, entry in entries:
        kinds = schema["$defs"][section]
        where = f"datasets: {name}: attributes" if section == "attributes" else f"{section}: {name}"
        if entry[tag] not in kinds:
            yield f"{where}: {unknown(tag, entry[tag], kinds)}"
        else:
            yield from _mistakes_of(entry, {"$ref": f"#/$defs/{section}/{entry[tag]}"}, schema, where)


def _mistakes_of(data, part, schema, where):
    from jsonschema.exceptions import best_match

    validator = _dialect()({**part, "$defs": schema["$defs"]})
    for found in sorted(validator.iter_errors(data), key=lambda error: [str(step) for step in error.absolute_path]):
        # Of several forms that an entry may have, the one that it comes nearest to says what is wrong.
        error = nearest_form(best_match([nearest_form(found)]))
        path = ": ".join([*([where] if where else []), *(str(step) for step in error.absolute_path)]) or "top level"
        if error.validator == "additionalProperties" and isinstance(error.instance, dict):
            allowed = error.schema.get("properties", {})
            for key in [key for key in error.instance if key not in allowed]:
                yield f"{path}: {unknown('key', key, allowed)}"
        elif error.validator == "required":
            absent = [key for key in error.validator_value if key not in error.instance]
            yield f"{path}: {', '.join(absent)} missing; every value is written in config.yaml"
        elif error.validator == "enum":
            yield f"{path}: {unknown('value', error.instance, error.validator_value)}"
        elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
            yield f"{path}: name {error.instance!r} may hold only letters, digits and . _ + - and starts with no ."
        else:
            yield f"{path}: {words_of(error, schema['$defs'])}"


@cache
def _dialect():
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # JSON knows one kind of number, so that its schemas take 1000.0 for an integer, of which numpy makes no count.
    whole = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return extend(Draft202012Validator, type_checker=whole)


def _name_mistakes(config):
    for name in config["run"]:
        if name not in config["audits"]:
            yield f"run: {unknown('audit', name, config['audits'])}"
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                yield from _model_mistakes(config, f"models: {zoo}/{threat}/{name}", entry)
    for name, entry in config["datasets"].items():
        yield from _dataset_mistakes(config, name, entry)
    for name, entry in config["measures"].items():
        yield from _measure_mistakes(f"measures: {name}", entry)
    for name, entry in config["mappers"].items():
        yield from mapper_mistakes(config, name, entry)
    for name, audit in config["audits"].items():
        yield from _audit_mistakes(config, name, audit)
    yield from text_mistakes(config)
    yield from case_mistakes(config)
    search = config["great"]["temperatures"]
    if not search["low"] < 1 < search["high"]:
        yield f"great: temperatures: low < 1 < high is needed, got {search['low']} and {search['high']}"
    for width, step in ((search["high"] - search["low"], "coarse_step"), (search["fine_radius"], "fine_step")):
        if width / search[step] > LONGEST_GRID:
            yield f"great: temperatures: {step} {search[step]:g} gives more than {LONGEST_GRID:,} temperatures"


def _path_mistakes(where, entry):
    for key in ("path", "list"):
        if not isinstance(entry.get(key), str):
            continue
        try:
            Path(entry[key]).stat()
        except (OSError, ValueError) as error:
            # A null byte, half a character, or a name or path longer than the file system takes.
            if isinstance(error, ValueError) or error.errno in NO_PATH:
                reason = getattr(error, "strerror", None) or error
                yield f"{where}: {key}: no file can have the path {entry[key][:100]!r} ({reason}); correct it"
        if set(entry[key]) & OF_SNAKEMAKE:
            yield f"{where}: {key}: Snakemake takes braces and angle brackets in {entry[key]!r} for its own; rename it"


def _model_mistakes(config, where, entry):
    yield from _path_mistakes(where, entry)
    yield from training_mistakes(where, entry)
    yield from mean_mistakes(where, entry)
    for key in ("train_on", "evaluate_on"):
        if key in entry and entry[key] not in config["datasets"]:
            yield f"{where}: {key}: {unknown('dataset', entry[key], config['datasets'])}"


def _attack_mistakes(where, entry, *, classes):
    try:
        require_attacks(entry, classes)
    except InputError as error:
        yield f"{where}: attacks: {error}"


def _measure_mistakes(where, entry):
    yield from radius_mistakes(where, entry)
    names = [attack["name"] for attack in entry.get("attacks", [])]
    if entry["kind"] == "adversarial":
        yield from _attack_mistakes(where, entry, classes=math.inf)
    if entry["kind"] == "minimal" and "carlini-wagner" in names and entry["norm"] != "l2":
        yield f"{where}: attacks: carlini-wagner searches in l2 only; leave it out, or set norm: l2"
    if "smoothing" in entry:
        smoothing = entry["smoothing"]
        if "largest_radius" in entry:
            yield f"{where}: largest_radius is for radii computed elsewhere, smoothing for computed ones; give one"
        elif largest_radius(entry) <= 0:
            yield (
                f"{where}: smoothing: {smoothing['estimation_samples']} estimation_samples can prove nothing at alpha "
                f"{smoothing['alpha']:g}; give more"
            )
        sandwich = smoothing["sandwich"]
        if sandwich and sandwich["gradient_draws"] > smoothing["batch_size"]:
            yield f"{where}: smoothing: sandwich: gradient_draws must be at most batch_size ({smoothing['batch_size']})"


def _test_mistakes(config):
    measures = {name: entry for audit in config["run"] for name, entry in plan.measures_of(config, audit).items()}
    for name, entry in measures.items():
        if entry["kind"] != "probabilistic":
            continue
        try:
            # Where Snakemake stands alone there is no scipy, and the step itself finds it.
            with suppress(ImportError):
                require_budget(entry)
                if entry["budget"] <= LARGEST_BUDGET:
                    error_rate(entry)
        except InputError as error:
            yield f"measures: {name}: {error}"


def _dataset_mistakes(config, name, entry):
    yield from _path_mistakes(f"datasets: {name}", entry)
    classes = entry["classes"] or []
    if len(set(classes)) != len(classes):
        yield f"datasets: {name}: classes: a name stands more than once"
    yield from _alike(f"datasets: {name}: classes", classes)
    yield from task_mistakes(name, entry)
    zoos = list(dict.fromkeys([*config["models"], *(listing.dataset for listing in leaderboard.listings())]))
    if entry["models_of"] is not None and entry["models_of"] not in zoos:
        yield f"datasets: {name}: models_of: {unknown('zoo', entry['models_of'], zoos)}"
    if "fitted_on" in entry and entry["fitted_on"] not in config["datasets"]:
        yield f"datasets: {name}: fitted_on: {unknown('dataset', entry['fitted_on'], config['datasets'])}"
    yield from _attribute_mistakes(config, f"datasets: {name}: attributes", entry["attributes"])
    rate = entry["label_error_rate"]
    if rate == "from_generator" and entry["source"] != "generated":
        yield f"datasets: {name}: label_error_rate: from_generator is for the source generated; give numbers or null"
    if isinstance(rate, list) and len(rate) != len(classes):
        yield f"datasets: {name}: label_error_rate: {len(rate)} rates for {len(classes)} classes"


def _attribute_mistakes(config, where, attributes):
    if attributes is None:
        return
    yield from _path_mistakes(where, attributes)
    names = plan.attribute_names(attributes)
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"{where}: columns: {name!r} stands more than once"
    if "sample_id" in names:
        yield f"{where}: columns: 'sample_id' is the column of the samples' names in every table; rename it in the data"
    for column in attributes["columns"] or ():
        if isinstance(column, str):
            continue
        cuts = column.get("cut") or column.get("quantiles")
        if cuts != sorted(set(cuts)):
            yield f"{where}: columns: {column['column']}: thresholds must ascend, got {cuts}"
        if len(column["names"]) != len(cuts) + 1:
            yield f"{where}: columns: {column['column']}: {len(cuts)} thresholds make {len(cuts) + 1} groups; name each"
        yield from _alike(f"{where}: columns: {column['column']}: names", column["names"])
        if "quantiles" in column and "fixed_on" not in attributes:
            yield f"{where}: columns: {column['column']}: quantiles are for the source digits; give `cut`"
    if "fixed_on" in attributes and attributes["fixed_on"] not in config["datasets"]:
        yield f"{where}: fixed_on: {unknown('dataset', attributes['fixed_on'], config['datasets'])}"


def _alike(where, names):
    alike = spelled_alike(names)
    if alike:
        yield f"{where}: {alike[0]!a} and {alike[1]!a} differ in blanks or Unicode spelling alone; rename one"


def _group_mistakes(config, where, audit):
    groups, dataset = audit["groups"], config["datasets"][audit["dataset"]]
    compared = groups["attributes"] if groups else []
    for rule in audit["gate"]:
        if rule["statistic"] == gate_rules.GROUP_GAP and rule.get("attribute") not in compared:
            yield f"{where}: gate: {gate_rules.GROUP_GAP} needs an `attribute` that `groups` of the audit names"
        if rule["statistic"] != gate_rules.GROUP_GAP and "attribute" in rule:
            yield f"{where}: gate: the statistic {gate_rules.GROUP_GAP}, and no other, names an attribute"
    if groups is None:
        return
    if dataset["attributes"] is None:
        yield f"{where}: groups: dataset {audit['dataset']!r} has no attributes; describe them in its entry"
        return
    if dataset["label_error_rate"] is not None:
        yield f"{where}: groups: the rate of wrong labels within a group is unknown; set label_error_rate: null"
    known = plan.attribute_names(dataset["attributes"])
    balanced = [groups["balanced"]["attribute"]] if groups["balanced"] else []
    for name in [*groups["attributes"], *balanced]:
        if known and name not in known:
            yield f"{where}: groups: {unknown('attribute', name, known)}"
    yield from group_mistakes(f"{where}: groups", groups, dataset)


def _unserved(config, audit, measure):
    kind = config["measures"][measure]["kind"]
    elsewhere = "largest_radius" in config["measures"][measure]
    for model in plan.models_of(config, audit):
        source = plan.entry_of(config, **model)["source"]
        if kind == "certified" and elsewhere != (source == "samples"):
            needed = "smoothing" if elsewhere else "largest_radius"
            yield (
                f"audits: {audit}: measures: {measure!r} does not fit model {model['threat']}/{model['model']} (source "
                f"{source}); name a measure of kind certified with {needed}"
            )
        if kind not in plan.SERVES[source]:
            yield (
                f"audits: {audit}: measures: model {model['threat']}/{model['model']} (source {source}) cannot serve "
                f"{measure!r} (kind {kind}); it serves {', '.join(sorted(plan.SERVES[source]))}"
            )


def _strange(config, dataset, model, known):
    """What an audit is told of a model, zoo/threat/name, that is none of those `known` for its dataset."""
    steps = model.split("/")
    elsewhere = plan.known_models(config, *steps[:2]) if len(steps) == 3 else []
    if steps[-1] in elsewhere or (steps[-1] == plan.EVERY and elsewhere):
        zoo = plan.zoo_of(config, dataset)
        return f"model {model!r} is of another zoo: dataset {dataset!r} evaluates models of {zoo!r}, see its models_of"
    return unknown("model", model, known)


def _audit_mistakes(config, name, audit):
    where = f"audits: {name}"
    if audit["dataset"] not in config["datasets"]:
        yield f"{where}: dataset: {unknown('dataset', audit['dataset'], config['datasets'])}"
        return
    zoo = plan.zoo_of(config, audit["dataset"])
    if zoo is None:
        yield f"{where}: dataset: {audit['dataset']!r} names no models_of, so no model is evaluated on it; name a zoo"
        return
    known = [f"{zoo}/{threat}/{model}" for threat in THREATS for model in plan.known_models(config, zoo, threat)]
    every = {f"{zoo}/{threat}/{plan.EVERY}" for threat in THREATS if plan.known_models(config, zoo, threat)}
    strangers = [model for model in audit["models"] if model not in known and model not in every]
    for model in strangers:
        yield f"{where}: models: {_strange(config, audit['dataset'], model, known)}"
    for measure in audit["measures"]:
        if measure not in config["measures"]:
            yield f"{where}: measures: {unknown('measure', measure, config['measures'])}"
        elif not strangers:
            yield from _unserved(config, name, measure)
            names = plan.classes_of(config, audit["dataset"])
            if names and config["measures"][measure]["kind"] == "adversarial":
                yield from _attack_mistakes(
                    f"{where}: measures: {measure}", config["measures"][measure], classes=len(names)
                )
    yield from gate_mistakes(config, where, audit)
    yield from _group_mistakes(config, where, audit)
    if not strangers:
        yield from projection_mistakes(config, name)
    if audit["calibration"] is not None:
        calibrated = audit["calibration"]["measure"]
        if calibrated not in audit["measures"]:
            yield f"{where}: calibration: {unknown('measure', calibrated, audit['measures'])}"
        elif config["measures"].get(calibrated, {}).get("kind") != "great":
            yield f"{where}: calibration: measure {calibrated!r} has no temperature; name one of kind great"
        known = all(measure in config["measures"] for measure in audit["measures"])
        if (
            known
            and "attack_distance" in audit["calibration"]["objectives"]
            and not plan.distance_measure(config, name)
        ):
            yield (
                f"{where}: calibration: the objective attack_distance needs distances; name a measure of kind minimal "
                "with norm: l2 among `measures`"
            )
