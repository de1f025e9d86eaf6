"""A linear classifier on features of a frozen timm network, fitted by the workflow."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Count, Name, Positive, Text
from gfscore.networks.model_source import ModelSettings, ModelSource, Pixels, WeightsSettings


class Fit(ModelSettings):
    """Settings of the fit of the linear classifier."""

    train_on: Name = Field(description="Dataset that the linear classifier is fitted on.")
    evaluate_on: Name | None = Field(
        None, description="Dataset on which clean accuracy is recorded; by default that of the zoo, or its only one."
    )
    penalty: Positive = Field(
        1.0,
        description="Weight of half the squared norm of the coefficients, with the cross-entropy summed over samples "
        "(1 / C in scikit-learn).",
    )
    iterations: Count = Field(2000, description="Largest number of steps of the fit.")


class Probe(Pixels, WeightsSettings, Fit):
    """A linear classifier and its backbone."""

    source: Literal["probe"] = "probe"
    architecture: Text = Field(description="Name of the backbone in timm.")


SOURCE = ModelSource(
    name="probe",
    settings=Probe,
    gives="gradients",
    fetched=True,
    fitted_by="gfscore.networks.probe:fit",
    claims=lambda entry: "train_on" in entry and "path" in entry,
    opened_by="gfscore.networks.probe",
    files_by=__name__,
)
