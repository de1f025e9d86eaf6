"""Declaration of a source of attributes: its name and the settings of its entries.

Imports nothing heavy, because the Snakefile imports it.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from gfscore.core.discovery import declarations
from gfscore.core.names import spelled_alike
from gfscore.core.settings import Closed, Entry, InnerShare, Name, Number, Text, Unique, refusal
from gfscore.images.dataset_source import PlainSettings, refused_settings

SOURCES = "gfscore.images.attributes"
SAMPLE_ID = "sample_id"

GroupNames = Annotated[
    Unique[Text], Field(min_length=2, description="Names of the groups from low to high, one more than thresholds.")
]


class _Groups(Closed):
    # `thresholds` names the field that holds the T thresholds of T + 1 groups.
    column: Name

    thresholds: ClassVar[str]

    @model_validator(mode="after")
    def _each_group_has_a_name(self) -> Self:
        cuts = getattr(self, self.thresholds)
        names = getattr(self, "names")  # noqa: B009
        if cuts != sorted(set(cuts)):
            raise refusal(f"{self.column}: thresholds must ascend, got {cuts}")
        if len(names) != len(cuts) + 1:
            raise refusal(f"{self.column}: {len(cuts)} thresholds make {len(cuts) + 1} groups; name each")
        alike = spelled_alike(names)
        if alike:
            raise refusal(
                f"{self.column}: {alike[0]!a} and {alike[1]!a} differ in blanks or Unicode spelling alone; rename one"
            )
        return self


class Cut(_Groups):
    """A column of numbers cut at thresholds."""

    cut: list[Number] = Field(
        min_length=1, description="Thresholds, ascending; a value at a threshold belongs to the upper group."
    )
    names: GroupNames

    thresholds = "cut"


class Quantiles(_Groups):
    """A column of numbers cut at quantiles of other samples."""

    quantiles: list[InnerShare] = Field(
        min_length=1, description="Quantiles of other samples (fixed_on) that become the thresholds, ascending."
    )
    names: GroupNames

    thresholds = "quantiles"


def _form(value: Any) -> str:
    if isinstance(value, Quantiles) or (isinstance(value, dict) and "quantiles" in value):
        return "by quantiles"
    if isinstance(value, dict | Closed):
        return "by thresholds"
    return "a name"


AttributeColumn = Annotated[
    Annotated[Name, Tag("a name")] | Annotated[Cut, Tag("by thresholds")] | Annotated[Quantiles, Tag("by quantiles")],
    Discriminator(_form),
]
"""A column whose values are the groups, or a column of numbers to be cut into groups."""


def column_name(column: str | Cut | Quantiles) -> str:
    """Name of the attribute, and of its column in the raw data."""
    return column if isinstance(column, str) else column.column


class AttributeSettings(Entry):
    """Settings that every source of attributes has."""

    source: str
    columns: list[AttributeColumn] | None = Field(
        min_length=1, description="Attributes: columns whose values are the groups, or numbers cut into groups."
    )
    missing: Literal["group", "drop"] = Field(
        "drop", description="Samples without a value: a separate group, or left out of this attribute."
    )

    last = ("missing",)

    @property
    def names(self) -> list[str]:
        """Names of the attributes that are listed; empty where all columns are read."""
        return [column_name(column) for column in self.columns or ()]

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> Self:
        columns = self.columns or []
        names = self.names
        for name in names:
            if names.count(name) > 1:
                raise refusal(f"{name!r} is repeated; name it once", "columns")
        if SAMPLE_ID in names:
            raise refusal(
                f"{SAMPLE_ID!r} is the column of the samples' identifiers in every table; rename it in the data",
                "columns",
            )
        if self.reference_dataset is None:
            for column in columns:
                if isinstance(column, Quantiles):
                    remedy = "name it under `fixed_on`" if "fixed_on" in type(self).model_fields else "give `cut`"
                    raise refusal(f"{column.column}: quantiles are taken on another dataset; {remedy}", "columns")
        return self

    @property
    def reference_dataset(self) -> str | None:
        """Name of the dataset on whose samples quantiles are taken, where the source has that setting."""
        return getattr(self, "fixed_on", None)


@dataclass(frozen=True, kw_only=True)
class AttributeSource:
    """A source of attributes: `name`, the value of `source` in entries; `settings`, the pydantic model of entries."""

    name: str
    settings: type[AttributeSettings]


@cache
def attribute_sources() -> dict[str, AttributeSource]:
    """All sources of attributes by name, the name of their module in SOURCES."""
    return declarations(SOURCES, "SOURCE")


def attribute_settings(entry: PlainSettings) -> AttributeSettings:
    """Settings of an entry `attributes`, as parameters of jobs hold it; InputError for those that a source refuses."""
    source = attribute_sources()[entry["source"]]
    try:
        return source.settings.model_validate(entry)
    except ValidationError as error:
        raise refused_settings(error, f"attributes of the source {source.name}") from error
