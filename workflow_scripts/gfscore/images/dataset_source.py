"""Declaration of a source of images: the settings of its entries, and how entries without `source` are recognised.

Imports nothing heavy, because the Snakefile imports it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, PlainSerializer, PlainValidator, ValidationError, WithJsonSchema, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.names import spelled_alike
from gfscore.core.settings import (
    Closed,
    Entry,
    Half,
    InnerShare,
    Name,
    PlainSettings,
    Seed,
    Sha256,
    Sparse,
    Subset,
    Text,
    Unique,
    as_number,
    first_fault,
    never,
    refusal,
)
from gfscore.images.corruptions.parameters import Severities

SOURCES = "gfscore.images.sources"

FROM_GENERATOR = "from_generator"
"""Value of label_error_rate: the rates that were measured when the samples were drawn."""


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


# One validator for the whole, since a union type would report an error for each of its four members.
def _rates(value: Any) -> Any:
    if isinstance(value, list):
        rates = [as_number(rate) for rate in value]
        if len(rates) > 1 and all(map(_is_rate, rates)):
            return rates
    else:
        rate = as_number(value)
        if rate is None or rate == FROM_GENERATOR or _is_rate(rate):
            return rate
    raise refusal(
        f"{value!r} is no rate; give null, a number in [0, 1), a list of one such number per class, or {FROM_GENERATOR}"
    )


_RATE_SCHEMA = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
_RATES_SCHEMA = {
    "anyOf": [
        {"type": "null"},
        _RATE_SCHEMA,
        {"type": "array", "minItems": 2, "items": _RATE_SCHEMA},
        {"const": FROM_GENERATOR},
    ]
}
Rates = Annotated[
    Any,
    PlainValidator(_rates),
    PlainSerializer(lambda value: value),
    WithJsonSchema(_RATES_SCHEMA),
]
"""Setting: share of wrong labels, one number or one per class."""

LARGEST_SIDE = 8192
"""Pixels of the largest side that images are resized to."""

Side = Annotated[int, Field(ge=1, le=LARGEST_SIDE, description="Side of the result in pixels.")]
Filter = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Interpolation = Annotated[Filter, Field(description="Filter of the resizing, antialiased but for nearest.")]
INTERPOLATIONS: tuple[str, ...] = get_args(Filter)


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
    half: Half | None = Field(
        None,
        description="Half of these samples, with the same number of images of each class in both: choosing, what a "
        "remedy is chosen on, or judging, what it is judged on; null for all.",
    )
    digest: Sha256 | None = Field(None, description="SHA-256 that the data must have; null to accept any data.")
    attributes: dict[str, Any] | None = Field(
        None, description="Attributes that define groups of samples, see docs/groups.md; null for none."
    )
    corrupted: CorruptedCopies | None = Field(
        None,
        description="Corrupted copies of these images, which the measure corruption then shows; null: it makes them.",
    )

    absent: ClassVar[frozenset[str]] = frozenset({"corrupted", "half"})
    last = (
        "classes",
        "models_of",
        "label_error_rate",
        "published_accuracy",
        "subset",
        "half",
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
        if self.published_accuracy == "full" and (self.subset is not None or self.half is not None):
            raise refusal("`subset` and `half` leave some of the samples; write subset", "published_accuracy")
        return self


class DrawnSamples(DatasetSettings):
    """Samples that the workflow has drawn: arrays x, (N, C, H, W) in [0, 1], and y of an .npz file."""

    path: Text


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


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A source of images: one module of SOURCES, which also has a function `open_source`.

    Attributes
    ----------
    name : str
        Value of `source` in entries, and name of the module.
    settings : type of DatasetSettings
        Model of entries.
    claims : callable
        Whether an entry without `source` belongs to this one.
    class_names : callable
        Class names by the settings where they are known without reading the data, else None.
    drawn_by : str
        "module:function" that draws the samples (see gfscore.images.sources); `open_source` then gets DrawnSamples.
        Empty for samples of others.
    version : int
        Version of the drawing; to be raised when an edit of the code changes the samples, which are else not drawn
        again.
    empty_classes : callable
        Whether, by the settings, a class that the data name may be without samples, as an empty class folder is.
    """

    name: str
    settings: type[DatasetSettings]
    claims: Callable[[PlainSettings], bool] = never
    class_names: Callable[..., list[str] | None] = lambda settings: None
    drawn_by: str = ""
    version: int = 1
    empty_classes: Callable[..., bool] = never

    @property
    def drawn(self) -> bool:
        """Whether the workflow draws the samples."""
        return bool(self.drawn_by)


@cache
def dataset_sources() -> dict[str, DatasetSource]:
    """All sources of images by name, the name of their module in SOURCES."""
    return declarations(SOURCES, "SOURCE")


def dataset_settings(entry: PlainSettings, path: Path | str | None, classes: Sequence[str] | None) -> DatasetSettings:
    """Settings of the images of a dataset.

    Parameters
    ----------
    entry : mapping
        The source and its keys, as parameters of jobs and manifests hold them. Keys that do not change the images may
        be missing.
    path : path or None
        File or folder of the data, for sources that have one.
    classes : sequence of str or None
        Class names in label order; None for those of the data.

    Raises
    ------
    InputError
        For an unknown source, and for settings that it does not have.
    """
    source = dataset_sources().get(entry.get("source", ""))
    if source is None:
        raise InputError(unknown_name("source", entry.get("source"), dataset_sources()))
    model = DrawnSamples if source.drawn else source.settings

    values = dict(entry)
    if path is not None and "path" in model.model_fields:
        values["path"] = str(path)
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        raise refused_settings(error, path or source.name) from error
    # Not validated here: open_images compares them with those of the data.
    return settings.model_copy(update={"classes": None if classes is None else list(classes)})


def refused_settings(error: ValidationError, where: Path | str) -> InputError:
    """Error for settings that a model refuses: the place, the first key at fault, and why."""
    return InputError(f"{where}: {first_fault(error)}; correct the settings of this dataset")
