"""What settings of the configuration are made of: closed models, and the kinds of values that many of them share.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

WHITE = 255
"""Of a pixel of eight bits."""

FRACTION = r"^\s*\d+(\.\d+)?\s*/\s*\d+(\.\d+)?\s*$"
"""A quotient of two numbers, "8/255"."""

EXPONENT = re.compile(r"^\s*[+-]?\d+(\.\d*)?[eE][+-]?\d+\s*$")
"""A number that YAML takes for a text because it has no decimal point or sign, "1e-4"."""

NAME = r"^[A-Za-z0-9_+][A-Za-z0-9._+-]*$"
"""Names become parts of paths and of pages: no separators, no quotes, no blanks."""

NAME_FORM = re.compile(NAME)
LONGEST_NAME = 100


class Closed(BaseModel):
    """Settings that know their keys: an unknown one is an error, and so is a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Sparse(Closed):
    """Settings of which some are left out altogether where they are None: those named by `absent`."""

    absent: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None or key not in self.absent}


class Entry(Sparse):
    """Settings of an entry of the configuration; those named by `last` stand behind the ones of its own kind."""

    last: ClassVar[tuple[str, ...]] = ()

    def explicit(self) -> dict[str, Any]:
        """Every setting as plain values."""
        found = self.model_dump(by_alias=True)
        own = {key: value for key, value in found.items() if key not in self.last}
        return own | {key: found[key] for key in self.last if key in found}


def as_number(value: Any) -> Any:
    """Float of a text like "8/255" or "1e-4"; whatever else is given as it is. Raises ValueError for a zero divisor."""
    if not isinstance(value, str):
        return value
    if EXPONENT.match(value):
        return float(value)
    if not re.match(FRACTION, value):
        return value
    above, below = (Fraction(part.strip()) for part in value.split("/"))
    if below == 0:
        raise ValueError(f"{value} divides by zero; give a number, or a fraction such as 8/255")
    return float(above / below)


def refusal(text: str, *at: str) -> PydanticCustomError:
    """Error for a validator to raise: what is wrong, with the remedy, and the keys below the model where it stands."""
    return PydanticCustomError("refused", "{text}", {"text": text, "at": at})


def _number(value: Any) -> Any:
    found = as_number(value)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise PydanticCustomError("no_number", "a number, or a fraction such as 8/255")
    return found


Number = Annotated[
    int | float,
    BeforeValidator(_number, json_schema_input_type=float | Annotated[str, Field(pattern=FRACTION)]),
]
"""A finite number, or a fraction such as "8/255"; whole numbers stay whole."""

Positive = Annotated[Number, Field(gt=0)]
Distance = Annotated[Positive, Field(description="A distance in pixels of [0, 1], or a fraction such as 8/255.")]
Share = Annotated[Number, Field(ge=0, le=1)]
"""A fraction of a whole, 0..1."""

InnerShare = Annotated[Number, Field(gt=0, lt=1)]
"""A fraction of a whole that is neither nothing nor all."""

Confidence = Annotated[InnerShare, Field(description="A confidence as a fraction, such as 0.95.")]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1, description="Seed of every random draw of this entry.")]
ImagesAtOnce = Annotated[int, Field(ge=1, le=1_000_000)]
Resamples = Annotated[int, Field(ge=19, le=1_000_000)]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
T = TypeVar("T")


def _once(values: list[Any]) -> list[Any]:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise refusal(f"{value!r} stands more than once; name it once")
    return values


Unique = Annotated[list[T], AfterValidator(_once)]
"""A list in which nothing stands twice."""

Norm = Literal["linf", "l2"]
Device = Literal["cpu", "cuda"]


class Subset(Sparse):
    """Part of the samples: so many, drawn at random with the class shares of the whole, or every so many rows."""

    absent = frozenset({"samples", "every"})

    samples: Annotated[Count | None, Field(description="How many to draw.")] = None
    every: Annotated[
        Count | None, Field(description="In place of a draw: rows 0, every, 2 every, ... of the dataset.")
    ] = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.samples is None) == (self.every is None):
            raise refusal("a subset has either samples, how many to draw, or every; give one of them")
        return self


def longer_than_white(size: float) -> str:
    """What is wrong with a distance in l_inf above 1, with the remedy."""
    whole = size <= WHITE and size == int(size)
    remedy = f"write {size:g}/{WHITE}" if whole else "give a share of white"
    return f"{size:g} in l_inf is more than from black to white: pixels are in [0, 1]; {remedy}"


def never(_given: Any) -> bool:
    """Condition that nothing meets."""
    return False


def path_ends(*ends: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether the path of an entry ends in one of these, as a function of the entry."""
    return lambda entry: str(entry.get("path", "")).lower().endswith(ends)


def given(entry: Any, key: str) -> Any:
    """A setting that an entry of the configuration states, None where it does not, or is no mapping."""
    return entry.get(key) if isinstance(entry, Mapping) else None
