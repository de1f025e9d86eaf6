"""What a source of images declares: the settings of its entries, and how it is recognised without its name.

Imports nothing heavy, because declarations are read whenever a run is planned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.names import spelled_alike
from gfscore.core.settings import Closed, Entry, InnerShare, Name, Seed, Sha256, Subset, Text, as_number, never, refusal

FROM_GENERATOR = "from_generator"
"""Rates of wrong labels that train_generator measured."""


def _rates(value: Any) -> Any:
    # One union would tell of each of its four members what is wrong with it.
    def is_rate(one: Any) -> bool:
        return isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 1

    found = [as_number(one) for one in value] if isinstance(value, list) else as_number(value)
    if found is None or found == FROM_GENERATOR or is_rate(found):
        return found
    if isinstance(found, list) and len(found) > 1 and all(map(is_rate, found)):
        return found
    raise refusal(
        f"{value!r} does not fit; give null, a share below 1, a list with one share for each class, or {FROM_GENERATOR}"
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


class DatasetSettings(Entry):
    """Settings that every dataset has, whatever its source."""

    source: str
    classes: list[Text] | None = Field(
        None, min_length=2, description="Class names in label order; null to take those that the data themselves give."
    )
    models_of: Name | None = Field(
        None,
        description="Zoo whose models are evaluated on this dataset: the one of its own name, where there is one; null "
        "for data only trained on.",
    )
    label_error_rate: Rates = Field(
        None, description="Share of wrong labels, one number or one per class; null when labels are assumed right."
    )
    published_accuracy: Literal["full", "subset"] | None = Field(
        None,
        description="Whether these samples are those that accuracies were published on (full), some of them (subset), "
        "or others (null).",
    )
    subset: Subset | None = Field(
        None,
        description="Part of the samples to use, drawn at random with the class shares of the whole; null for all.",
    )
    digest: Sha256 | None = Field(None, description="SHA-256 that the data must have; null to record it at first use.")
    attributes: dict[str, Any] | None = Field(
        None, description="What makes groups of the samples, see docs/groups.md; null for none."
    )

    last = ("classes", "models_of", "label_error_rate", "published_accuracy", "subset", "digest", "attributes")

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        classes = self.classes or []
        if len(set(classes)) != len(classes):
            raise refusal("a name stands more than once; name each class once", "classes")
        alike = spelled_alike(classes)
        if alike:
            raise refusal(
                f"{alike[0]!a} and {alike[1]!a} differ in blanks or Unicode spelling alone; rename one", "classes"
            )
        if self.label_error_rate == FROM_GENERATOR and self.source != "generated":
            raise refusal("from_generator is for the source generated; give numbers or null", "label_error_rate")
        return self


def _unknown_names(_settings: Any) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A source of images: `name`, the value of `source`; `settings`, the model of its entries.

    `claims(entry)` says whether an entry without a source is of this one; `class_names(settings)` are the classes where
    they are known without looking at the data, else None.
    """

    name: str
    settings: type[DatasetSettings]
    claims: Callable[[Mapping[str, Any]], bool] = never
    class_names: Callable[[Any], list[str] | None] = _unknown_names


@cache
def dataset_sources() -> dict[str, DatasetSource]:
    """Every source of images by its name."""
    return {source.name: source for source in declarations("gfscore.images.sources", "SOURCE").values()}


@cache
def module_of(source: str) -> str:
    """Module that opens a source, by its name; raises KeyError for an unknown one."""
    modules = {found.name: module for module, found in declarations("gfscore.images.sources", "SOURCE").items()}
    return f"gfscore.images.sources.{modules[source]}"


# ---- what several sources share ----

Side = Annotated[int, Field(ge=1, le=8192, description="Side of the result in pixels.")]
Interpolation = Annotated[Literal["bilinear", "bicubic"], Field(description="Filter of the resizing, antialiased.")]


class CenterCrop(Closed):
    """The short side resized, then the centre cut out."""

    method: Literal["center_crop"]
    resize: Annotated[int, Field(ge=1, le=8192)] | None = Field(
        256, description="Short side before the crop; null to crop only."
    )
    size: Side = 224
    interpolation: Interpolation = "bilinear"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.resize is not None and self.resize < self.size:
            raise refusal(f"a short side of {self.resize} is below the crop of {self.size}; raise it", "resize")
        return self


class Squash(Closed):
    """Resized to a square, whatever the aspect."""

    method: Literal["squash"]
    size: Side = 224
    interpolation: Interpolation = "bilinear"


class AsStored(Closed):
    """Pixels as they are stored; all images have one size."""

    method: Literal["none"]


Preprocessing = Annotated[
    CenterCrop | Squash | AsStored,
    Field(discriminator="method", description="How an image becomes an array; see docs/add-a-dataset.md."),
]


def as_stored() -> AsStored:
    """The preprocessing of an entry that states none."""
    return AsStored(method="none")


class Part(Closed):
    """One part of a seeded split in two, stratified by class."""

    name: Literal["train", "test"] = Field(description="Which part.")
    test_share: InnerShare = Field(0.5, description="Share of each class in the test part.")
    seed: Seed = 0
