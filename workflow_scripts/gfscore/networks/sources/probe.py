"""A linear classifier of the features of a frozen network of timm, which the workflow fits."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Count, Name, Positive, Text
from gfscore.networks.model_source import ModelSettings, ModelSource, Pixels, WeightsSettings


class Fit(ModelSettings):
    """How the linear classifier is fitted."""

    train_on: Name = Field(description="Dataset that the linear classifier is fitted on.")
    evaluate_on: Name | None = Field(
        None, description="Dataset on which clean accuracy is recorded: that of the zoo, or the only one for it."
    )
    penalty: Positive = Field(
        1.0,
        description="Weight of half the squared norm of the coefficients, beside the cross-entropy summed over the "
        "samples (1 / C of scikit-learn).",
    )
    iterations: Count = Field(2000, description="Largest number of steps of the fit.")


class Probe(Pixels, WeightsSettings, Fit):
    """A linear classifier, and its backbone."""

    source: Literal["probe"] = "probe"
    architecture: Text = Field(description="Name of the backbone in timm.")


SOURCE = ModelSource(
    name="probe",
    settings=Probe,
    gives="gradients",
    fetched=True,
    fitted_by="train_probe",
    claims=lambda entry: "train_on" in entry and "path" in entry,
    opened_by="gfscore.networks.probe",
)
