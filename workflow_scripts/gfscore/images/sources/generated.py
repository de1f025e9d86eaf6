"""Samples of the workflow's generator, written by draw_samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Count, Name, Number, Seed
from gfscore.images.dataset_source import FROM_GENERATOR, DatasetSettings, DatasetSource, DrawnSamples, Rates

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class Generator(Closed):
    """Class-conditional Gaussian mixture in the space of the principal components."""

    dimensions: int = Field(32, ge=1, le=100_000, description="Principal components kept.")
    mixture_components: int = Field(2, ge=1, le=10_000, description="Gaussians per class.")
    regularisation: Number = Field(0.01, ge=0, description="Variance added to every coordinate of every Gaussian.")
    samples_per_class: Count = Field(1000, le=10_000_000, description="Images drawn per class.")
    label_error_draws: Count = Field(
        20_000, le=10_000_000, description="Draws per class for estimating the share of wrong labels."
    )
    seed: Seed = 0


class Generated(DatasetSettings):
    """Samples drawn from a generator that the workflow fits."""

    source: Literal["generated"] = "generated"
    fitted_on: Name = Field(description="Dataset that the generator is fitted on; not the audited one.")
    generator: Generator = Field(default_factory=Generator)
    label_error_rate: Rates = Field(
        FROM_GENERATOR,
        description="Share of wrong labels; from_generator for the rates measured when the samples are drawn.",
    )


SOURCE = DatasetSource(
    name="generated",
    settings=Generated,
    drawn_by="gfscore.training.generators:draw",
    version=2,
    claims=lambda entry: "fitted_on" in entry,
)


def open_source(settings: DrawnSamples, path: Path | str) -> ImageSet:
    """Images x, (N, C, H, W) in [0, 1], and labels y of an .npz file; raises InputError, see `open_arrays`."""
    from gfscore.images.array_files import open_arrays

    return open_arrays(
        path,
        image="x",
        label="y",
        value_range=1,
        channels="first",
        classes=settings.classes,
        prefix=settings.source,
    )
