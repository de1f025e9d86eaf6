"""Certified radii in a user's file."""

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.networks.model_source import ModelSettings, ModelSource


class Samples(ModelSettings):
    """A file of certified radii."""

    source: Literal["samples"] = "samples"
    path: Text = Field(description="Certified radii, tab-separated: idx, label, predict, radius, correct, time.")


SOURCE = ModelSource(name="samples", settings=Samples, gives="samples", claims=path_ends(".tsv", ".tsv.gz"))
