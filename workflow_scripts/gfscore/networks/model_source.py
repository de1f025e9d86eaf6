"""Declaration of a source of models: the settings of its entries, and what its models provide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.settings import WHITE, Count, Entry, Number, Sha256, Share, Sparse, Text, never, refusal

Settings = Mapping[str, Any]
"""Settings of a model's entry by key, as the configuration and manifests hold them: JSON values."""

Arguments = Mapping[str, Any]
"""Keyword arguments of an architecture: JSON values of the configuration."""

Manifest = Mapping[str, Any]
"""What train_model or fetch_checkpoint wrote on a model: JSON values by key."""

PUBLISHED = ("published_clean_accuracy", "published_robust_accuracy", "clean_accuracy_tolerance")
"""Settings of published results, which do not change the model."""


class ModelSettings(Entry):
    """Settings that all models have."""

    source: str
    published_clean_accuracy: Share | None = Field(None, description="Fraction; null if none is published.")
    published_robust_accuracy: Share | None = Field(None, description="Fraction; null if none is published.")

    last = PUBLISHED


class LogitsSettings(ModelSettings):
    """Settings of models that provide logits."""

    clean_accuracy_tolerance: Share = Field(0.005, description="Accepted difference from the published clean accuracy.")


class FileSettings(LogitsSettings):
    """Settings of a network in a file."""

    path: Text = Field(description="File of the checkpoint; placed there by hand or downloaded.")
    url: Annotated[str, Field(pattern=r"^https?://[^/?#@]+([/?#]|$)")] | None = Field(
        None,
        description="URL to download a missing file from, without credentials, since results contain it; null for a "
        "file placed by hand.",
    )
    sha256: Sha256 | None = Field(None, description="Digest that the file must have; null to record it at first use.")


class WeightsSettings(FileSettings):
    """Settings of weights in a file and of the network that they belong to."""

    architecture: Text
    arguments: dict[str, Any] = Field({}, description="Arguments of the architecture.")
    weights: Literal["model", "ema"] = Field(
        "model", description="Weights of the checkpoint: those of the model, or their exponential moving average."
    )
    trust_pickle: bool = Field(
        False, description="Run code that the checkpoint may contain; requires sha256. See SECURITY.md."
    )

    @model_validator(mode="after")
    def _trusted_file_is_pinned(self) -> Self:
        if self.trust_pickle and not self.sha256:
            raise refusal(
                "true runs code of the file, so its sha256 must be given; pin it, or set false", "trust_pickle"
            )
        return self


class Pixels(Sparse):
    """Settings of what goes into a network, and of which of its outputs are classes; must be the first base class."""

    absent = frozenset({"outputs"})

    image_shape: list[Count] | None = Field(
        None,
        min_length=3,
        max_length=3,
        description="Channels, height and width of the network's input; null for those of the images.",
    )
    channel_order: Literal["rgb", "bgr"] = Field("rgb", description="Order of the network's colour channels.")
    value_range: Literal[1, 255] = Field(1, description="Pixel value of white in the network's training.")
    mean: list[Number] | None = Field(
        None,
        min_length=1,
        description="Means to subtract, in the network's channel order and value range; null for none.",
    )
    std: list[Number] | None = Field(
        None,
        min_length=1,
        description="Standard deviations to divide by, in the network's channel order and value range; null for none.",
    )

    outputs: list[Annotated[int, Field(ge=0)]] | None = Field(
        None,
        min_length=2,
        description="Outputs of the network in the order of the data's classes, from 0; null for all, in that order.",
    )

    @model_validator(mode="after")
    def _outputs_differ(self) -> Self:
        if self.outputs and len(set(self.outputs)) < len(self.outputs):
            raise refusal("an output is named twice; name one for each class", "outputs")
        return self

    @model_validator(mode="after")
    def _mean_is_within_range(self) -> Self:
        largest = max(self.mean or [0])
        if largest <= self.value_range:
            return self
        remedy = "correct it"
        if self.value_range < WHITE and largest <= WHITE:
            remedy = f"set value_range: {WHITE}, or divide mean and std by {WHITE}"
        raise refusal(f"{largest:g} exceeds the largest pixel value, value_range: {self.value_range}; {remedy}", "mean")


OutputName = Annotated[
    Text | Annotated[int, Field(ge=0)] | None,
    Field(description="Name of the output with the logits, or its place from 0; null where there is only one."),
]


class NetworkOutputs(Pixels):
    """Settings of what comes out of a network; must be the first base class."""

    absent = Pixels.absent | {"output", "allow_probabilities"}

    output: OutputName = None
    allow_probabilities: Literal["logarithms"] | None = Field(
        None, description="logarithms: the network gives probabilities, whose logarithms are taken; null for logits."
    )


class GraphOutputs(NetworkOutputs):
    """Outputs of a network whose graph can be read; must be the first base class."""

    absent = NetworkOutputs.absent | {"head"}

    head: Literal["softmax", "log_softmax", "sigmoid"] | None = Field(
        None,
        description="Last operator of the graph, whose input the logits are; null for a graph that ends in logits.",
    )


Gives = Literal["samples", "logits", "predictions", "gradients"]
"""What models of a source provide: values per sample, logits of the samples, logits of any images, gradients too."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A source of models.

    Attributes
    ----------
    name : str
        The value of `source` in entries.
    settings : type of ModelSettings
        The pydantic model of entries.
    gives : Gives or callable
        What its models provide, for all or by the entry.
    fetched : bool
        Whether fetch_checkpoint provides its files.
    all_files_identify : bool
        Whether a model is identified by all of its files, where there are several, or by the first.
    fitted_by : str
        "module:function" that fits all weights or the last layer (see gfscore.networks.sources); empty for a model of
        others.
    claims : callable
        Whether an entry without `source` belongs to this source.
    opened_by : str
        Module with open_classifier; empty if there is no classifier.
    files_by : str
        Module with functions on its files (see gfscore.networks.sources); the one of `opened_by` where empty.
    adjusted_by : str
        Module that writes its files with offsets (see gfscore.networks.adjusted_files); empty where none does.
    """

    name: str
    settings: type[ModelSettings]
    gives: Gives | Callable[[Settings], Gives]
    fetched: bool = False
    all_files_identify: bool = False
    fitted_by: str = ""
    claims: Callable[[Settings], bool] = never
    opened_by: str = ""
    files_by: str = ""
    adjusted_by: str = ""

    @property
    def fitted(self) -> bool:
        """Whether the workflow fits its weights."""
        return bool(self.fitted_by)

    def given_by(self, entry: Settings) -> Gives:
        """What the model of an entry provides: values per sample, logits, or a network; see Gives."""
        return self.gives(entry) if callable(self.gives) else self.gives


@cache
def model_sources() -> dict[str, ModelSource]:
    """All sources of models by name."""
    return declarations("gfscore.networks.sources", "SOURCE")


def main_file(settings: Settings) -> Settings:
    """The file that a model's entry names: path, url and sha256, None for what it does not state."""
    return {key: settings.get(key) for key in ("path", "url", "sha256")}


def module_of(source: str) -> ModuleType:
    """Module that opens the classifiers of a source; raises InputError for an unknown source."""
    return import_module(_classifier_source(source).opened_by)


def files_module_of(source: str) -> ModuleType:
    """Module with functions on the files of a source; raises InputError for an unknown source."""
    declared = _classifier_source(source)
    return import_module(declared.files_by or declared.opened_by)


def _classifier_source(source: str) -> ModelSource:
    sources = {name: declared for name, declared in model_sources().items() if declared.opened_by}
    if source not in sources:
        raise InputError(unknown_name("source", source, sources))
    return sources[source]


CHECKPOINTS = (".pt", ".pth", ".ckpt", ".tar", ".bin", ".safetensors")
"""File name suffixes of weights; torch.save writes .tar where tutorials keep an optimizer beside them."""
