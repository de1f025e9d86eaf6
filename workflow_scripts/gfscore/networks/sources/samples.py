"""Certified radii that somebody computed elsewhere, in a file."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.networks.model_source import ModelSettings, ModelSource, path_ends


class Samples(ModelSettings):
    """A file of certified radii."""

    source: Literal["samples"] = "samples"
    path: Text = Field(description="Certified radii, tab-separated: idx, label, predict, radius, correct, time.")


SOURCE = ModelSource(
    name="samples", settings=Samples, gives="samples", claims=lambda entry: path_ends(entry, ".tsv", ".tsv.gz")
)
