"""The handwritten digits that are distributed with scikit-learn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.lazy import np
from gfscore.core.settings import InnerShare, Seed
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class Digits(DatasetSettings):
    """The handwritten digits that are distributed with scikit-learn."""

    source: Literal["digits"] = "digits"
    split: Literal["train", "test"] = Field("test", description="Part of the fixed split.")
    test_share: InnerShare = Field(0.5, description="Share of each class in the test part.")
    seed: Seed = 0


SOURCE = DatasetSource(name="digits", settings=Digits, class_names=lambda settings: list("0123456789"))


def open_source(settings: Digits, path: Path | str | None = None) -> ImageSet:
    """One part of 1,797 grey 8x8 images of the digits 0 to 9, (n, 1, 8, 8), pixels / 16.

    `path` is not used. Identifiers ("digits-0007") follow scikit-learn's order. Source: UCI optical recognition of
    handwritten digits, test part (Alpaydin and Kaynak 1998).
    """
    from gfscore.images.image_set import from_arrays
    from gfscore.images.subsets import in_test_part

    # Read from scikit-learn's file without importing scikit-learn, which takes longer than most jobs on these images.
    package = find_spec("sklearn")
    assert package is not None and package.submodule_search_locations is not None
    path_to_digits = Path(package.submodule_search_locations[0], "datasets/data/digits.csv.gz")
    table = np.loadtxt(path_to_digits, delimiter=",")
    pixels = table[:, :-1].reshape(-1, 1, 8, 8)
    labels = table[:, -1].astype(np.int64)

    in_test = in_test_part(labels, share=settings.test_share, seed=settings.seed)
    rows = np.flatnonzero(in_test == (settings.split == "test"))
    return from_arrays(
        pixels[rows] / 16,
        labels[rows],
        sample_id=[f"digits-{row:04d}" for row in rows],
        preprocessing="pixels 0..16 divided by 16",
    )
