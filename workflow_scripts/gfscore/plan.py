"""What config.yaml asks for: audits, their models, measures and data, looked up by name.

Imports nothing heavy, because every run of Snakemake reads it. Expects a configuration that require_valid accepted.
"""

import re


def dataset_of(config, audit):
    """Dataset that an audit evaluates."""
    return config["audits"][audit]["dataset"]


def models_of(config, audit):
    """Models of an audit as mappings with dataset, threat, model, in the order of config."""
    dataset = dataset_of(config, audit)
    triples = (name.split("/") for name in config["audits"][audit]["models"])
    return [{"dataset": dataset, "threat": threat, "model": model} for _, threat, model in triples]


def described_models(config, audit):
    """Models of an audit with what the report says about each: training method and architecture, None if unknown."""
    described = []
    for model in models_of(config, audit):
        training = entry_of(config, **model).get("training", {})
        described.append({**model, "method": training.get("method"), "architecture": training.get("architecture")})
    return described


def zoo_of(config, dataset):
    """Key of the models that are evaluated on a dataset."""
    return config["datasets"][dataset]["models_of"]


def entry_of(config, dataset, threat, model):
    """Settings of one model."""
    return config["models"][zoo_of(config, dataset)][threat][model]


def classes_of(config, dataset):
    """Class names of a dataset in label order."""
    return config["datasets"][dataset]["classes"]


def image_settings_of(config, dataset):
    """Settings that decide the images of a dataset: its source and that source's own keys."""
    other = {"classes", "models_of", "label_error_rate", "fitted_on", "generator", "path"}
    return {key: value for key, value in config["datasets"][dataset].items() if key not in other}


def label_error_rate_of(config, audit):
    """Share of wrong labels in an audit's dataset: None, a number, one per class, or "from_generator"."""
    return config["datasets"][dataset_of(config, audit)]["label_error_rate"]


def measures_of(config, audit):
    """Measures of an audit with their settings, in the order of config."""
    return {name: config["measures"][name] for name in config["audits"][audit]["measures"]}


def calibrated_measure(config, audit):
    """The measure whose temperature an audit searches, or None."""
    calibration = config["audits"][audit]["calibration"]
    return calibration and calibration["measure"]


def subject_of(config, audit):
    """Models, measures and calibrated measure of an audit: what its values are values of."""
    return {
        "models": models_of(config, audit),
        "measures": measures_of(config, audit),
        "calibrated_measure": calibrated_measure(config, audit),
    }


def published_accuracies(config, audit):
    """Published clean and robust accuracy of each model of an audit, fractions or None, in the order of config."""
    entries = [entry_of(config, **model) for model in models_of(config, audit)]
    names = ("published_clean_accuracy", "published_robust_accuracy")
    return [{name: entry[name] for name in names} for entry in entries]


def datasets_of(config, audit):
    """Names of every dataset that an audit touches, for evaluation or training, sorted."""
    names = {dataset_of(config, audit)}
    for model in models_of(config, audit):
        entry = entry_of(config, **model)
        names |= {entry[key] for key in ("train_on", "evaluate_on") if key in entry}
    return sorted(names)


def names_of_kind(config, kind):
    """Regular expression that matches the names of the measures of one kind, and nothing when there is none."""
    names = [re.escape(name) for name, entry in config["measures"].items() if entry["kind"] == kind]
    return "|".join(names) or "(?!)"
