"""Network of the conditional mapper, and its adversarial training."""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from gfscore.projection.mappers.conditions import UNKNOWN
from gfscore.projection.mappers.networks import MapperNetwork, decoder, encoder

MOMENTUM = (0.5, 0.999)
"""Usual decay rates of Adam in adversarial training (Radford et al. 2016)."""


class ConditionalNetwork(MapperNetwork):
    """Codes are the A conditions, each in [0, 1], followed by `residue`, what else an image shows; it is not moved.

    The discriminator, `critic`, is also the classifier of attributes, with shared layers.
    """

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
        attributes = len(names)
        self.encoder = encoder(image_shape, features, width=width)
        self.residue = nn.Linear(features, latent)
        self.decoder = decoder(image_shape, attributes + latent, features, width=width)
        self.critic = nn.Sequential(encoder(image_shape, features, width=width), nn.Linear(features, 1 + attributes))

    def encode(self, images: Tensor, conditions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Codes; conditions have no posterior, and 1, the length of their range, stands for its standard deviation."""
        # Mappers of this kind declare conditions, so that they are always there.
        assert conditions is not None
        residue = torch.tanh(self.residue(self.encoder(images)))
        return torch.cat([conditions, residue], dim=1), torch.ones_like(conditions)

    def decode(self, codes: Tensor) -> Tensor:
        """Images of codes, with the attributes that the first A columns state."""
        return torch.sigmoid(self.decoder(codes))

    def trainer(self, learning_rate: float, generator: Generator) -> "ConditionalTrainer":
        """Training that alternates steps of the discriminator and of encoder and decoder."""
        return ConditionalTrainer(self, learning_rate, generator)


class ConditionalTrainer:
    """Training by Adam with the losses of AttGAN (He et al. 2019); the adversarial loss is a hinge loss."""

    losses = ("reconstruction", "discriminator", "attributes")

    def __init__(self, network: ConditionalNetwork, learning_rate: float, generator: Generator) -> None:
        """Create the optimisers.

        Parameters
        ----------
        network : ConditionalNetwork
        learning_rate : float
            Learning rate of both optimisers.
        generator : Generator
            On the CPU; draws the sample whose attributes an edited image gets.
        """
        self.network = network
        self.generator = generator
        mapper_parameters = []
        for name, parameter in network.named_parameters():
            if not name.startswith("critic."):
                mapper_parameters.append(parameter)
        self.mapper_optimiser = torch.optim.Adam(mapper_parameters, lr=learning_rate, betas=MOMENTUM)
        self.critic_optimiser = torch.optim.Adam(network.critic.parameters(), lr=learning_rate, betas=MOMENTUM)

    @property
    def objects(self) -> dict[str, nn.Module | torch.optim.Optimizer]:
        """Network and both optimisers."""
        return {"network": self.network, "mapper": self.mapper_optimiser, "critic": self.critic_optimiser}

    def step(self, images: Tensor, conditions: Tensor) -> tuple[float, float, float]:
        """One step of the discriminator, then one of encoder and decoder; a missing condition is NaN."""
        present = ~torch.isnan(conditions)
        attributes = torch.where(present, conditions, UNKNOWN)
        # Edited images get all attributes of another sample, so that their combinations are realistic.
        order = torch.randperm(len(images), generator=self.generator).to(images.device)
        codes, _ = self.network.encode(images, attributes)
        residue = codes[:, attributes.shape[1] :]
        edited = self.network.decode(torch.cat([attributes[order], residue], dim=1))

        # Column 0 of the critic tells real from edited images; the others are logits of the attributes.
        real_outputs = self.network.critic(images)
        edited_outputs = self.network.critic(edited.detach())
        hinge_real = functional.relu(1 - real_outputs[:, 0]).mean()
        hinge_edited = functional.relu(1 + edited_outputs[:, 0]).mean()
        discriminator_loss = hinge_real + hinge_edited
        classifier_loss = _attribute_loss(real_outputs[:, 1:], attributes, present)
        self.critic_optimiser.zero_grad()
        (discriminator_loss + classifier_loss).backward()
        self.critic_optimiser.step()

        # Again, since the critic has changed, and since gradients must reach the decoder.
        edited_outputs = self.network.critic(edited)
        decoded = self.network.decode(codes)
        if decoded.isnan().any():
            # binary_cross_entropy refuses NaN, on a GPU by an assertion that ends the process.
            return math.nan, math.nan, math.nan
        reconstruction_loss = functional.binary_cross_entropy(decoded, images)
        attribute_loss = _attribute_loss(edited_outputs[:, 1:], attributes[order], present[order])
        adversarial_loss = -edited_outputs[:, 0].mean()
        loss = reconstruction_loss + self.network.adversarial_weight * adversarial_loss
        loss = loss + self.network.attribute_weight * attribute_loss
        self.mapper_optimiser.zero_grad()
        loss.backward()
        self.mapper_optimiser.step()
        return reconstruction_loss.item(), discriminator_loss.item(), attribute_loss.item()


def _attribute_loss(logits: Tensor, conditions: Tensor, present: Tensor) -> Tensor:
    # Mean cross-entropy over the attributes that are not missing.
    losses = functional.binary_cross_entropy_with_logits(logits, conditions, reduction="none") * present
    return losses.sum() / present.sum().clamp(min=1)
