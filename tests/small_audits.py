"""Audits of a few models on a few samples, as an overlay of config.yaml."""

from copy import deepcopy

from made import gate_rule


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
