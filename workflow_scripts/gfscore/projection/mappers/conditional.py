"""Attribute-conditional encoder and decoder with an adversarial loss, whose movable dimensions are the attributes.

The paper mentions a conditional GAN without details. This one encodes what the attributes do not determine, decodes it
with any attributes, and is trained against a discriminator that distinguishes real from decoded images and predicts
their attributes (Mirza and Osindero 2014; losses of He et al. 2019, AttGAN, with a hinge adversarial loss).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Number, Positive, Text, Unique
from gfscore.core.tensors import Generator, Module, Tensor
from gfscore.projection.mappers.declared import MapperKind, MapperSettings
from gfscore.projection.mappers.layers import decoder, encoder

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


KIND = MapperKind(name="conditional", settings=Conditional, conditions=True)

MOMENTUM = (0.5, 0.999)
"""Usual decay rates of Adam in adversarial training (Radford et al. 2016)."""


def build(
    image_shape: tuple[int, int, int],
    names: Sequence[str],
    *,
    latent: int,
    width: int,
    features: int,
    adversarial_weight: float,
    attribute_weight: float,
) -> Module:
    """Mapper whose movable dimensions are the A conditions `names`, each in [0, 1]; `latent` further ones are fixed.

    `adversarial_weight` and `attribute_weight` are the weights of the adversarial loss and of the loss on attributes
    relative to the reconstruction error in nats per pixel; `width` and `features` as in beta_vae.
    """
    import torch
    from torch import nn

    if not names:
        raise InputError("mapper kind 'conditional' needs attributes; add some to the dataset that it is trained on")
    count = len(names)

    class Conditional(nn.Module):
        """Codes are the conditions followed by the output of the encoder."""

        limits = (0.0, 1.0)

        def __init__(self) -> None:
            super().__init__()
            self.names = list(names)
            self.encoder = encoder(image_shape, features, width=width)
            self.residue = nn.Linear(features, latent)
            self.decoder = decoder(image_shape, count + latent, features, width=width)
            self.critic = nn.Sequential(encoder(image_shape, features, width=width), nn.Linear(features, 1 + count))

        def encode(self, images: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
            """Codes, and the whole range of each attribute in place of a posterior standard deviation."""
            residue = torch.tanh(self.residue(self.encoder(images)))
            return torch.cat([conditions, residue], dim=1), torch.ones_like(conditions)

        def decode(self, codes: Tensor) -> Tensor:
            """Images with the attributes in the first columns of the codes."""
            return torch.sigmoid(self.decoder(codes))

        def trainer(self, learning_rate: float, generator: Generator) -> _Trainer:
            """See gfscore.projection.mappers."""
            weights = {"adversarial": adversarial_weight, "attribute": attribute_weight}
            return _Trainer(self, learning_rate, generator, weights=weights)

    return Conditional()


class _Trainer:
    losses = ("reconstruction", "discriminator", "attributes")

    def __init__(
        self, network: Any, learning_rate: float, generator: Generator, *, weights: Mapping[str, float]
    ) -> None:
        import torch

        self.network, self.generator, self.weights = network, generator, weights
        mapper = [value for name, value in network.named_parameters() if not name.startswith("critic.")]
        self.mapper_optimiser = torch.optim.Adam(mapper, lr=learning_rate, betas=MOMENTUM)
        self.critic_optimiser = torch.optim.Adam(network.critic.parameters(), lr=learning_rate, betas=MOMENTUM)
        self.parts = {"network": network, "mapper": self.mapper_optimiser, "critic": self.critic_optimiser}

    def step(self, images: Tensor, conditions: Tensor) -> tuple[float, float, float]:
        """One step of the discriminator, then one of encoder and decoder; a missing condition is NaN."""
        import torch
        from torch.nn import functional

        known = ~torch.isnan(conditions)
        attributes = torch.where(known, conditions, 0.5)
        # Attributes of another sample, so that their combinations are realistic.
        order = torch.randperm(len(images), generator=self.generator).to(images.device)
        codes, _ = self.network.encode(images, attributes)
        decoded = self.network.decode(torch.cat([attributes[order], codes[:, attributes.shape[1] :]], dim=1))

        real, false = self.network.critic(images), self.network.critic(decoded.detach())
        discriminator = functional.relu(1 - real[:, 0]).mean() + functional.relu(1 + false[:, 0]).mean()
        on_real = _attribute_loss(real[:, 1:], attributes, known)
        self.critic_optimiser.zero_grad()
        (discriminator + on_real).backward()
        self.critic_optimiser.step()

        criticised = self.network.critic(decoded)
        misfit = functional.binary_cross_entropy(self.network.decode(codes), images)
        on_decoded = _attribute_loss(criticised[:, 1:], attributes[order], known[order])
        self.mapper_optimiser.zero_grad()
        loss = misfit - self.weights["adversarial"] * criticised[:, 0].mean() + self.weights["attribute"] * on_decoded
        loss.backward()
        self.mapper_optimiser.step()
        return misfit.item(), discriminator.item(), on_decoded.item()


def _attribute_loss(logits, conditions, known):
    # Mean cross-entropy over the known attributes.
    from torch.nn import functional

    losses = functional.binary_cross_entropy_with_logits(logits, conditions, reduction="none") * known
    return losses.sum() / known.sum().clamp(min=1)
