"""beta-VAE: a variational autoencoder with a larger weight on the prior (Higgins et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.settings import Positive
from gfscore.projection.mappers.declared import MapperKind, MapperSettings

if TYPE_CHECKING:
    from gfscore.projection.mappers.networks import MapperNetwork


class BetaVae(MapperSettings):
    """A beta-VAE."""

    kind: Literal["beta_vae"] = "beta_vae"
    beta: Positive = Field(
        10,
        description="Weight of the divergence from the prior against the likelihood of the pixels; 10 in the paper.",
    )
    pixel_sd: Positive | None = Field(
        0.05,
        description="Standard deviation of Gaussian pixels in the likelihood; null for Bernoulli pixels.",
    )


KIND = MapperKind(
    name="beta_vae",
    settings=BetaVae,
    arguments=("latent", "width", "features", "beta", "pixel_sd"),
)


def build(
    image_shape: tuple[int, int, int],
    names: None,
    *,
    latent: int,
    width: int,
    features: int,
    beta: float,
    pixel_sd: float | None,
) -> MapperNetwork:
    """Network of these settings for images (C, H, W); there are no conditions, so `names` is None."""
    from gfscore.projection.mappers.beta_vae.network import BetaVaeNetwork

    del names
    return BetaVaeNetwork(image_shape, latent=latent, width=width, features=features, beta=beta, pixel_sd=pixel_sd)
