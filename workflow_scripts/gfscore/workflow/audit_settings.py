"""Settings of an audit, and what it asks for where its entry leaves something out.

Imports nothing heavy, because every run of Snakemake reads it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from gfscore.audit.calibration.calibration_settings import ATTACK_DISTANCE, OBJECTIVES, CalibrationSettings
from gfscore.audit.groups.settings import GroupSettings
from gfscore.audit.verdicts.rule_settings import RuleSettings
from gfscore.core.settings import Closed, Name, Text, Unique

RIGHT_MORE_OFTEN_THAN_NOT = 0.5
"""Clean accuracy that the gate asks of every class where an audit states no gate."""

FIRST_MEASURES = ("clean", "great-softmax")
"""Measures of an audit that names none; attacks join them where its models give gradients."""

UNDER_ATTACK = {"L2": "adversarial-l2-0.5"}
UNDER_OTHER_ATTACK = "adversarial-linf-8of255"
"""Attacks of an audit that names no measures, by the threat that all its models are made for."""


class AuditSettings(Closed):
    """Models on one dataset, judged together."""

    title: Text | None = Field(None, description="Heading of the report: its name where it is left out.")
    dataset: Name = Field(description="Data evaluated.")
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
    projection: Name | None = Field(
        None,
        description="Mapper whose latent dimensions predictions are held against, see docs/projection.md; null: none.",
    )
    gate: list[RuleSettings] = Field(
        [],
        min_length=1,
        description="Rules that give the verdict. Where they are left out: the clean accuracy of every class is at "
        "least 0.5, with 95% confidence.",
    )


def title_of(name: str) -> str:
    """Heading of an audit by its name: "cifar10-l2" becomes "Cifar10 l2"."""
    words = name.replace("-", " ").replace("_", " ").strip() or name
    return words[:1].upper() + words[1:]


def usual_measures(threats: Sequence[str], *, gradients: bool, logits: bool) -> list[str]:
    """Names of the measures of an audit that names none, for models made for these threats.

    `gradients` and `logits` say whether every model gives them.
    """
    if not logits:
        return ["clean"]
    attack = UNDER_ATTACK.get(threats[0], UNDER_OTHER_ATTACK) if len(set(threats)) == 1 else UNDER_OTHER_ATTACK
    return [*FIRST_MEASURES, *([attack] if gradients else [])]


def explicit_audit(
    name: str, settings: AuditSettings, models: list[str], measures: Mapping[str, Any], attributes: list[str]
) -> dict[str, Any]:
    """Every setting of an audit, as plain values.

    `models` are its models by name, `measures` its measures with their settings, `attributes` the names that its
    dataset's entry lists.
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
    usual_rules = [RuleSettings(measure=measure, at_least=RIGHT_MORE_OFTEN_THAN_NOT) for measure in accuracies[:1]]
    rules = settings.gate or usual_rules
    return {
        "title": settings.title or title_of(name),
        "dataset": settings.dataset,
        "models": models,
        "measures": list(measures),
        "calibration": calibration,
        "groups": groups,
        "projection": settings.projection,
        "gate": [rule.model_dump(by_alias=True) for rule in rules],
    }
