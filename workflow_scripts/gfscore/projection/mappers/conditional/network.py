"""Network of the conditional mapper, and its adversarial training."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from gfscore.projection.mappers.conditions import UNKNOWN
from gfscore.projection.mappers.layers import MapperNetwork, decoder, encoder

MOMENTUM = (0.5, 0.999)
"""Usual decay rates of Adam in adversarial training (Radford et al. 2016)."""


class ConditionalNetwork(MapperNetwork):
    """Codes are the A conditions, each in [0, 1], which are moved, followed by the output of the encoder."""

    limits = (0.0, 1.0)

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        names: Sequence[str],
        *,
        latent: int,
        width: int,
        features: int,
        adversarial_weight: float,
        attribute_weight: float,
    ) -> None:
        """Create layers with random weights.

        Parameters
        ----------
        image_shape : tuple of int
            (C, H, W).
        names : sequence of str
            Names of the A conditions.
        latent : int
            Number of dimensions that are not moved.
        width : int
            Channels of the first convolution.
        features : int
            Units of the hidden linear layers.
        adversarial_weight, attribute_weight : float
            Weights of the adversarial loss and of the loss on attributes relative to the reconstruction error in nats
            per pixel.
        """
        super().__init__()
        self.names = list(names)
        self.adversarial_weight = adversarial_weight
        self.attribute_weight = attribute_weight
        count = len(names)
        self.encoder = encoder(image_shape, features, width=width)
        self.residue = nn.Linear(features, latent)
        self.decoder = decoder(image_shape, count + latent, features, width=width)
        self.critic = nn.Sequential(encoder(image_shape, features, width=width), nn.Linear(features, 1 + count))

    def encode(self, images: Tensor, conditions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Codes, and the whole range of each attribute in place of a posterior standard deviation."""
        assert conditions is not None  # this kind declares them
        residue = torch.tanh(self.residue(self.encoder(images)))
        return torch.cat([conditions, residue], dim=1), torch.ones_like(conditions)

    def decode(self, codes: Tensor) -> Tensor:
        """Images with the attributes in the first columns of the codes."""
        return torch.sigmoid(self.decoder(codes))

    def trainer(self, learning_rate: float, generator: Generator) -> "ConditionalTrainer":
        """Alternating steps of the discriminator and of encoder and decoder."""
        return ConditionalTrainer(self, learning_rate, generator)


class ConditionalTrainer:
    """Adam on the losses of AttGAN (He et al. 2019) with a hinge adversarial loss."""

    losses = ("reconstruction", "discriminator", "attributes")

    def __init__(self, network: ConditionalNetwork, learning_rate: float, generator: Generator) -> None:
        """Create the optimisers; `generator` draws on the CPU."""
        self.network = network
        self.generator = generator
        mapper = [value for name, value in network.named_parameters() if not name.startswith("critic.")]
        self.mapper_optimiser = torch.optim.Adam(mapper, lr=learning_rate, betas=MOMENTUM)
        self.critic_optimiser = torch.optim.Adam(network.critic.parameters(), lr=learning_rate, betas=MOMENTUM)

    @property
    def objects(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Network and both optimisers."""
        return {"network": self.network, "mapper": self.mapper_optimiser, "critic": self.critic_optimiser}

    def step(self, images: Tensor, conditions: Tensor) -> tuple[float, float, float]:
        """One step of the discriminator, then one of encoder and decoder; a missing condition is NaN."""
        present = ~torch.isnan(conditions)
        attributes = torch.where(present, conditions, UNKNOWN)
        # Attributes of another sample, so that their combinations are realistic.
        order = torch.randperm(len(images), generator=self.generator).to(images.device)
        codes, _ = self.network.encode(images, attributes)
        residue = codes[:, attributes.shape[1] :]
        decoded = self.network.decode(torch.cat([attributes[order], residue], dim=1))

        real = self.network.critic(images)
        fake = self.network.critic(decoded.detach())
        discriminator = functional.relu(1 - real[:, 0]).mean() + functional.relu(1 + fake[:, 0]).mean()
        on_real = _attribute_loss(real[:, 1:], attributes, present)
        self.critic_optimiser.zero_grad()
        (discriminator + on_real).backward()
        self.critic_optimiser.step()

        criticised = self.network.critic(decoded)
        misfit = functional.binary_cross_entropy(self.network.decode(codes), images)
        on_decoded = _attribute_loss(criticised[:, 1:], attributes[order], present[order])
        realism = criticised[:, 0].mean()
        loss = misfit - self.network.adversarial_weight * realism + self.network.attribute_weight * on_decoded
        self.mapper_optimiser.zero_grad()
        loss.backward()
        self.mapper_optimiser.step()
        return misfit.item(), discriminator.item(), on_decoded.item()


def _attribute_loss(logits: Tensor, conditions: Tensor, present: Tensor) -> Tensor:
    # Mean cross-entropy over the attributes that are not missing.
    losses = functional.binary_cross_entropy_with_logits(logits, conditions, reduction="none") * present
    return losses.sum() / present.sum().clamp(min=1)
