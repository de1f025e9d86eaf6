"""What a kind of mapper declares: the settings of its entries.

Imports nothing heavy, because declarations are read whenever a run is planned.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import Field

from gfscore.core.discovery import declarations
from gfscore.core.settings import Closed, Count, Device, Entry, ImagesAtOnce, Name, Positive, Seed, Subset


class Search(Closed):
    """How far latent dimensions are moved, and on which samples; decides projections, not the mapper."""

    subset: Subset | None = Field(
        default_factory=lambda: Subset(samples=100), description="The same samples for every model; null for all."
    )
    steps: int = Field(20, ge=1, le=1000, description="M, moves tried to either side, up to one sigma.")
    bisections: int = Field(6, ge=0, le=40, description="Halvings of the step that changed the prediction first.")
    sigma: Literal["aggregated", "posterior"] = Field(
        "aggregated",
        description="Unit of a move: standard deviation of the latent over the data (aggregated) or of each sample's "
        "posterior; conditions move over their whole range either way.",
    )
    batch_size: ImagesAtOnce = Field(1024, description="Decoded images classified at a time.")


class MapperSettings(Entry):
    """Settings that every kind of mapper has."""

    kind: str
    train_on: Name = Field(description="Dataset that it is trained on.")
    evaluate_on: Name = Field(description="Dataset that it is described on, of images of the same shape.")
    latent: int = Field(8, ge=1, le=10_000, description="Dimensions of the latent code.")
    width: int = Field(8, ge=1, le=10_000, description="Channels of the first convolution.")
    features: int = Field(64, ge=1, le=100_000, description="Features between the convolutions and the latent code.")
    epochs: Count = Field(60, description="Passes over the data.")
    batch_size: ImagesAtOnce = Field(64, description="Images per step.")
    learning_rate: Positive = Field(0.004, description="Adam's learning rate, constant.")
    seed: Seed = 0
    device: Device = Field(
        "cpu", description="Where it is trained: cpu, or cuda for one GPU; another device gives other weights."
    )
    pictures: bool = Field(
        True,
        description="Whether images of the data set are pictured; false, for images of people say, pictures the "
        "average code alone.",
    )
    search: Search = Field(default_factory=Search)

    last = ("epochs", "batch_size", "learning_rate", "seed", "device", "pictures", "search")


@dataclass(frozen=True, kw_only=True)
class MapperKind:
    """A kind of mapper: `name`, the value of `kind`; `settings`, the model of its entries.

    `conditions` says whether its latent dimensions are attributes of the samples.
    """

    name: str
    settings: type[MapperSettings]
    conditions: bool = False


@cache
def mapper_kinds() -> dict[str, MapperKind]:
    """Every kind of mapper by its name, which is that of its module."""
    return {kind.name: kind for kind in declarations("gfscore.projection.mappers", "KIND").values()}
