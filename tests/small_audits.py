"""Audits of a few models on a few samples, as an overlay of config.yaml."""

from copy import deepcopy

import yaml

from foreign_models import place_logits, place_network
from gate_rules import gate_rule
from gfscore.images.manifests import open_described


def small_audit(config, *, dataset, models, measures=("clean", "great-softmax")):
    """The default audit with other models and measures, and one objective of calibration that needs nothing more."""
    default = config["audits"]["digits"]
    calibration = default["calibration"] | {"measure": "great-softmax", "objectives": ["likelihood"]}
    return default | {
        "dataset": dataset,
        "models": models,
        "measures": list(measures),
        "calibration": calibration if "great-softmax" in measures else None,
        "groups": None,
        "projection": None,
        "gate": [gate_rule(measures[-1], at_least=0.1)],
    }


def trained_for_one_epoch(config, names):
    """Entries of the digits zoo that train in a second."""
    entries = {name: deepcopy(config["models"]["digits"]["none"][name]) for name in names}
    for entry in entries.values():
        entry["training"]["epochs"] = 1
    return entries


def place_small_audit(repository):
    """Put models of three sources into a copy of the repository, and `one.yaml`, which audits them, beside config.yaml."""
    config = repository.config()
    repository.snakemake("--", "results/datasets/digits.json")
    images, _ = open_described(repository.path / "results/datasets/digits.json")
    models = trained_for_one_epoch(config, ["ERM"]) | {
        "Network": place_network(repository.path, "Network", image_shape=(1, 8, 8), classes=10),
        "Given": place_logits(repository.path, "Given", labels=images.labels, classes=10),
    }
    overlay = {
        "run": ["one"],
        "datasets": {"one": config["datasets"]["digits"] | {"models_of": "one"}},
        "models": {"one": {"none": models}},
        "audits": {"one": small_audit(config, dataset="one", models=[f"one/none/{name}" for name in models])},
    }
    (repository.path / "one.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False))
