"""beta-VAE: a variational autoencoder with a larger weight on the prior (Higgins et al. 2017)."""

from typing import Any, Literal

from pydantic import Field

from gfscore.core.settings import Positive
from gfscore.core.tensors import Generator, Module, Tensor
from gfscore.projection.mappers.declared import MapperKind, MapperSettings
from gfscore.projection.mappers.layers import decoder, encoder


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


KIND = MapperKind(name="beta_vae", settings=BetaVae)


LARGEST_LOG_VARIANCE = 10.0
"""Bound of |log variance|, which prevents overflow early in the training."""


def build(
    image_shape: tuple[int, int, int],
    names: None,
    *,
    latent: int,
    width: int,
    features: int,
    beta: float,
    pixel_sd: float | None,
) -> Module:
    """Mapper with `latent` dimensions z0, z1, ...; `beta` is the weight of the divergence from the prior.

    The effect of beta depends on the scale of the log-likelihood, the sum over all pixels: `pixel_sd` is the standard
    deviation of Gaussian pixels, or None for Bernoulli pixels. The effect is weaker for a smaller pixel_sd and for more
    pixels; if it is too strong, the decoder ignores dimensions. `width` is the number of channels of the first
    convolution, `features` that of the hidden linear layers. There are no conditions: `names` is None.
    """
    import torch
    from torch import nn

    class BetaVAE(nn.Module):
        """Encoder to a diagonal Gaussian, decoder to independent pixels."""

        limits = None

        def __init__(self) -> None:
            super().__init__()
            self.names = [f"z{index}" for index in range(latent)]
            self.encoder = encoder(image_shape, features, width=width)
            self.posterior = nn.Linear(features, 2 * latent)
            self.decoder = decoder(image_shape, latent, features, width=width)

        def gaussian(self, images: Tensor) -> tuple[Tensor, Tensor]:
            """Mean and log variance of q(z|x), each (n, latent)."""
            mean, log_variance = self.posterior(self.encoder(images)).chunk(2, dim=1)
            return mean, log_variance.clamp(-LARGEST_LOG_VARIANCE, LARGEST_LOG_VARIANCE)

        def encode(self, images: Tensor, conditions: Tensor | None = None) -> tuple[Tensor, Tensor]:
            """Posterior means (the codes) and standard deviations."""
            del conditions
            mean, log_variance = self.gaussian(images)
            return mean, torch.exp(log_variance / 2)

        def decode(self, codes: Tensor) -> Tensor:
            """Means of the pixel distributions."""
            return torch.sigmoid(self.decoder(codes))

        def trainer(self, learning_rate: float, generator: Generator) -> _Trainer:
            """See gfscore.projection.mappers."""
            return _Trainer(self, learning_rate, generator, beta=beta, pixel_sd=pixel_sd)

    return BetaVAE()


class _Trainer:
    losses = ("reconstruction", "divergence")

    def __init__(
        self, network: Any, learning_rate: float, generator: Generator, *, beta: float, pixel_sd: float | None
    ) -> None:
        import torch

        self.network, self.generator, self.beta, self.pixel_sd = network, generator, beta, pixel_sd
        self.optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        self.parts = {"network": network, "optimiser": self.optimiser}

    def step(self, images: Tensor, conditions: Tensor | None = None) -> tuple[float, float]:
        """One step of Adam on the evidence lower bound with weight beta, in nats per image."""
        import torch

        del conditions
        mean, log_variance = self.network.gaussian(images)
        # Drawn on the CPU, so that the draws do not depend on the device.
        noise = torch.randn(mean.shape, generator=self.generator).to(mean.device)
        logits = self.network.decoder(mean + torch.exp(log_variance / 2) * noise)
        misfit = self._misfit(logits, images) / len(images)
        divergence = (mean**2 + log_variance.exp() - 1 - log_variance).sum() / (2 * len(images))
        self.optimiser.zero_grad()
        (misfit + self.beta * divergence).backward()
        self.optimiser.step()
        return misfit.item(), divergence.item()

    def _misfit(self, logits, images):
        # Negative log-likelihood of all pixels, up to a constant, in nats.
        import torch
        from torch.nn import functional

        if self.pixel_sd is None:
            return functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        return ((torch.sigmoid(logits) - images) ** 2).sum() / (2 * self.pixel_sd**2)
