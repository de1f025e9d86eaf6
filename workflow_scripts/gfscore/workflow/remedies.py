"""Remedies of audits: halves of the data and models with class offsets that follow from the setting `remedy`."""

from dataclasses import dataclass

from pydantic import Field

from gfscore.audit.step_params import RemedyParameters
from gfscore.core.settings import Half, Name, PlainSettings, Positive, Text, Unique
from gfscore.measures import NamedMeasure
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.networks.sources.adjusted import SOURCE
from gfscore.workflow.entries import PlannedDataset, PlannedModel, PlannedOffsets

KIND = "adversarial"
"""Kind of the measures that offsets are chosen for."""


class RemedySettings(OffsetSettings):
    """Class offsets for models of an audit: chosen on one half of its dataset, judged on the other."""

    models: Unique[Text] = Field(
        [],
        min_length=1,
        description="Models of the audit, zoo/threat/name; all that give gradients where they are left out.",
    )
    measure: Name | None = Field(
        None,
        description="Measure of kind adversarial whose values the offsets are to raise; by default the audit's first.",
    )
    strengths: Unique[Positive] = Field(
        [0.25, 0.5, 0.75, 1],
        min_length=1,
        description="Shares of the chosen offsets that are measured; the largest is the remedy.",
    )


def half_name(dataset: str, half: Half) -> str:
    """Name of one half of a dataset."""
    return f"{dataset}-{half}"


def half_entry(entry: PlainSettings, half: Half) -> PlainSettings:
    """Entry of one half of a dataset, from the entry of the whole."""
    published = None if entry["published_accuracy"] is None else "subset"
    # The whole has another digest than a half.
    return {**entry, "half": half, "digest": None, "published_accuracy": published}


def adjusted_name(model: str, choice: str, strength: float) -> str:
    """Name of a model with offsets."""
    return f"{model}+{choice}-x{strength:g}"


def adjusted_entry(remedy: RemedySettings, model: str, dataset: str, strength: float) -> PlainSettings:
    """Entry of a model, threat/name, with offsets that are chosen on one half of a dataset."""
    settings = SOURCE.settings.model_validate(
        {
            **remedy.choosing.model_dump(),
            "source": SOURCE.name,
            "of": model,
            "choose_on": half_name(dataset, "choosing"),
            "measure": remedy.measure,
            "strength": strength,
        }
    )
    return settings.explicit()


@dataclass(frozen=True)
class PlannedRemedy:
    """A model of an audit, and the same model with offsets, on the judging half of the audit's dataset.

    Parameters
    ----------
    original : PlannedModel
    adjusted : dict of float to PlannedModel
        The model with offsets, by their strength, ascending; all strengths share one choice of offsets.
    measure : NamedMeasure
        Measure that the offsets are to raise.
    dataset : PlannedDataset
        The judging half.
    """

    original: PlannedModel
    adjusted: dict[float, PlannedModel]
    measure: NamedMeasure
    dataset: PlannedDataset

    @property
    def planned_offsets(self) -> PlannedOffsets:
        """How the offsets are chosen."""
        assert self.judged.offsets is not None  # it is a model with offsets
        return self.judged.offsets

    @property
    def offsets(self) -> str:
        """Path of the chosen offsets."""
        return self.planned_offsets.file

    @property
    def models(self) -> list[PlannedModel]:
        """The model without and with offsets, by ascending strength."""
        return [self.original, *self.adjusted.values()]

    @property
    def judged(self) -> PlannedModel:
        """The model with the whole offsets."""
        return self.adjusted[max(self.adjusted)]

    def logit_files(self) -> list[str]:
        """Logits of the model without offsets and with the whole ones."""
        return [self.original.logits, self.judged.logits]

    def sample_files(self) -> list[str]:
        """Samples tables of the measure, of all models."""
        return [model.samples(self.measure.name) for model in self.models]

    def parameters(self) -> RemedyParameters:
        """Models and measure, as the tables need them."""
        return RemedyParameters(
            original=self.original.name.columns(),
            adjusted={strength: model.name.columns() for strength, model in self.adjusted.items()},
            measure=self.measure.name,
            entry=dict(self.measure.entry()),
        )
