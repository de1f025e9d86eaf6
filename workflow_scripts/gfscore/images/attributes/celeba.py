"""The 40 binary attributes of CelebA, as its authors distribute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.lazy import pd
from gfscore.core.settings import Text
from gfscore.images.attribute_source import AttributeColumn, AttributeSettings, AttributeSource

if TYPE_CHECKING:
    from gfscore.images.attribute_values import Dataset


class CelebA(AttributeSettings):
    """The 40 attributes of CelebA."""

    source: Literal["celeba"] = "celeba"
    path: Text = Field("data/celeba/list_attr_celeba.txt", description="The file list_attr_celeba.txt.")
    columns: list[AttributeColumn] | None = Field(
        None, min_length=1, description="Attributes to keep; null for all 40."
    )


SOURCE = AttributeSource(name="celeba", settings=CelebA)


def open_source(settings: CelebA, _dataset: Dataset) -> pd.DataFrame:
    """Attributes "yes" or "no" by file name of the image, all 40. Source: Liu et al. 2015."""
    from gfscore.images.published_files import read_attribute_list

    return read_attribute_list(settings.path).replace({1: "yes", -1: "no"})
