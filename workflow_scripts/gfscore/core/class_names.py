"""Readable class names for datasets that name their classes by codes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

WNID = re.compile(r"n\d{8}")
"""WordNet ID of a noun, as ImageNet names its folders."""


def readable_class(name: str) -> str:
    """Class name with its meaning: "velvet (n04525038)" for an ImageNet wnid, any other name as it is."""
    meaning = imagenet_names().get(name)
    return f"{meaning} ({name})" if meaning else name


def readable_classes(names: Iterable[str]) -> list[str]:
    """Readable names in the same order; where all of them are wnids, the meaning alone ("velvet")."""
    names = [str(name) for name in names]
    if names and all(WNID.fullmatch(name) and name in imagenet_names() for name in names):
        return [imagenet_names()[name] for name in names]
    return [readable_class(name) for name in names]


def classes_of(rows: DataFrame) -> list[str]:
    """Readable names of the classes in a table, by class index; a class may have several rows."""
    return readable_classes(rows.drop_duplicates("class_index").sort_values("class_index")["class_name"])


@cache
def imagenet_names() -> dict[str, str]:
    """Names of the 1,000 ImageNet classes by wnid, in the order of the class indices; every name is unique.

    Source: torchvision's category list, checked against WordNet by tools/write_imagenet_names.py.
    """
    with resources.files("gfscore.core").joinpath("imagenet_classes.csv").open(encoding="utf-8") as file:
        return {row["wnid"]: row["name"] for row in csv.DictReader(file)}
