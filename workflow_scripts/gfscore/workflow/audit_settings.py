"""Settings of an audit, with the defaults of those that are left out, and settings that all audits of a run share."""

from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import BaseModel, Field

from gfscore.audit.settings import (
    ATTACK_DISTANCE,
    OBJECTIVES,
    CalibrationSettings,
    CheckSettings,
    ComparisonSettings,
    ConfusionSettings,
    DisparitySettings,
    GreatSettings,
    GroupSettings,
    IntervalSettings,
)
from gfscore.audit.verdicts.gate_rules import RuleSettings
from gfscore.core.names import upper_first
from gfscore.core.settings import Closed, Name, PlainSettings, Text, Unique
from gfscore.networks.device_choice import InferenceSettings
from gfscore.show.exports import ExportSettings
from gfscore.workflow.remedies import RemedySettings

DEFAULT_CLEAN_ACCURACY = 0.5
"""Least clean accuracy of every class in the default gate."""

DEFAULT_MEASURES = ("clean", "great-softmax")
"""Default measures of an audit; an attack is added if its models have gradients."""

ATTACK_BY_THREAT = {"L2": "adversarial-l2-0.5"}
DEFAULT_ATTACK = "adversarial-linf-8of255"
"""Default attacks, by the threat model that all models are trained for."""


class RunSettings(Closed):
    """Settings that all audits of a run share: sections of its configuration."""

    checks: CheckSettings
    inference: InferenceSettings
    great: GreatSettings
    intervals: IntervalSettings
    disparity: DisparitySettings
    confusions: ConfusionSettings
    comparison: ComparisonSettings
    exports: ExportSettings

    @classmethod
    def sections(cls) -> dict[str, type[BaseModel]]:
        """Class of the settings of each section, by the name of the section."""
        return {name: cast(type[BaseModel], field.annotation) for name, field in cls.model_fields.items()}


class LastRelease(Closed):
    """An earlier release, whose values per sample the statistic `decline` compares with."""

    bundle: Text = Field(description="Folder that `gfscore bundle` made of its audit.")
    model: Text | None = Field(
        None,
        description="Model in it, threat/name, that every model of this audit is compared with. Where it is left out: "
        "the one of the same name, or the only one where each audit has a single model.",
    )


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
        description="Models as zoo/threat/name, zoo/threat/* for all of them but those with offsets, or a file that is "
        "a model by itself; where they are left out, all that have entries in the dataset's zoo but those with "
        "offsets.",
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
    remedy: RemedySettings | None = Field(
        None,
        description="Class offsets that are chosen for models of the audit and judged: whether they would help; "
        "null for none.",
    )
    last_release: LastRelease | None = Field(
        None, description="Earlier release that rules on the statistic `decline` compare with; null for none."
    )
    gate: list[RuleSettings] = Field(
        [],
        min_length=1,
        description="Rules that give the verdict. Where they are left out: the clean accuracy of every class is at "
        "least 0.5, with 95% confidence.",
    )

    @property
    def mappers(self) -> list[str]:
        """Names of the mappers whose latent dimensions predictions are held against."""
        projection = self.projection or []
        return [projection] if isinstance(projection, str) else projection


def title_of(name: str) -> str:
    """Default title of an audit: "cifar10-l2" becomes "Cifar10 l2"."""
    words = name.replace("-", " ").replace("_", " ").strip() or name
    return upper_first(words)


def default_measures(threats: Sequence[str], *, gradients: bool, logits: bool) -> list[str]:
    """Names of the default measures of an audit.

    Parameters
    ----------
    threats : sequence of str
        Threat models of the audit's models.
    gradients, logits : bool
        Whether every model has them.
    """
    if not logits:
        return ["clean"]
    if not gradients:
        return list(DEFAULT_MEASURES)
    attack = DEFAULT_ATTACK
    if len(set(threats)) == 1:
        attack = ATTACK_BY_THREAT.get(threats[0], DEFAULT_ATTACK)
    return [*DEFAULT_MEASURES, attack]


def explicit_audit(
    name: str, settings: AuditSettings, models: list[str], measures: Mapping[str, PlainSettings], attributes: list[str]
) -> PlainSettings:
    """Complete settings of an audit as plain values, defaults filled in.

    Parameters
    ----------
    name : str
        Name of the audit.
    settings : AuditSettings
        Settings as the user wrote them.
    models : list of str
        Names of the models, "zoo/threat/name".
    measures : mapping
        Complete settings of the measures by name.
    attributes : list of str
        Names of the attributes that the entry of the dataset lists.
    """
    groups = settings.groups.model_dump() if settings.groups else None
    if groups:
        groups["attributes"] = groups["attributes"] or attributes

    rules = settings.gate
    clean = [measure for measure, entry in measures.items() if entry["kind"] == "clean"]
    if not rules and clean:
        rules = [RuleSettings(measure=clean[0], at_least=DEFAULT_CLEAN_ACCURACY)]

    return {
        **settings.model_dump(),
        "title": settings.title or title_of(name),
        "models": models,
        "measures": list(measures),
        "calibration": _explicit_calibration(settings, measures),
        "groups": groups,
        "gate": [rule.model_dump(by_alias=True) for rule in rules],
    }


def _explicit_calibration(settings: AuditSettings, measures: Mapping[str, PlainSettings]) -> PlainSettings | None:
    calibration = settings.calibration
    if "calibration" not in settings.model_fields_set:
        calibration = CalibrationSettings()
    if calibration is None:
        return None

    scores = []
    has_distances = False
    for name, entry in measures.items():
        if entry["kind"] == "great":
            scores.append(name)
        elif entry["kind"] == "minimal" and entry["norm"] == "l2":
            has_distances = True

    explicit = calibration.model_dump()
    if calibration.measure is None:
        if not scores:
            return None
        explicit["measure"] = scores[0]
    if not calibration.objectives:
        explicit["objectives"] = list(OBJECTIVES)
        if not has_distances:
            explicit["objectives"].remove(ATTACK_DISTANCE)
    return explicit
