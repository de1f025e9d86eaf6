"""Declaration of a kind of mapper: the settings of its entries.

Imports nothing heavy, because the Snakefile imports it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import Field

from gfscore.core.discovery import declarations
from gfscore.core.settings import Closed, Count, Device, Entry, ImagesAtOnce, Name, Positive, Seed, Subset

MAPPERS_PACKAGE = "gfscore.projection.mappers"


class Search(Closed):
    """Settings of the search for boundaries, which do not change the mapper."""

    subset: Subset | None = Field(
        default_factory=lambda: Subset(samples=100),
        description="Samples to search, the same for all models; null for all. A number of samples is raised to one "
        "for each class, and lowered to all.",
    )
    steps: int = Field(20, ge=1, le=1000, description="M, number of moves to each side, up to one sigma.")
    bisections: int = Field(6, ge=0, le=40, description="Halvings of the step with the first change of the prediction.")
    sigma: Literal["aggregated", "posterior"] = Field(
        "aggregated",
        description="Unit of a move: standard deviation of the latent over the data (aggregated) or of each sample's "
        "posterior; conditions move over their whole range in both cases.",
    )
    batch_size: ImagesAtOnce = Field(1024, description="Decoded images classified per batch.")

    def drawable_subset(self, *, samples: int, classes: int) -> Subset | None:
        """`subset`, whose number of samples a dataset of so many samples and classes has."""
        if self.subset is None or self.subset.samples is None:
            return self.subset
        drawn = min(max(self.subset.samples, classes), samples)
        return self.subset.model_copy(update={"samples": drawn})


class MapperSettings(Entry):
    """Settings that all kinds of mappers have."""

    kind: str
    train_on: Name = Field(description="Dataset to train on.")
    evaluate_on: Name = Field(description="Dataset to evaluate the mapper on, with images of the same shape.")
    latent: int = Field(8, ge=1, le=10_000, description="Dimensions of the latent code.")
    width: int = Field(8, ge=1, le=10_000, description="Channels of the first convolution.")
    features: int = Field(64, ge=1, le=100_000, description="Features between the convolutions and the latent code.")
    epochs: Count = Field(60, description="Passes over the data.")
    batch_size: ImagesAtOnce = Field(64, description="Images per step.")
    learning_rate: Positive = Field(0.004, description="Adam's learning rate, constant.")
    seed: Seed = 0
    device: Device = Field(
        "cpu", description="Device of the training: cpu, or cuda for one GPU; the weights depend on it."
    )
    pictures: bool = Field(
        True,
        description="Whether pages show images of the dataset; false, for example for images of people, shows only "
        "the decoded mean code.",
    )
    search: Search = Field(default_factory=Search)

    last = ("epochs", "batch_size", "learning_rate", "seed", "device", "pictures", "search")


@dataclass(frozen=True, kw_only=True)
class MapperKind:
    """A kind of mapper: one module of gfscore.projection.mappers, which also has a function `build`.

    Attributes
    ----------
    name : str
        Value of `kind` in entries, and name of the module.
    settings : type of MapperSettings
        Model of entries.
    arguments : tuple of str
        Settings that `build` takes as keyword arguments.
    conditions : bool
        Whether its latent dimensions are attributes of the samples.
    """

    name: str
    settings: type[MapperSettings]
    arguments: tuple[str, ...]
    conditions: bool = False


@cache
def mapper_kinds() -> dict[str, MapperKind]:
    """All kinds of mappers by name, the name of their module."""
    return declarations(MAPPERS_PACKAGE, "KIND")


def mapper_settings(entry: Mapping[str, Any]) -> MapperSettings:
    """Settings of a mapper, as parameters of jobs hold them; ValidationError for those that its kind does not have."""
    return mapper_kinds()[entry["kind"]].settings.model_validate(entry)
