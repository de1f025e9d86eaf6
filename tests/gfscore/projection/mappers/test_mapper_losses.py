"""What mappers are trained on: both losses of each kind, and all of their gradients, against formulas written out."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from gfscore.projection.mappers.conditional.network import MOMENTUM
from gfscore.projection.mappers.declared import mapper_settings
from gfscore.projection.mappers.description import effects_of
from gfscore.projection.mappers.fitting import build_mapper, fit_mapper, of_network

IMAGES = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
CONDITIONS = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0], [np.nan, 1], [1, np.nan]], dtype=torch.float32)


def drawn_by(seed):
    return torch.Generator().manual_seed(seed)


def vae(beta, pixel_sd):
    return build_mapper("beta_vae", (1, 8, 8), latent=3, width=4, features=8, beta=beta, pixel_sd=pixel_sd)


def elbo_parts(network, pixel_sd):
    """Misfit and divergence in nats per image by torch's own distributions, for the noise of seed 7."""
    mean, log_variance = network.posterior_parameters(IMAGES)
    posterior = Normal(mean, (log_variance / 2).exp())
    codes = mean + posterior.stddev * torch.randn(mean.shape, generator=drawn_by(7))
    logits = network.decoder(codes)
    if pixel_sd is None:
        likelihood = Bernoulli(logits=logits, validate_args=False).log_prob(IMAGES)
    else:
        # up to the constant of the density
        likelihood = Normal(logits.sigmoid(), pixel_sd).log_prob(IMAGES) + np.log(pixel_sd * np.sqrt(2 * np.pi))
    prior = Normal(torch.zeros(3), torch.ones(3))
    return -likelihood.sum() / len(IMAGES), kl_divergence(posterior, prior).sum() / len(IMAGES)


@pytest.mark.parametrize("pixel_sd", [0.1, None], ids=["Gaussian pixels", "Bernoulli pixels"])
@pytest.mark.parametrize("beta", [1.0, 10.0])
def test_a_step_of_the_vae_is_one_on_the_evidence_lower_bound_with_beta(beta, pixel_sd):
    network = vae(beta, pixel_sd)
    copied = deepcopy(network)
    losses = network.trainer(0.01, drawn_by(7)).step(IMAGES)
    misfit, divergence = elbo_parts(copied, pixel_sd)
    assert losses == pytest.approx((misfit.item(), divergence.item()), rel=1e-5)
    (misfit + beta * divergence).backward()
    stepped = torch.optim.Adam(copied.parameters(), lr=0.01)
    assert_same_gradients(network, copied)
    stepped.step()
    for own, expected in zip(network.parameters(), copied.parameters(), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-3, atol=1e-5)


def test_a_larger_beta_presses_the_posterior_towards_the_prior(tmp_path):
    how = {"kind": "beta_vae", "latent": 3, "width": 4, "features": 8, "pixel_sd": 0.1, "epochs": 15, "batch_size": 16}
    how |= {"learning_rate": 0.01, "seed": 1, "device": "cpu", "train_on": "d", "evaluate_on": "d"}
    shades = np.linspace(0.1, 0.9, 96, dtype=np.float32)
    images = np.tile(shades[:, None, None, None], (1, 1, 8, 8))
    divergence = []
    for beta in (1, 30):
        settings = mapper_settings(how | {"beta": beta})
        _, losses = fit_mapper(images, settings, path_to_progress=tmp_path / str(beta), version="1")
        divergence.append(losses["divergence"])
    assert divergence[0] > 2 * divergence[1]


def conditional(adversarial_weight, attribute_weight):
    weights = {"adversarial_weight": adversarial_weight, "attribute_weight": attribute_weight}
    return build_mapper("conditional", (1, 8, 8), names=["a", "b"], latent=3, width=4, features=8, **weights)


def cross_entropy(logits, targets):
    chances = logits.sigmoid()
    return -(targets * chances.log() + (1 - targets) * (1 - chances).log())


def steps_by_hand(network, weights, *, seed):
    """One step of the discriminator and the gradients of the maker, by the formulas; returns the three losses."""
    known = torch.isfinite(CONDITIONS)
    own = CONDITIONS.nan_to_num(0.5)
    order = torch.randperm(len(IMAGES), generator=drawn_by(seed))
    judge = torch.optim.Adam(network.critic.parameters(), lr=0.01, betas=MOMENTUM)

    def made():
        found = network.residue(network.encoder(IMAGES)).tanh()
        return network.decoder(torch.cat([own[order], found], dim=1)).sigmoid(), found

    real, false = network.critic(IMAGES), network.critic(made()[0].detach())
    hinge = (1 - real[:, 0]).clamp(min=0).mean() + (1 + false[:, 0]).clamp(min=0).mean()
    (hinge + cross_entropy(real[:, 1:], own)[known].mean()).backward()
    judge.step()
    network.zero_grad()

    shown, found = made()
    again = network.decoder(torch.cat([own, found], dim=1))
    verdict = network.critic(shown)
    named = cross_entropy(verdict[:, 1:], own[order])[known[order]].mean()
    misfit = cross_entropy(again, IMAGES).mean()
    (misfit - weights[0] * verdict[:, 0].mean() + weights[1] * named).backward()
    return misfit.item(), hinge.item(), named.item()


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (2.0, 3.0)])
def test_a_step_of_the_conditional_mapper_is_one_of_the_discriminator_and_one_of_the_maker(weights):
    network = conditional(*weights)
    copied = deepcopy(network)
    losses = network.trainer(0.01, drawn_by(7)).step(IMAGES, CONDITIONS)
    assert losses == pytest.approx(steps_by_hand(copied, weights, seed=7), rel=1e-4)
    # What the discriminator learned, and what the maker is pulled by after that.
    for own, expected in zip(network.critic.parameters(), copied.critic.parameters(), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-3, atol=1e-5)
    for part in ("encoder", "residue", "decoder"):
        assert_same_gradients(getattr(network, part), getattr(copied, part))


def test_the_maker_is_pulled_towards_a_better_verdict():
    """Against a discriminator that stays as it is, some steps on its verdict alone raise it; without weight they do not."""
    verdicts = []
    for weight in (0.0, 100.0):
        network = conditional(weight, 0.0)
        trainer = network.trainer(0.005, drawn_by(7))
        trainer.critic_optimiser.step = lambda: None
        before = verdict_of(network)
        for _ in range(20):
            trainer.step(IMAGES, CONDITIONS)
        verdicts.append(verdict_of(network) - before)
    assert verdicts[1] > 0 and verdicts[1] > verdicts[0] + 0.01


def verdict_of(network):
    with torch.no_grad():
        codes, _ = network.encode(IMAGES, CONDITIONS.nan_to_num(0.5))
        return network.critic(network.decode(codes))[:, 0].mean().item()


def test_naming_attributes_makes_the_maker_heed_those_that_images_show_anyway(tmp_path):
    """The code alone is enough to reconstruct; only the loss of the attributes makes the condition matter."""
    bright = np.arange(128) % 2 == 0
    images = np.where(bright, 0.9, 0.2).astype(np.float32)[:, None, None, None] * np.ones((1, 1, 8, 8), np.float32)
    conditions = bright[:, None].astype(np.float32)
    how = {"kind": "conditional", "latent": 4, "width": 4, "features": 16, "adversarial_weight": 0, "epochs": 20}
    how |= {"batch_size": 16, "learning_rate": 0.005, "seed": 1, "device": "cpu", "train_on": "d", "evaluate_on": "d"}
    shifts = []
    for weight in (0, 0.5):
        given = {"conditions": conditions, "names": ["bright=yes"], "version": "1"}
        settings = mapper_settings(how | {"attribute_weight": weight})
        network, _ = fit_mapper(images, settings, path_to_progress=tmp_path / f"{weight}", **given)
        mapper = of_network(network, images, conditions)
        effects = effects_of(mapper, images, mapper.encode(images, conditions)[0], (images, conditions))
        shifts.append(next(effect["shift"] for effect in effects if effect["trait"] == "brightness"))
    assert shifts[1] > shifts[0] + 0.2


def assert_same_gradients(network, expected):
    pairs = list(zip(network.parameters(), expected.parameters(), strict=True))
    assert any(value.grad.abs().max() > 0 for _, value in pairs)
    for own, value in pairs:
        torch.testing.assert_close(own.grad, value.grad, rtol=1e-3, atol=1e-5)
