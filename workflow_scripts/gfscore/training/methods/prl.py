"""Probabilistically robust learning (Robey et al. 2022)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Closed, Count, Number
from gfscore.networks.training_settings import Ball, Training, TrainingMethod
from gfscore.training.lazy import batch_pgd, gradient_ascent, objectives, torch

BISECTIONS = 30
"""Bisections of the search for alpha, which is exact to 2^-30 of the range of an image's losses."""


class PrlCoefficients(Closed):
    """Coefficients of PRL."""

    rho: Annotated[Number, Field(gt=0, le=1)] = Field(0.1, description="Share of the neighbours with the largest loss.")
    samples: Count = Field(10, description="Random neighbours per image.")


class Prl(Training):
    """Probabilistically robust learning: the mean loss of the worst share of random neighbours."""

    method: Literal["PRL"]
    threat: Ball = Field(default_factory=Ball)
    coefficients: PrlCoefficients = Field(default_factory=PrlCoefficients)


def probabilistic(setup: objectives.Setup, coefficients: PrlCoefficients) -> objectives.Objective:
    """Probabilistically robust learning: CVaR of the loss over random perturbations.

    Parameters
    ----------
    setup : Setup
        Perturbations are uniform in the ball of its threat.
    coefficients : PrlCoefficients
        The loss of an image is the mean of the largest share `rho` of the losses of its `samples` perturbations: 1 is
        the average, towards 0 the worst case.

    Raises
    ------
    InputError
        Where the share holds less than one perturbation.

    References
    ----------
    Robey et al. 2022, "Probabilistically robust learning", Algorithm 1.
    """
    rho = coefficients.rho
    samples = coefficients.samples
    if rho * samples < 1:
        raise InputError(f"PRL needs rho * samples >= 1, got rho {rho}, samples {samples}; correct them")

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        repeated = images.repeat_interleave(samples, dim=0)
        noise = batch_pgd.uniform_noise(
            repeated, norm=setup.threat.norm, eps=setup.threat.eps, generator=setup.generator
        )
        logits = network((repeated + noise).clamp(0, 1))
        losses = gradient_ascent.cross_entropy(logits, labels.repeat_interleave(samples))
        return conditional_value_at_risk(losses.reshape(len(images), samples), rho=rho).mean()

    return objectives.Objective(loss)


def conditional_value_at_risk(losses: torch.Tensor, *, rho: float) -> torch.Tensor:
    """Mean of the largest share rho of each row: min over alpha of alpha + E[(loss - alpha)_+] / rho.

    The inner problem is convex in alpha, so it is solved by bisections by the sign of the subgradient
    1 - P(loss > alpha) / rho, where the paper takes a few fixed gradient steps.

    Parameters
    ----------
    losses : Tensor of shape (n, M)
        M losses of each image.
    rho : float
        Share in (0, 1].

    Returns
    -------
    Tensor of shape (n,)

    References
    ----------
    Rockafellar and Uryasev 2000, Theorem 1; Robey et al. 2022, Algorithm 1.
    """
    count = rho * losses.shape[1]
    with torch.no_grad():
        low = losses.amin(1)
        high = losses.amax(1)
        for _ in range(BISECTIONS):
            alpha = (low + high) / 2
            # The tolerance absorbs rounding of rho * M, such as 0.3 * 10.
            rising = (losses > alpha[:, None]).sum(1) <= count + 1e-9
            low = torch.where(rising, low, alpha)
            high = torch.where(rising, alpha, high)
    # The minimum is the mean of the tail above alpha, completed to the share rho by the next loss. This form has the
    # exact gradient also for tied losses.
    tail = losses > high[:, None]
    missing = (1 - tail.sum(1) / count).clamp_min(0)
    next_loss = losses.masked_fill(tail, -float("inf")).amax(1)
    return (losses * tail).mean(1) / rho + missing * next_loss


METHOD = TrainingMethod(
    name="PRL", trains_on="the worst share of random neighbours", settings=Prl, objective=probabilistic
)
