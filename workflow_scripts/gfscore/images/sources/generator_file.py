"""Samples of a user's generator of images conditional on the class, written by draw_samples."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.settings import Closed, Count, Device, ImagesAtOnce, Number, Seed, Sha256, Text, refusal
from gfscore.images.dataset_source import DatasetSettings, DatasetSource
from gfscore.images.sources import generated


class NetworkGenerator(Closed):
    """A network of a latent and a class, in a file: weights of an `architecture`, or a program of torch."""

    path: Text = Field(description="File of the generator.")
    architecture: Text | None = Field(
        None, description="package.module:callable that the weights belong to; null for a program."
    )
    arguments: dict[str, Any] = Field({}, description="Arguments of the architecture.")
    weights: Literal["model", "ema"] = Field(
        "model", description="Weights of the checkpoint: those of the model, or their exponential moving average."
    )
    sha256: Sha256 | None = Field(None, description="Digest that the file must have; null to record it at first use.")
    trust_pickle: bool = Field(
        False, description="Run code in the file, needed for a program; requires sha256. See SECURITY.md."
    )
    latent: list[Count] = Field(min_length=1, description="Shape of one latent: [128], or [512, 1, 1].")
    distribution: Literal["normal", "uniform"] = Field(
        "normal", description="Of each coordinate: standard normal, or uniform in [-1, 1]."
    )
    class_input: Literal["index", "one_hot"] = Field(
        "index", description="Second input: index of the class, whole numbers (n,), or one_hot, numbers (n, K)."
    )
    output_range: list[Number] = Field(
        [-1, 1], min_length=2, max_length=2, description="Values of black and white in the generator's output."
    )
    samples_per_class: Count = Field(1000, le=10_000_000, description="Images drawn per class.")
    batch_size: ImagesAtOnce = Field(100, description="Images drawn at once; a larger set keeps its first images.")
    device: Device = Field("cpu", description="Device of the drawing, on which the last digits of pixels depend.")
    seed: Seed = 0

    @model_validator(mode="after")
    def _can_be_opened(self) -> Self:
        if self.trust_pickle and not self.sha256:
            raise refusal(
                "true runs code of the file, so its sha256 must be given; pin it, or set false", "trust_pickle"
            )
        if not (self.architecture or self.trust_pickle):
            raise refusal(
                "holds weights without a network; name their architecture, or, for a program of torch, which is code, "
                "set trust_pickle: true and give its sha256",
                "path",
            )
        if not self.output_range[0] < self.output_range[1]:
            raise refusal("black lies not below white; give [black, white], such as [-1, 1]", "output_range")
        return self


class GeneratorFile(DatasetSettings):
    """Samples that the workflow draws from a generator of the user."""

    source: Literal["generator_file"] = "generator_file"
    classes: list[Text] = Field(min_length=2, description="Class names in the order of the generator's classes.")
    generator: NetworkGenerator


SOURCE = DatasetSource(
    name="generator_file",
    settings=GeneratorFile,
    drawn_by="gfscore.training.drawing:draw",
    claims=lambda entry: "generator" in entry and "fitted_on" not in entry,
)

open_source = generated.open_source
