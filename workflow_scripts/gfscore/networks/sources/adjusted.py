"""Another model of the zoo with class offsets: one number per class is added to its logits."""

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Name, Positive, Text
from gfscore.networks.model_source import LogitsSettings, ModelSource
from gfscore.networks.offset_settings import OffsetSettings

MODEL_OF_ZOO = r"^[^/]+/[^/]+$"


class Adjusted(OffsetSettings, LogitsSettings):
    """A model with class offsets, which are chosen under attack on half of the data."""

    source: Literal["adjusted"] = "adjusted"
    of: Annotated[Text, Field(pattern=MODEL_OF_ZOO)] = Field(
        description="Model of the same zoo that the offsets are added to, threat/name."
    )
    choose_on: Name = Field(
        description="Dataset that the offsets are chosen on, with half: choosing; what is reported must not be of it."
    )
    measure: Name = Field(description="Measure of kind adversarial whose attacks the offsets are chosen under.")
    strength: Positive = Field(1.0, description="Share of the chosen offsets that is added.")


SOURCE = ModelSource(
    name="adjusted",
    settings=Adjusted,
    gives="gradients",
    claims=lambda entry: "of" in entry,
)
