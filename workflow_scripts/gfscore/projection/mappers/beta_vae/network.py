"""Network of the beta-VAE, and its training."""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from gfscore.projection.mappers.networks import MapperNetwork, decoder, encoder

LARGEST_LOG_VARIANCE = 10.0
"""Bound of |log variance|, which prevents overflow early in the training."""


class BetaVaeNetwork(MapperNetwork):
    """Encoder to a diagonal Gaussian, decoder to independent pixels.

    Traversals and projections move each of its latent dimensions z0, z1, ...
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        *,
        latent: int,
        width: int,
        features: int,
        beta: float,
        pixel_sd: float | None,
    ) -> None:
        """Create layers with random weights.

        Parameters
        ----------
        image_shape : tuple of int
            (C, H, W).
        latent : int
            Number of latent dimensions.
        width : int
            Channels of the first convolution.
        features : int
            Units of the hidden linear layers.
        beta : float
            Weight of the divergence from the prior. Its effect depends on the scale of the log-likelihood, the sum over
            all pixels: it is weaker for a smaller pixel_sd and for more pixels; where it is too strong, the decoder
            ignores dimensions.
        pixel_sd : float or None
            Standard deviation of Gaussian pixels; None for Bernoulli pixels.
        """
        super().__init__()
        self.names = [f"z{index}" for index in range(latent)]
        self.beta = beta
        self.pixel_sd = pixel_sd
        self.encoder = encoder(image_shape, features, width=width)
        self.posterior = nn.Linear(features, 2 * latent)
        self.decoder = decoder(image_shape, latent, features, width=width)

    def posterior_parameters(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the posterior q(z|x), each (n, latent)."""
        mean, log_variance = self.posterior(self.encoder(images)).chunk(2, dim=1)
        return mean, log_variance.clamp(-LARGEST_LOG_VARIANCE, LARGEST_LOG_VARIANCE)

    def encode(self, images: Tensor, conditions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Posterior means (the codes) and standard deviations."""
        del conditions
        mean, log_variance = self.posterior_parameters(images)
        return mean, torch.exp(log_variance / 2)

    def decode(self, codes: Tensor) -> Tensor:
        """Means of the pixel distributions."""
        return torch.sigmoid(self.decoder(codes))

    def trainer(self, learning_rate: float, generator: Generator) -> "BetaVaeTrainer":
        """Steps of Adam on the evidence lower bound."""
        return BetaVaeTrainer(self, learning_rate, generator)


class BetaVaeTrainer:
    """Steps of Adam on the evidence lower bound with weight beta (Higgins et al. 2017), in nats per image."""

    losses = ("reconstruction", "divergence")

    def __init__(self, network: BetaVaeNetwork, learning_rate: float, generator: Generator) -> None:
        """Create the optimiser; `generator`, on the CPU, draws the noise of the latent codes."""
        self.network = network
        self.generator = generator
        self.optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)

    @property
    def objects(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Network and optimiser."""
        return {"network": self.network, "optimiser": self.optimiser}

    def step(self, images: Tensor, conditions: Tensor | None = None) -> tuple[float, float]:
        """One step on images (n, C, H, W); conditions are not used."""
        del conditions
        mean, log_variance = self.network.posterior_parameters(images)
        # Drawn on the CPU, so that the draws do not depend on the device.
        noise = torch.randn(mean.shape, generator=self.generator).to(mean.device)
        logits = self.network.decoder(mean + torch.exp(log_variance / 2) * noise)
        misfit = self._misfit(logits, images) / len(images)
        divergence = (mean**2 + log_variance.exp() - 1 - log_variance).sum() / (2 * len(images))

        self.optimiser.zero_grad()
        (misfit + self.network.beta * divergence).backward()
        self.optimiser.step()
        return misfit.item(), divergence.item()

    def _misfit(self, logits: Tensor, images: Tensor) -> Tensor:
        # Negative log-likelihood of all pixels, up to a constant, in nats.
        if self.network.pixel_sd is None:
            return functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        squares = (torch.sigmoid(logits) - images) ** 2
        return squares.sum() / (2 * self.network.pixel_sd**2)
