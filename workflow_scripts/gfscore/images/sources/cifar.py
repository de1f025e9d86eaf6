"""CIFAR-10 and CIFAR-100 as their authors publish them, in the Python or the binary version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.names import numbered
from gfscore.core.settings import Text
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet

CIFAR_10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


class Cifar(DatasetSettings):
    """CIFAR-10 or CIFAR-100."""

    source: Literal["cifar"] = "cifar"
    variant: Literal["cifar10", "cifar100"] = Field("cifar10", description="Dataset.")
    split: Literal["train", "test"] = Field("test", description="Part of the dataset.")
    path: Text = Field(
        default_factory=lambda earlier: f"data/{earlier.get('variant', 'cifar10')}",
        description="Folder of the unpacked archive, or the folder that holds it.",
    )


SOURCE = DatasetSource(
    name="cifar",
    settings=Cifar,
    claims=lambda entry: "variant" in entry,
    # The class names of CIFAR-100 are read from its files.
    class_names=lambda settings: CIFAR_10 if settings.variant == "cifar10" else None,
)


def open_source(settings: Cifar, path: Path | str) -> ImageSet:
    """One split of CIFAR-10 or CIFAR-100, see `read_cifar`.

    Identifiers ("cifar10-test-00000") follow the published order and are the same in the Python and the binary version.
    """
    from gfscore.images.image_set import from_pixels
    from gfscore.images.published_files import read_cifar

    variant = settings.variant
    split = settings.split
    pixels, labels, class_names = read_cifar(path, variant, split)
    names = numbered(f"{variant}-{split}-", len(labels), digits=5)
    return from_pixels(pixels, labels, sample_id=names, class_names=class_names)
