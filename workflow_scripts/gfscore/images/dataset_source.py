"""Declaration of a source of images: the settings of its entries, and how entries without `source` are recognised."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.names import spelled_alike
from gfscore.core.settings import (
    Closed,
    Entry,
    InnerShare,
    Name,
    Seed,
    Sha256,
    Sparse,
    Subset,
    Text,
    Unique,
    as_number,
    never,
    refusal,
)
from gfscore.images.corruptions.parameters import Severities

SOURCES = "gfscore.images.sources"

FROM_GENERATOR = "from_generator"
"""Value of label_error_rate: the rates that train_generator measured."""


def _rates(value: Any) -> Any:
    # A union type would report an error for each of its four members.
    def is_rate(one: Any) -> bool:
        return isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 1

    rates = [as_number(one) for one in value] if isinstance(value, list) else as_number(value)
    if rates is None or rates == FROM_GENERATOR or is_rate(rates):
        return rates
    if isinstance(rates, list) and len(rates) > 1 and all(map(is_rate, rates)):
        return rates
    raise refusal(
        f"{value!r} is no rate; give null, a number in [0, 1), a list of one such number per class, or {FROM_GENERATOR}"
    )


_SHARE = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
Rates = Annotated[
    Any,
    PlainValidator(_rates),
    PlainSerializer(lambda value: value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "null"},
                _SHARE,
                {"type": "array", "minItems": 2, "items": _SHARE},
                {"const": FROM_GENERATOR},
            ]
        }
    ),
]


# ---- settings of images ----

LARGEST_SIDE = 8192
"""Pixels of the largest side that images are resized to."""

Side = Annotated[int, Field(ge=1, le=LARGEST_SIDE, description="Side of the result in pixels.")]
Interpolation = Annotated[Literal["bilinear", "bicubic"], Field(description="Filter of the resizing, antialiased.")]


class Decoding(Sparse):
    """What is done to every encoded image before it is resized."""

    absent = frozenset({"orientation"})

    orientation: Literal["exif"] | None = Field(
        None, description="exif turns images by their EXIF orientation; null reads them as stored, as torchvision does."
    )


class CenterCrop(Decoding):
    """Resize the shorter side, then crop the centre."""

    method: Literal["center_crop"]
    resize: Annotated[int, Field(ge=1, le=LARGEST_SIDE)] | None = Field(
        256, description="Shorter side before the crop; null to crop only."
    )
    size: Side = 224
    interpolation: Interpolation = "bilinear"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.resize is not None and self.resize < self.size:
            raise refusal(f"a shorter side of {self.resize} is below the crop of {self.size}; raise it", "resize")
        return self


class Squash(Decoding):
    """Resize to a square without keeping the aspect ratio."""

    method: Literal["squash"]
    size: Side = 224
    interpolation: Interpolation = "bilinear"


class AsStored(Decoding):
    """Use pixels as stored; all images must have the same size."""

    method: Literal["none"]


Preprocessing = Annotated[
    CenterCrop | Squash | AsStored,
    Field(discriminator="method", description="Conversion of an image to an array; see docs/add-a-dataset.md."),
]


def as_stored() -> AsStored:
    """Default preprocessing."""
    return AsStored(method="none")


class CorruptedCopies(Closed):
    """Corrupted copies of a dataset's images, as CIFAR-10-C, CIFAR-100-C and ImageNet-C are distributed."""

    path: Text = Field(description="Folder with <corruption>.npy and labels.npy, or <corruption>/<severity>/<image>.")
    corruptions: Unique[Text] | None = Field(
        None, min_length=1, description="Names of corruptions; null for all that the folder holds."
    )
    severities: Severities | None = Field(None, description="Severities; null for all five.")
    preprocessing: Preprocessing = Field(default_factory=as_stored)


class DatasetSettings(Entry):
    """Settings that every dataset has, whatever its source."""

    source: str
    classes: list[Text] | None = Field(
        None, min_length=2, description="Class names in label order; null for the names in the data."
    )
    models_of: Name | None = Field(
        None,
        description="Zoo whose models are evaluated on this dataset, by default the one of the same name; null for "
        "data that are only trained on.",
    )
    label_error_rate: Rates = Field(
        None, description="Share of wrong labels, one number or one per class; null if labels are assumed correct."
    )
    published_accuracy: Literal["full", "subset"] | None = Field(
        None,
        description="Whether these are the samples that published accuracies refer to (full), some of them (subset), "
        "or others (null).",
    )
    subset: Subset | None = Field(
        None,
        description="Stratified random part of the samples to use; null for all.",
    )
    digest: Sha256 | None = Field(None, description="SHA-256 that the data must have; null to accept any data.")
    attributes: dict[str, Any] | None = Field(
        None, description="Attributes that define groups of samples, see docs/groups.md; null for none."
    )
    corrupted: CorruptedCopies | None = Field(
        None,
        description="Corrupted copies of these images, which the measure corruption then shows; null: it makes them.",
    )

    absent: ClassVar[frozenset[str]] = frozenset({"corrupted"})
    last = (
        "classes",
        "models_of",
        "label_error_rate",
        "published_accuracy",
        "subset",
        "digest",
        "attributes",
        "corrupted",
    )

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        classes = self.classes or []
        if len(set(classes)) != len(classes):
            raise refusal("a name is repeated; name each class once", "classes")
        alike = spelled_alike(classes)
        if alike:
            raise refusal(
                f"{alike[0]!a} and {alike[1]!a} differ in blanks or Unicode spelling alone; rename one", "classes"
            )
        if self.label_error_rate == FROM_GENERATOR and self.source != "generated":
            raise refusal("from_generator needs the source `generated`; give numbers or null", "label_error_rate")
        return self


def _unknown_names(_settings: Any) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A source of images: `name`, the value of `source` in entries; `settings`, the pydantic model of entries.

    `claims(entry)`: whether an entry without `source` belongs to this one; `class_names(settings)`: the class names if
    they are known without reading the data, else None. `drawn`: whether the workflow draws its samples.
    `empty_classes(settings)`: whether a class that the data name may be without samples, as an empty class folder is.
    """

    name: str
    settings: type[DatasetSettings]
    claims: Callable[[Mapping[str, Any]], bool] = never
    class_names: Callable[[Any], list[str] | None] = _unknown_names
    drawn: bool = False
    empty_classes: Callable[[Mapping[str, Any]], bool] = never


@cache
def dataset_sources() -> dict[str, DatasetSource]:
    """All sources of images by name, which is that of their module in SOURCES."""
    return declarations(SOURCES, "SOURCE")


class Part(Closed):
    """One part of a seeded two-way split, stratified by class or by another column."""

    name: Literal["train", "test"] = Field(description="Which part.")
    test_share: InnerShare = Field(0.5, description="Share of each class in the test part.")
    within: Text | None = Field(
        None,
        description="Column whose values both parts share in place of the classes, so that datasets of the same images "
        "with other labels have the same parts; null: the labels.",
    )
    seed: Seed = 0
