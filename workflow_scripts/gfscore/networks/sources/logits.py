"""Logits that somebody already has, in a file."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.networks.model_source import LogitsSettings, ModelSource, path_ends


class Logits(LogitsSettings):
    """A file of logits."""

    source: Literal["logits"] = "logits"
    path: Text = Field(description="File of logits: .parquet, .npz, .npy or .csv.")
    allow_probabilities: bool = Field(False, description="Whether rows that sum to 1 really are logits.")


SOURCE = ModelSource(
    name="logits",
    settings=Logits,
    gives="logits",
    claims=lambda entry: path_ends(entry, ".parquet", ".npz", ".npy", ".csv", ".csv.gz"),
)
