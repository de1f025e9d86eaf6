"""Base classes of configuration settings, and the types of values that many settings share."""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gfscore.core.errors import InputError
from gfscore.core.files import read_json

PlainSettings = Mapping[str, Any]
"""Settings as plain values, as configuration files, parameters of jobs and manifests hold them."""

HALF = 0.5
"""Least confidence: a coin toss."""

WHITE = 255
"""Largest value of an 8-bit pixel."""

FEW_CHARACTERS = 4
"""Characters of a distance that is shown as it is; a longer one is shown as a fraction of WHITE where it is one."""

FRACTION = r"^\s*\d+(\.\d+)?\s*/\s*\d+(\.\d+)?\s*$"
"""A quotient of two numbers, "8/255"."""

EXPONENT = re.compile(r"^\s*[+-]?\d+(\.\d*)?[eE][+-]?\d+\s*$")
"""A number that YAML 1.1 reads as text because it has no decimal point or no signed exponent, such as "1e-4"."""

NAME = r"^[A-Za-z0-9_+][A-Za-z0-9._+-]*$"
"""Names become parts of paths and of pages: no separators, no quotes, no blanks."""

NAME_FORM = re.compile(NAME)

LONGEST_NAME = 100
"""Characters of a name, which becomes part of a file name."""


class Closed(BaseModel):
    """Settings with a closed set of keys: an unknown key or a value of another type is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Record(BaseModel):
    """Part of a JSON file that the workflow writes, not changed once it is made."""

    model_config = ConfigDict(frozen=True)


class RecordFile(Record):
    """A JSON file that the workflow writes, whole."""

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read the file; raises InputError where it is missing, damaged or of an earlier version."""
        try:
            return cls.model_validate(read_json(path))
        except ValidationError as error:
            raise InputError(f"{path}: of an earlier version; delete it and run the workflow again") from error


class Sparse(Closed):
    """Settings that are serialised without the keys in `absent` whose value is None."""

    absent: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = dict(dump(self))
        for key in self.absent:
            if key in values and values[key] is None:
                del values[key]
        return values


class Entry(Sparse):
    """Settings of an entry of the configuration; the keys in `last` are serialised after all others."""

    last: ClassVar[tuple[str, ...]] = ()

    def explicit(self) -> dict[str, Any]:
        """All settings as plain values."""
        values = self.model_dump(by_alias=True)
        for key in self.last:
            if key in values:
                values[key] = values.pop(key)
        return values


def as_number(value: Any) -> Any:
    """Float of a text like "8/255" or "1e-4", other values unchanged; ValueError for a division by zero."""
    if not isinstance(value, str):
        return value
    if EXPONENT.match(value):
        return float(value)
    if not re.match(FRACTION, value):
        return value
    numerator, denominator = (Fraction(number.strip()) for number in value.split("/"))
    if denominator == 0:
        raise ValueError(f"{value} divides by zero; give a number, or a fraction such as 8/255")
    return float(numerator / denominator)


def refusal(text: str, *at: str) -> PydanticCustomError:
    """Error for a validator to raise: fault and remedy in words, and the keys within the model that it concerns."""
    return PydanticCustomError("refused", "{text}", {"text": text, "at": at})


def _number(value: Any) -> Any:
    number = as_number(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise PydanticCustomError("no_number", "a number, or a fraction such as 8/255")
    return number


Number = Annotated[
    int | float,
    BeforeValidator(_number, json_schema_input_type=float | Annotated[str, Field(pattern=FRACTION)]),
]
"""A finite number, or a fraction such as "8/255"; integers stay integers."""

Positive = Annotated[Number, Field(gt=0)]
Distance = Annotated[Positive, Field(description="A distance in pixels of [0, 1], or a fraction such as 8/255.")]
Share = Annotated[Number, Field(ge=0, le=1)]
"""A proportion in [0, 1]."""

InnerShare = Annotated[Number, Field(gt=0, lt=1)]
"""A proportion strictly between 0 and 1."""


def _confidence(value: float) -> float:
    if value < HALF:
        raise refusal(
            f"a confidence of {value} is worse than a coin; for an error probability of {value} give {1 - value:.12g}"
        )
    return value


Confidence = Annotated[
    InnerShare, AfterValidator(_confidence), Field(ge=HALF, description="A confidence as a fraction, such as 0.95.")
]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1, description="Seed of every random draw of this entry.")]
ImagesAtOnce = Annotated[int, Field(ge=1, le=1_000_000)]
Resamples = Annotated[int, Field(ge=19, le=1_000_000)]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
T = TypeVar("T")


def _once(values: list[Any]) -> list[Any]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise refusal(f"{value!r} stands more than once; name it once")
    return values


Unique = Annotated[list[T], AfterValidator(_once)]
"""A list without repeated values."""

LOGARITHMS: Literal["logarithms"] = "logarithms"
Probabilities = bool | Literal["logarithms"]
"""What becomes of outputs that look like probabilities: refused, logits as they are, or their logarithms."""

Norm = Literal["linf", "l2"]
Device = Literal["cpu", "cuda"]


Half = Literal["choosing", "judging"]
"""One of the two halves of a dataset: what something is chosen on, or what it is judged on."""


class Subset(Sparse):
    """Part of the samples: so many with the class shares of the whole, so many of each class, or every so many rows."""

    absent = frozenset({"samples", "per_class", "every"})

    samples: Annotated[Count | None, Field(description="How many to draw, with the class shares of the whole.")] = None
    per_class: Annotated[
        Count | None,
        Field(
            description="In place of that: how many of each class, all where there are fewer. A larger number keeps "
            "what a smaller one draws, and what was measured of it."
        ),
    ] = None
    every: Annotated[
        Count | None, Field(description="In place of a draw: rows 0, every, 2 every, ... of the dataset.")
    ] = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        unset = [self.samples, self.per_class, self.every].count(None)
        if unset != 2:
            raise refusal("a subset has samples, how many to draw, or per_class, or every; give one of them")
        return self


def first_fault(error: ValidationError) -> str:
    """The first fault of settings that a model refuses: its key, where one is at fault, and the reason."""
    fault = error.errors()[0]
    key = ".".join(map(str, fault["loc"]))
    return f"{key}: {fault['msg']}" if key else fault["msg"]


def longer_than_white(size: float) -> str:
    """Error message, with the remedy, for an l_inf distance above 1."""
    in_pixel_steps = size <= WHITE and size == int(size)
    remedy = f"write {size:g}/{WHITE}" if in_pixel_steps else "give a number up to 1"
    return f"an l_inf distance of {size:g} exceeds the pixel range [0, 1]; {remedy}"


def never(_entry: Any) -> bool:
    """Predicate that is always false."""
    return False


def path_ends(*ends: str) -> Callable[[Mapping[str, Any]], bool]:
    """Predicate of an entry: whether its `path` has one of these endings."""

    def ends_so(entry: Mapping[str, Any]) -> bool:
        return str(entry.get("path", "")).lower().endswith(ends)

    return ends_so
