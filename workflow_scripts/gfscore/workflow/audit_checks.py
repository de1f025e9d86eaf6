"""What can be wrong with an audit whose entries are all there: what its models cannot serve, rules that judge nothing.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gfscore.audit.calibration.calibration_settings import ATTACK_DISTANCE
from gfscore.audit.verdicts import gate_rules, gate_statistics
from gfscore.core.errors import unknown
from gfscore.measures import KINDS, kind_of, measure_of
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place
from gfscore.workflow.setting_mistakes import Mistake


def audit_mistakes(config: dict[str, Any], name: str, audit: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with an audit of a resolved configuration."""
    place = ("audits", name)
    classes = plan.classes_of(config, audit["dataset"])
    for position, measure in enumerate(audit["measures"]):
        yield from _unserved(config, name, measure, (*place, "measures", position))
        if classes:
            kind, entry = KINDS[config["measures"][measure]["kind"]], config["measures"][measure]
            whatever = [*kind.mistakes(kind.parse(entry))]
            for found in kind.mistakes(kind.parse(entry), classes=len(classes)):
                if found not in whatever:
                    yield Mistake((*place, "measures", position), f"{measure}: {found}")
    for number, rule in enumerate(audit["gate"]):
        yield from _rule_mistakes(config, audit, rule, (*place, "gate", number))
    yield from _group_mistakes(config, audit, (*place, "groups"))
    yield from _projection_mistakes(config, name, audit["projection"])
    if audit["calibration"] is not None:
        yield from _calibration_mistakes(config, name, audit, (*place, "calibration"))


def _unserved(config: dict[str, Any], audit: str, measure: str, place: Place) -> Iterator[Mistake]:
    entry = config["measures"][measure]
    sources: dict[str, dict[str, Any]] = {}
    for model in plan.models_of(config, audit):
        sources.setdefault(plan.entry_of(config, **model)["source"], model)
    for source, model in sources.items():
        if not plan.serves(source, entry):
            served = [name for name in plan.measures_of(config, audit) if plan.serves(source, config["measures"][name])]
            kind = kind_of(entry)
            remedy = kind.hint or f"of the audit's measures it serves {', '.join(served) or 'none'}"
            yield Mistake(
                place,
                f"model {model['threat']}/{model['model']} (source {source}) cannot serve {measure!r} (kind "
                f"{kind.name}); {remedy}",
            )


def _calibration_mistakes(
    config: dict[str, Any], name: str, audit: Mapping[str, Any], place: Place
) -> Iterator[Mistake]:
    calibrated = audit["calibration"]["measure"]
    if calibrated not in audit["measures"]:
        yield Mistake((*place, "measure"), unknown("measure of the audit", calibrated, audit["measures"]))
    elif config["measures"][calibrated]["kind"] != "great":
        yield Mistake((*place, "measure"), f"{calibrated!r} has no temperature; name a measure of kind great")
    if ATTACK_DISTANCE in audit["calibration"]["objectives"] and not plan.distance_measure(config, name):
        words = f"{ATTACK_DISTANCE} needs distances; name a measure of kind minimal with norm: l2 among `measures`"
        yield Mistake((*place, "objectives"), words)


# ---- the gate ----


def _rule_mistakes(config: dict[str, Any], audit: Mapping[str, Any], rule: Any, place: Place) -> Iterator[Mistake]:
    if rule["measure"] not in audit["measures"]:
        yield Mistake((*place, "measure"), unknown("measure of the audit", rule["measure"], audit["measures"]))
        return
    names = plan.classes_of(config, audit["dataset"])
    if names and "class" in rule and rule["class"] not in names:
        yield Mistake((*place, "class"), unknown("class", rule["class"], names))
    direction, threshold = gate_rules.threshold_of(rule)
    low, high = gate_statistics.range_of(
        rule["statistic"],
        measure_of(config["measures"][rule["measure"]]).value_range,
        # Names that only the data hold leave the number of classes open.
        classes=len(names) if names else math.inf,
        lam=config["disparity"]["fp_lambda"],
    )
    if not low <= threshold <= high:
        words = f"{threshold:g} is outside the range of {rule['statistic']} of {rule['measure']}, {low:g} to {high:g}"
        yield Mistake((*place, direction), f"{words}; give a threshold within")
    if rule["statistic"] == gate_rules.FALSIFICATION:
        yield from _falsification_mistakes(config, audit, rule, place)
    compared = audit["groups"]["attributes"] if audit["groups"] else []
    if rule["statistic"] == gate_rules.GROUP_GAP and rule["attribute"] not in compared:
        words = f"{rule['attribute']!r} is none that `groups` of the audit compares; name it there"
        yield Mistake((*place, "attribute"), words)


def _falsification_mistakes(
    config: dict[str, Any], audit: Mapping[str, Any], rule: Mapping[str, Any], place: Place
) -> Iterator[Mistake]:
    measures = [config["measures"][name] for name in audit["measures"]]
    distances = sum(settings["kind"] == "minimal" and settings["norm"] == "l2" for settings in measures)
    what = gate_rules.FALSIFICATION
    if config["measures"][rule["measure"]]["kind"] != "great":
        words = f"{what}: {rule['measure']!r} is no attack-free score; name a measure of kind great"
        yield Mistake((*place, "measure"), words)
    if distances != 1:
        words = f"{what} needs one measure of kind minimal with norm l2 in the audit, and there are {distances}"
        yield Mistake((*place, "statistic"), words)
    if config["datasets"][audit["dataset"]]["label_error_rate"] is not None:
        words = f"{what} takes labels as right, but dataset {audit['dataset']!r} has a label_error_rate; drop the rule"
        yield Mistake((*place, "statistic"), words)


# ---- groups and projections ----


def _group_mistakes(config: dict[str, Any], audit: Mapping[str, Any], place: Place) -> Iterator[Mistake]:
    groups, dataset = audit["groups"], config["datasets"][audit["dataset"]]
    if groups is None:
        return
    if dataset["attributes"] is None:
        words = f"dataset {audit['dataset']!r} has no attributes; describe them in its entry"
        yield Mistake(place, words)
        return
    if dataset["label_error_rate"] is not None:
        yield Mistake(place, "the rate of wrong labels within a group is unknown; set label_error_rate: null")
    known, task = plan.attribute_names(dataset["attributes"]), dataset.get("task")
    balanced = [groups["balanced"]["attribute"]] if groups["balanced"] else []
    for name in [*groups["attributes"], *balanced]:
        if known and name not in known:
            yield Mistake((*place, "attributes"), unknown("attribute", name, known))
    if task in groups["attributes"]:
        words = f"{task!r} is the task: its groups are the classes themselves; leave it out"
        yield Mistake((*place, "attributes"), words)
    names = dataset["classes"] or ([f"no {task}", task] if task is not None else None)
    if names and groups["positive"] is not None and groups["positive"] not in names:
        yield Mistake((*place, "positive"), unknown("class", groups["positive"], names))


def _projection_mistakes(config: dict[str, Any], audit: str, mapper: str | None) -> Iterator[Mistake]:
    place = ("audits", audit, "projection")
    if mapper is None:
        return
    if mapper not in config["mappers"]:
        yield Mistake(place, unknown("mapper", mapper, config["mappers"]))
        return
    yield from attribute_mistakes(config, place, config["mappers"][mapper], plan.dataset_of(config, audit))
    for model in plan.models_of(config, audit):
        if not plan.shows_images(config, **model):
            source = plan.entry_of(config, **model)["source"]
            yield Mistake(
                place,
                f"model {model['threat']}/{model['model']} (source {source}) classifies no images; leave it out, or "
                "set projection: null",
            )


def attribute_mistakes(
    config: dict[str, Any], place: Place, mapper: Mapping[str, Any], dataset: str
) -> Iterator[Mistake]:
    """Yield attributes that a mapper moves and a dataset has not."""
    if not mapper_kinds()[mapper["kind"]].conditions:
        return
    attributes = plan.attributes_of(config, dataset)
    if attributes is None:
        words = f"dataset {dataset!r} has no attributes that could be moved; describe them in its entry"
        yield Mistake(place, words)
        return
    known = plan.attribute_names(attributes)
    for name in mapper["attributes"] or ():
        if known and name not in known:
            yield Mistake(place, unknown("attribute", name, known))
