"""Attributes of handwritten digits, measured in the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.lazy import np
from gfscore.core.settings import Name
from gfscore.images.attribute_source import AttributeColumn, AttributeSettings, AttributeSource, Cut, Quantiles

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

    from gfscore.images.attribute_values import Dataset

THIRDS = [0.3333, 0.6667]


def _default_columns() -> list[AttributeColumn]:
    return [
        Quantiles(column="stroke_mass", quantiles=THIRDS, names=["thin", "medium", "bold"]),
        Quantiles(column="slant", quantiles=THIRDS, names=["left", "upright", "right"]),
        Quantiles(column="aspect_ratio", quantiles=THIRDS, names=["narrow", "middling", "wide"]),
        Cut(column="loops", cut=[1, 2], names=["none", "one", "several"]),
    ]


class Digits(AttributeSettings):
    """Measurements of grey images of digits."""

    source: Literal["digits"] = "digits"
    columns: list[AttributeColumn] = Field(
        default_factory=_default_columns,
        min_length=1,
        description="Measurements: stroke_mass, slant, aspect_ratio, loops; cut into groups.",
    )
    fixed_on: Name | None = Field(
        None, description="Dataset whose samples give the quantiles; not the audited samples."
    )


SOURCE = AttributeSource(name="digits", settings=Digits)

INK = 0.4
"""Brightness in [0, 1] from which a pixel counts as ink in the search for loops."""


def open_source(_settings: Digits, dataset: Dataset) -> DataFrame:
    """Measurements of each image by sample identifier: stroke_mass, slant, aspect_ratio, loops.

    Images are grey, (N, 1, H, W) in [0, 1], bright strokes on a dark background. Raises InputError for colour images.
    """
    import pandas as pd

    from gfscore.images.datasets import load_all

    channels = dataset.images.image_shape[0]
    if channels != 1:
        raise InputError(
            f"attributes of {dataset.name}: the source digits needs grey images, these have {channels} channels; use "
            "another source of attributes"
        )
    images, _ = load_all(dataset.images)
    return pd.DataFrame(measurements(images[:, 0]), index=dataset.images.sample_id)


def measurements(images: NDArray[np.floating]) -> dict[str, NDArray[np.float64]]:
    """Measurements of the strokes in grey images.

    Parameters
    ----------
    images : ndarray of shape (N, H, W)
        Brightness in [0, 1]; bright strokes on a dark background.

    Returns
    -------
    dict
        Each (N,) float64, NaN for an image without ink. `stroke_mass` is the mean brightness; `slant` the angle in
        degrees by which vertical strokes lean, positive to the right: arctan(-mu11 / mu02) of the central moments (x to
        the right, y downwards); `aspect_ratio` the standard deviation of the brightness along x divided by that along
        y; `loops` the number of background regions (connected along edges) enclosed by ink.
    """
    from scipy.ndimage import label

    images = np.asarray(images, dtype=np.float64)
    mass = images.sum(axis=(1, 2))
    _, height, width = images.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = images / mass[:, None, None]
        x = np.arange(width) - np.einsum("nij,j->n", weights, np.arange(width))[:, None]
        y = np.arange(height) - np.einsum("nij,i->n", weights, np.arange(height))[:, None]
        mu11 = np.einsum("nij,ni,nj->n", weights, y, x)
        mu02 = np.einsum("nij,ni->n", weights, y**2)
        mu20 = np.einsum("nij,nj->n", weights, x**2)
        slant = np.degrees(np.arctan2(-mu11, mu02))
        aspect = np.sqrt(mu20 / mu02)

    loops = np.empty(len(images))
    for row, ink in enumerate(images >= INK):
        # A frame of background joins everything outside the digit into one region.
        _, regions = label(np.pad(~ink, 1, constant_values=True))
        loops[row] = regions - 1

    blank = mass == 0
    return {
        "stroke_mass": np.where(blank, np.nan, images.mean(axis=(1, 2))),
        "slant": np.where(blank, np.nan, slant),
        "aspect_ratio": np.where(np.isfinite(aspect), aspect, np.nan),
        "loops": np.where(blank, np.nan, loops),
    }
