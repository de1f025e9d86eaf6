"""Logits in a user's file."""

from typing import Literal

from pydantic import Field

from gfscore.core.files import LOGIT_ENDINGS
from gfscore.core.settings import Probabilities, Text, path_ends
from gfscore.networks.model_source import LogitsSettings, ModelSource


class Logits(LogitsSettings):
    """A file of logits."""

    absent = frozenset({"member"})

    source: Literal["logits"] = "logits"
    path: Text = Field(description="File of logits: .parquet, .npz, .npy or .csv.")
    member: Text | None = Field(
        None, description="Array or column with the logits of this model, in a file of several; null in a file of one."
    )
    allow_probabilities: Probabilities = Field(
        False,
        description="What becomes of rows that look like probabilities: false, refused; true, logits as they are; "
        "logarithms, their logarithms are the logits.",
    )


SOURCE = ModelSource(
    name="logits",
    settings=Logits,
    gives="logits",
    claims=path_ends(*LOGIT_ENDINGS),
)
