"""What a source of models declares: the settings of its entries, and what its classifiers can be asked.

Imports nothing heavy, because declarations are read whenever a run is planned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown
from gfscore.core.settings import WHITE, Count, Entry, Number, Sha256, Share, Sparse, Text, never, refusal

PUBLISHED = ("published_clean_accuracy", "published_robust_accuracy", "clean_accuracy_tolerance")
"""Settings that say what was published about a model: they do not decide it."""


class ModelSettings(Entry):
    """Settings that every model has, whatever its source."""

    source: str
    published_clean_accuracy: Share | None = Field(None, description="Fraction; null when nothing is published.")
    published_robust_accuracy: Share | None = Field(None, description="Fraction; null when nothing is published.")

    last = PUBLISHED


class LogitsSettings(ModelSettings):
    """Settings of every model that comes with logits, or gives them."""

    clean_accuracy_tolerance: Share = Field(0.005, description="Accepted distance from the published clean accuracy.")


class FileSettings(LogitsSettings):
    """Settings of a network in a file."""

    path: Text = Field(description="File of the checkpoint; placed there by hand or downloaded.")
    url: Annotated[str, Field(pattern=r"^https?://[^/?#@]+([/?#]|$)")] | None = Field(
        None,
        description="Where to download the file when it is absent, an address without name and password, which results "
        "would repeat; null for a file placed by hand.",
    )
    sha256: Sha256 | None = Field(None, description="Digest that the file must have; null to record it at first sight.")


class WeightsSettings(FileSettings):
    """Settings of weights in a file, for a network that is named beside them."""

    architecture: Text
    arguments: dict[str, Any] = Field({}, description="Arguments of the architecture.")
    weights: Literal["model", "ema"] = Field(
        "model", description="Which weights of the checkpoint: the model's own or their moving average."
    )
    trust_pickle: bool = Field(
        False, description="Run code that the checkpoint may hold; needs sha256. See SECURITY.md."
    )

    @model_validator(mode="after")
    def _trusted_file_is_pinned(self) -> Any:
        if self.trust_pickle and not self.sha256:
            raise refusal(
                "true runs code of the file, so its sha256 must be given; pin it, or set false", "trust_pickle"
            )
        return self


class Pixels(Sparse):
    """Settings of what is done to the pixels before a network sees them; named before the other bases of a class."""

    image_shape: list[Count] | None = Field(
        None,
        min_length=3,
        max_length=3,
        description="Channels, height and width that the network takes; null for those of the images.",
    )
    channel_order: Literal["rgb", "bgr"] = Field("rgb", description="Order of the colours that the network takes.")
    value_range: Literal[1, 255] = Field(1, description="Pixel value of white that the network was trained with.")
    mean: list[Number] | None = Field(
        None,
        min_length=1,
        description="Subtracted, in the network's own order and range; null for none.",
    )
    std: list[Number] | None = Field(
        None, min_length=1, description="Divided by, in the network's own order and range; null for none."
    )

    @model_validator(mode="after")
    def _mean_is_one_of_pixels(self) -> Any:
        if self.mean and max(self.mean) > self.value_range:
            fits = self.value_range < WHITE and max(self.mean) <= WHITE
            remedy = f"set value_range: {WHITE}, or divide mean and std by {WHITE}" if fits else "correct it"
            raise refusal(
                f"{max(self.mean):g} is above the white of the network, value_range: {self.value_range}; {remedy}",
                "mean",
            )
        return self


Gives = Literal["samples", "logits", "predictions", "gradients"]
"""What a source can be asked for: values per sample, logits of the samples, those of any images, gradients too."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A source of models: `name`, the value of `source`; `settings`, the model of its entries.

    `gives` is the most that measures may ask of it. `fetched`: fetch_checkpoint finds or downloads its file; `fitted`:
    the workflow finds its weights, all or the last layer's, by the step `fitted_by`. `claims(entry)` says whether an
    entry without a source is of this one. `opened_by` names the module whose open_classifier opens it, empty for what
    is no classifier.
    """

    name: str
    settings: type[ModelSettings]
    gives: Gives
    fetched: bool = False
    fitted_by: str = ""
    claims: Callable[[Mapping[str, Any]], bool] = never
    opened_by: str = ""

    @property
    def fitted(self) -> bool:
        """Whether the workflow finds its weights itself."""
        return bool(self.fitted_by)


@cache
def model_sources() -> dict[str, ModelSource]:
    """Every source of models by its name."""
    return {source.name: source for source in declarations("gfscore.networks.sources", "SOURCE").values()}


def module_of(source: str) -> Any:
    """Module that opens the classifiers of a source; raises InputError for an unknown one."""
    known = {name: found.opened_by for name, found in model_sources().items() if found.opened_by}
    if source not in known:
        raise InputError(unknown("source", source, known))
    return import_module(known[source])


CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
"""Ends of the names of files with weights."""
