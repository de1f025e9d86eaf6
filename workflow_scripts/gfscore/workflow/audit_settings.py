"""Settings of an audit and their defaults."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from gfscore.audit.calibration.calibration_settings import ATTACK_DISTANCE, OBJECTIVES, CalibrationSettings
from gfscore.audit.settings import GroupSettings
from gfscore.audit.verdicts.gate_rules import RuleSettings
from gfscore.core.settings import Closed, Name, Text, Unique

DEFAULT_CLEAN_ACCURACY = 0.5
"""Least clean accuracy of every class in the default gate."""

DEFAULT_MEASURES = ("clean", "great-softmax")
"""Default measures of an audit; an attack is added if its models have gradients."""

ATTACK_BY_THREAT = {"L2": "adversarial-l2-0.5"}
DEFAULT_ATTACK = "adversarial-linf-8of255"
"""Default attacks, by the threat model that all models are trained for."""


class AuditSettings(Closed):
    """Settings of an audit: models on one dataset that are judged together."""

    title: Text | None = Field(None, description="Heading of the report: its name where it is left out.")
    dataset: Name = Field(description="Data evaluated.")
    tasks: Unique[Name] = Field(
        [],
        description="More datasets, of the same images with other labels, that projections are about as well; the zoo "
        "of each has models of the same names.",
    )
    models: Unique[Text] = Field(
        [],
        min_length=1,
        description="Models as zoo/threat/name, zoo/threat/* for all of them, or a file that is a model by itself; all "
        "that have entries in the dataset's zoo where they are left out.",
    )
    measures: Unique[Text] = Field(
        [],
        min_length=1,
        description="Names of measures, or their settings. Where they are left out: clean accuracy, the attack-free "
        "score and, if every model gives gradients, accuracy under attack.",
    )
    calibration: CalibrationSettings | None = Field(
        None,
        description="Temperature search: of the first score where it is left out; null for none.",
    )
    groups: GroupSettings | None = Field(
        None, description="Fairness between the groups that attributes of the dataset make; null for none."
    )
    corruption_baseline: Text | None = Field(
        None,
        description="Model of the audit, zoo/threat/name, whose errors under corruptions the mean corruption error "
        "divides by (Hendrycks and Dietterich 2019: AlexNet); null for none.",
    )
    projection: Name | Unique[Name] | None = Field(
        None,
        description="Mapper, or mappers, whose latent dimensions predictions are held against, see docs/projection.md; "
        "null: none.",
    )
    gate: list[RuleSettings] = Field(
        [],
        min_length=1,
        description="Rules that give the verdict. Where they are left out: the clean accuracy of every class is at "
        "least 0.5, with 95% confidence.",
    )


def title_of(name: str) -> str:
    """Default title of an audit: "cifar10-l2" becomes "Cifar10 l2"."""
    message = name.replace("-", " ").replace("_", " ").strip() or name
    return message[:1].upper() + message[1:]


def default_measures(threats: Sequence[str], *, gradients: bool, logits: bool) -> list[str]:
    """Names of the default measures of an audit, by the threat models of its models.

    `gradients`, `logits`: whether every model has them.
    """
    if not logits:
        return ["clean"]
    attack = ATTACK_BY_THREAT.get(threats[0], DEFAULT_ATTACK) if len(set(threats)) == 1 else DEFAULT_ATTACK
    return [*DEFAULT_MEASURES, *([attack] if gradients else [])]


def explicit_audit(
    name: str, settings: AuditSettings, models: list[str], measures: Mapping[str, Any], attributes: list[str]
) -> dict[str, Any]:
    """Complete settings of an audit as plain values, defaults filled in.

    `models`: names of its models; `measures`: its measures with their settings; `attributes`: names that the entry of
    its dataset lists.
    """
    kinds = {measure: entry["kind"] for measure, entry in measures.items()}
    scores = [measure for measure, kind in kinds.items() if kind == "great"]
    given = settings.calibration if "calibration" in settings.model_fields_set else CalibrationSettings()
    calibration = None
    if given is not None and (scores or given.measure):
        calibration = given.model_dump()
        calibration["measure"] = given.measure or scores[0]
        in_l2 = any(entry["kind"] == "minimal" and entry["norm"] == "l2" for entry in measures.values())
        usual = [objective for objective in OBJECTIVES if objective != ATTACK_DISTANCE or in_l2]
        calibration["objectives"] = given.objectives or usual
    groups = settings.groups and settings.groups.model_dump()
    if groups:
        groups["attributes"] = groups["attributes"] or attributes
    accuracies = [measure for measure, kind in kinds.items() if kind == "clean"]
    usual_rules = [RuleSettings(measure=measure, at_least=DEFAULT_CLEAN_ACCURACY) for measure in accuracies[:1]]
    rules = settings.gate or usual_rules
    return settings.model_dump() | {
        "title": settings.title or title_of(name),
        "models": models,
        "measures": list(measures),
        "calibration": calibration,
        "groups": groups,
        "gate": [rule.model_dump(by_alias=True) for rule in rules],
    }
