"""Attribute-conditional encoder and decoder with an adversarial loss, whose movable dimensions are the attributes.

The paper mentions a conditional GAN without details. This one encodes what the attributes do not determine, decodes it
with any attributes, and is trained against a discriminator that distinguishes real from decoded images and predicts
their attributes (Mirza and Osindero 2014; losses of He et al. 2019, AttGAN, with a hinge adversarial loss).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Number, Positive, Text, Unique
from gfscore.projection.mappers.declared import MapperKind, MapperSettings

if TYPE_CHECKING:
    from gfscore.projection.mappers.networks import MapperNetwork

Weight = Annotated[Number, Field(ge=0)]


class Conditional(MapperSettings):
    """An attribute-conditional encoder and decoder."""

    kind: Literal["conditional"] = "conditional"
    attributes: Unique[Text] | None = Field(
        None, min_length=1, description="Attributes of the dataset to move; null for all."
    )
    latent: int = Field(16, ge=1, le=10_000, description="Number of dimensions that are not moved.")
    width: int = Field(16, ge=1, le=10_000, description="Channels of the first convolution.")
    learning_rate: Positive = Field(0.002, description="Adam's learning rate, constant.")
    adversarial_weight: Weight = Field(
        0.001, description="Weight of the adversarial loss relative to the mean cross-entropy of a pixel."
    )
    attribute_weight: Weight = Field(0.01, description="Weight of the discriminator's loss on attributes.")


KIND = MapperKind(
    name="conditional",
    settings=Conditional,
    conditions=True,
    arguments=("latent", "width", "features", "adversarial_weight", "attribute_weight"),
)


def build(
    image_shape: tuple[int, int, int],
    names: Sequence[str] | None,
    *,
    latent: int,
    width: int,
    features: int,
    adversarial_weight: float,
    attribute_weight: float,
) -> MapperNetwork:
    """Network of these settings for images (C, H, W) with the A conditions `names`; InputError where there are none."""
    from gfscore.projection.mappers.conditional.network import ConditionalNetwork

    if not names:
        raise InputError("mapper kind 'conditional' needs attributes; add some to the dataset that it is trained on")
    return ConditionalNetwork(
        image_shape,
        names,
        latent=latent,
        width=width,
        features=features,
        adversarial_weight=adversarial_weight,
        attribute_weight=attribute_weight,
    )
