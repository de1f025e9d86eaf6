"""Mistakes in the gates of config.yaml: what is judged, in which direction, and by which threshold.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import math

from gfscore.audit.verdicts import gate_rules
from gfscore.core.errors import unknown
from gfscore.measures.declared import measure_of
from gfscore.workflow import plan


def gate_mistakes(config, where, audit):
    """Yield what is wrong with the rules of one audit's gate, except those of groups."""
    for number, rule in enumerate(audit["gate"], start=1):
        if rule["measure"] not in audit["measures"]:
            # What is no measure at all among them is a mistake of its own, and nothing to propose.
            known = [name for name in audit["measures"] if name in config["measures"]]
            yield f"{where}: gate: {unknown('measure of the audit', rule['measure'], known)}"
            continue
        if sum(direction in rule for direction in gate_rules.DIRECTIONS) != 1:
            yield f"{where}: gate: a rule needs one threshold, either {' or '.join(gate_rules.DIRECTIONS)}"
        elif rule["measure"] in config["measures"]:
            yield from _direction_mistakes(where, number, rule)
            yield from _threshold_mistakes(config, where, audit, rule)
        if rule["statistic"] == gate_rules.FALSIFICATION:
            yield from _falsification_mistakes(config, where, audit, rule)
        elif ("class" in rule) != (rule["statistic"] == "class"):
            yield f"{where}: gate: the statistics class and {gate_rules.FALSIFICATION}, and no other, name a class"
        looks = rule["looks"]
        if looks["this"] > looks["planned"]:
            yield (
                f"{where}: gate: looks: this is {looks['this']}, but {looks['planned']} were planned; "
                "a further look needs fresh samples"
            )


def _direction_mistakes(where, number, rule):
    # The other direction would pass the worst classifiers and fail the best.
    direction = gate_rules.direction_of(rule["statistic"])
    if direction not in rule:
        better = "more" if direction == "at_least" else "less"
        what = f"{rule['statistic']} of {rule['measure']}"
        yield f"{where}: gate: rule {number}, {what}: {better} is better; give its threshold as {direction}"


def _falsification_mistakes(config, where, audit, rule):
    known = [config["measures"][name] for name in audit["measures"] if name in config["measures"]]
    distances = sum(settings["kind"] == "minimal" and settings["norm"] == "l2" for settings in known)
    what = f"{where}: gate: {gate_rules.FALSIFICATION}"
    if config["measures"].get(rule["measure"], {}).get("kind") != "great":
        yield f"{what}: {rule['measure']!r} is no attack-free score; name a measure of kind great"
    if distances != 1:
        yield f"{what}: needs one measure of kind minimal with norm l2 in the audit, and there are {distances}"
    if config["datasets"].get(audit["dataset"], {}).get("label_error_rate") is not None:
        yield f"{what}: takes labels as right, but dataset {audit['dataset']!r} has a label_error_rate; drop the rule"


def _threshold_mistakes(config, where, audit, rule):
    names = plan.classes_of(config, audit["dataset"])
    if names and "class" in rule and rule["class"] not in names:
        yield f"{where}: gate: {unknown('class', rule['class'], names)}"
    direction, threshold = gate_rules.threshold_of(rule)
    low, high = gate_rules.range_of(
        rule["statistic"],
        measure_of(config["measures"][rule["measure"]]).value_range,
        # Names that only the data hold leave the number of classes open.
        classes=len(names) if names else math.inf,
        lam=config["disparity"]["fp_lambda"],
    )
    if not low <= threshold <= high:
        what = (
            "measure's range"
            if rule["statistic"] in gate_rules.IN_RANGE_OF_MEASURE
            else f"range of {rule['statistic']}"
        )
        yield f"{where}: gate: {direction} {threshold:g} is outside the {what} {low:g} to {high:g}"
