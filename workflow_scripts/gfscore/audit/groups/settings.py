"""Settings of the comparison of groups of samples. Imports nothing heavy."""

from pydantic import Field

from gfscore.core.settings import Closed, Count, Seed, Text, Unique


class Balanced(Closed):
    """The metrics again on a part of the samples with equally many of each group of an attribute."""

    attribute: Text = Field(description="Attribute whose groups are made equal in number.")
    seed: Seed = 0


class GroupSettings(Closed):
    """Fairness between the groups that attributes of the dataset make."""

    attributes: Unique[Text] | None = Field(
        None, min_length=1, description="Attributes of the dataset: all that its entry lists where they are left out."
    )
    positive: str | None = Field(
        None,
        description="Class that counts as the positive one; null for each class against the rest, their mean and their "
        "worst.",
    )
    minimum_cell: Count = Field(20, description="Numbers of cells with fewer samples are marked as small.")
    balanced: Balanced | None = Field(
        None, description="The metrics on a balanced part of the samples too; null for none."
    )
