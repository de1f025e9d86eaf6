"""Checking config.yaml before any job starts: closed schema, and names that must exist.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from difflib import get_close_matches

from gfscore.errors import InputError
from gfscore.plan import zoo_of

TAGGED = {"datasets": "source", "measures": "kind"}
"""Sections whose entries are of several kinds, and the key that says which."""


def require_valid(config, schema):
    """Raise InputError, listing every mistake, unless `config` follows `schema` and its names exist.

    `schema` is JSON Schema; its `$defs` hold one closed schema per kind of entry: `$defs/datasets/digits` describes
    a dataset whose source is digits, and so on for measures and models.
    """
    mistakes = _schema_mistakes(config, schema) or [*_tagged_mistakes(config, schema)]
    mistakes = mistakes or [*_name_mistakes(config)]
    if mistakes:
        listed = "\n".join(f"  - {mistake}" for mistake in mistakes)
        raise InputError(f"config.yaml (with --config and --configfile merged in):\n{listed}")


def unknown(what, name, known):
    """Message for a name that does not exist, with the nearest known one."""
    close = get_close_matches(str(name), [str(item) for item in known], n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(str, known)) or 'none'}"
    return f"{what} {name!r} is unknown; {hint}"


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
    for section, tag, name, entry in entries:
        kinds = schema["$defs"][section]
        where = f"{section}: {name}"
        if entry[tag] not in kinds:
            yield f"{where}: {unknown(tag, entry[tag], kinds)}"
        else:
            yield from _mistakes_of(entry, {"$ref": f"#/$defs/{section}/{entry[tag]}"}, schema, where)


def _mistakes_of(data, part, schema, where):
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator({**part, "$defs": schema["$defs"]})
    for error in sorted(validator.iter_errors(data), key=lambda error: [str(step) for step in error.absolute_path]):
        path = ": ".join([*([where] if where else []), *(str(step) for step in error.absolute_path)]) or "top level"
        if error.validator == "additionalProperties" and isinstance(error.instance, dict):
            allowed = error.schema.get("properties", {})
            for key in error.instance.keys() - allowed.keys():
                yield f"{path}: {unknown('key', key, allowed)}"
        elif error.validator == "required":
            absent = [key for key in error.validator_value if key not in error.instance]
            yield f"{path}: {', '.join(absent)} missing; every value is written in config.yaml"
        elif error.validator == "enum":
            yield f"{path}: {unknown('value', error.instance, error.validator_value)}"
        elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
            yield f"{path}: name {error.instance!r} may hold only letters, digits and . _ + - and starts with no ."
        else:
            yield f"{path}: {error.message}"


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
    for name, audit in config["audits"].items():
        yield from _audit_mistakes(config, name, audit)
    search = config["great"]["temperatures"]
    if not search["low"] < 1 < search["high"]:
        yield f"great: temperatures: low < 1 < high is needed, got {search['low']} and {search['high']}"


def _model_mistakes(config, where, entry):
    for key in ("train_on", "evaluate_on"):
        if key in entry and entry[key] not in config["datasets"]:
            yield f"{where}: {key}: {unknown('dataset', entry[key], config['datasets'])}"


def _dataset_mistakes(config, name, entry):
    if len(set(entry["classes"])) != len(entry["classes"]):
        yield f"datasets: {name}: classes: a name stands more than once"
    if entry["models_of"] is not None and entry["models_of"] not in config["models"]:
        yield f"datasets: {name}: models_of: {unknown('zoo', entry['models_of'], config['models'])}"
    if "fitted_on" in entry and entry["fitted_on"] not in config["datasets"]:
        yield f"datasets: {name}: fitted_on: {unknown('dataset', entry['fitted_on'], config['datasets'])}"
    rate = entry["label_error_rate"]
    if rate == "from_generator" and entry["source"] != "generated":
        yield f"datasets: {name}: label_error_rate: from_generator is for the source generated; give numbers or null"
    if isinstance(rate, list) and len(rate) != len(entry["classes"]):
        yield f"datasets: {name}: label_error_rate: {len(rate)} rates for {len(entry['classes'])} classes"


def _audit_mistakes(config, name, audit):
    where = f"audits: {name}"
    if audit["dataset"] not in config["datasets"]:
        yield f"{where}: dataset: {unknown('dataset', audit['dataset'], config['datasets'])}"
        return
    zoo = zoo_of(config, audit["dataset"])
    known = [f"{zoo}/{threat}/{model}" for threat, models in config["models"].get(zoo, {}).items() for model in models]
    for model in audit["models"]:
        if model not in known:
            yield f"{where}: models: {unknown('model', model, known)}"
    for measure in audit["measures"]:
        if measure not in config["measures"]:
            yield f"{where}: measures: {unknown('measure', measure, config['measures'])}"
    for rule in audit["gate"]:
        if rule["measure"] not in audit["measures"]:
            yield f"{where}: gate: {unknown('measure', rule['measure'], audit['measures'])}"
    if audit["calibration"] is not None:
        calibrated = audit["calibration"]["measure"]
        if calibrated not in audit["measures"]:
            yield f"{where}: calibration: {unknown('measure', calibrated, audit['measures'])}"
        elif config["measures"].get(calibrated, {}).get("kind") != "great":
            yield f"{where}: calibration: measure {calibrated!r} has no temperature; name one of kind great"
