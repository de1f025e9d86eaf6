"""Settings of fairness between groups of samples. Imports nothing heavy."""

from pydantic import Field

from gfscore.core.settings import Closed, Count, Name, Seed, Text, Unique


class Balanced(Closed):
    """Additional values of the metrics on a part of the samples with equally large groups of an attribute."""

    attribute: Text = Field(description="Attribute whose groups are balanced.")
    seed: Seed = 0


class GroupSettings(Closed):
    """Fairness between the groups that are defined by attributes of the dataset."""

    attributes: Unique[Text] | None = Field(
        None, min_length=1, description="Attributes of the dataset, by default all in its entry."
    )
    positive: str | dict[Name, str] | None = Field(
        None,
        description="Positive class; null for each class against the rest, and the mean and worst over classes. With "
        "several tasks, the positive class of each dataset that has one.",
    )
    minimum_cell: Count = Field(20, description="Number of samples below which a cell is marked as small.")
    balanced: Balanced | None = Field(
        None, description="Additional values on a balanced part of the samples; null for none."
    )
