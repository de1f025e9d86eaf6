"""Attribute-conditional encoder and decoder with an adversarial loss: its movable dimensions are attributes themselves.

The paper names a conditional GAN and says no more. This one encodes what the attributes leave open, decodes it with any
attributes, and is trained against a discriminator that tells real from made images and names their attributes (Mirza
and Osindero 2014; the losses are those of He et al. 2019, AttGAN, with the hinge form of the adversarial one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Number, Positive, Text, Unique
from gfscore.projection.mappers.declared import MapperKind, MapperSettings
from gfscore.projection.mappers.layers import decoder, encoder

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Weight = Annotated[Number, Field(ge=0)]


class Conditional(MapperSettings):
    """An attribute-conditional encoder and decoder."""

    kind: Literal["conditional"] = "conditional"
    attributes: Unique[Text] | None = Field(
        None, min_length=1, description="Attributes of the dataset that are moved; null for all."
    )
    latent: int = Field(16, ge=1, le=10_000, description="Dimensions that are never moved.")
    width: int = Field(16, ge=1, le=10_000, description="Channels of the first convolution.")
    learning_rate: Positive = Field(0.002, description="Adam's learning rate, constant.")
    adversarial_weight: Weight = Field(
        0.001, description="Weight of the discriminator's verdict against the mean cross-entropy of a pixel."
    )
    attribute_weight: Weight = Field(0.01, description="Weight of its naming of the attributes.")


KIND = MapperKind(name="conditional", settings=Conditional, conditions=True)

MOMENTUM = (0.5, 0.999)
"""Decay rates of Adam that adversarial training is usually run with (Radford et al. 2016)."""


def build(
    image_shape: tuple[int, int, int],
    names: Sequence[str],
    *,
    latent: int,
    width: int,
    features: int,
    adversarial_weight: float,
    attribute_weight: float,
) -> nn.Module:
    """Mapper whose movable dimensions are the A conditions `names`, each between 0 and 1; `latent` more stay put.

    `adversarial_weight` and `attribute_weight` weigh the discriminator's verdict, and its naming of the attributes,
    against reconstruction in nats per pixel; `width` and `features` as in beta_vae.
    """
    import torch
    from torch import nn

    if not names:
        raise InputError("mapper kind 'conditional' needs attributes; give the dataset that it is trained on some")
    count = len(names)

    class Conditional(nn.Module):
        """Codes are the conditions followed by what the encoder found."""

        limits = (0.0, 1.0)

        def __init__(self) -> None:
            super().__init__()
            self.names = list(names)
            self.encoder = encoder(image_shape, features, width=width)
            self.residue = nn.Linear(features, latent)
            self.decoder = decoder(image_shape, count + latent, features, width=width)
            self.critic = nn.Sequential(encoder(image_shape, features, width=width), nn.Linear(features, 1 + count))

        def encode(self, images: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
            """Codes, and the whole range of each attribute in place of a posterior deviation."""
            found = torch.tanh(self.residue(self.encoder(images)))
            return torch.cat([conditions, found], dim=1), torch.ones_like(conditions)

        def decode(self, codes: Tensor) -> Tensor:
            """Images with the attributes that the first columns say."""
            return torch.sigmoid(self.decoder(codes))

        def trainer(self, learning_rate: float, generator: torch.Generator) -> _Trainer:
            """See gfscore.projection.mappers."""
            weights = {"adversarial": adversarial_weight, "attribute": attribute_weight}
            return _Trainer(self, learning_rate, generator, weights=weights)

    return Conditional()


class _Trainer:
    losses = ("reconstruction", "discriminator", "attributes")

    def __init__(
        self, network: Any, learning_rate: float, generator: torch.Generator, *, weights: Mapping[str, float]
    ) -> None:
        import torch

        self.network, self.generator, self.weights = network, generator, weights
        own = [value for name, value in network.named_parameters() if not name.startswith("critic.")]
        self.maker = torch.optim.Adam(own, lr=learning_rate, betas=MOMENTUM)
        self.judge = torch.optim.Adam(network.critic.parameters(), lr=learning_rate, betas=MOMENTUM)
        self.parts = {"network": network, "maker": self.maker, "judge": self.judge}

    def step(self, images: Tensor, conditions: Tensor) -> tuple[float, float, float]:
        """One step of the discriminator, then one of encoder and decoder; a missing condition is NaN."""
        import torch
        from torch.nn import functional

        known = ~torch.isnan(conditions)
        own = torch.where(known, conditions, 0.5)
        # Attributes of another sample, so that the discriminator sees combinations that occur.
        order = torch.randperm(len(images), generator=self.generator).to(images.device)
        codes, _ = self.network.encode(images, own)
        count = own.shape[1]
        made = self.network.decode(torch.cat([own[order], codes[:, count:]], dim=1))

        real, false = self.network.critic(images), self.network.critic(made.detach())
        judged = functional.relu(1 - real[:, 0]).mean() + functional.relu(1 + false[:, 0]).mean()
        named = _named(real[:, 1:], own, known)
        self.judge.zero_grad()
        (judged + named).backward()
        self.judge.step()

        verdict = self.network.critic(made)
        misfit = functional.binary_cross_entropy(self.network.decode(codes), images)
        moved = _named(verdict[:, 1:], own[order], known[order])
        self.maker.zero_grad()
        loss = misfit - self.weights["adversarial"] * verdict[:, 0].mean() + self.weights["attribute"] * moved
        loss.backward()
        self.maker.step()
        return misfit.item(), judged.item(), moved.item()


def _named(logits, conditions, known):
    # Cross-entropy of the attributes that are known, mean over them.
    from torch.nn import functional

    losses = functional.binary_cross_entropy_with_logits(logits, conditions, reduction="none") * known
    return losses.sum() / known.sum().clamp(min=1)
