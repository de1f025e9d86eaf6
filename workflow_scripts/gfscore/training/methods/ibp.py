"""IBP: training at interval bounds (Gowal et al. 2018)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, Share
from gfscore.networks.training_settings import Ball, Training, TrainingMethod
from gfscore.training.lazy import certified, objectives, torch


class CertifiedCoefficients(Closed):
    """Coefficients of every certified training."""

    kappa: Share = Field(0.5, description="Weight of images as they are, at the full radius; 1 before it grows.")
    warmup: Share = Field(0.1, description="Share of the epochs before the radius grows from 0.")
    ramp: Share = Field(0.6, description="Share of the epochs in which it grows to the full one.")


class Ibp(Training):
    """IBP: the loss at the least margins that intervals allow, in a box that grows."""

    method: Literal["IBP"]
    threat: Ball = Field(default_factory=Ball)
    coefficients: CertifiedCoefficients = Field(default_factory=CertifiedCoefficients)


def ibp(setup: objectives.Setup, coefficients: CertifiedCoefficients) -> objectives.Objective:
    """kappa CE(x) + (1 - kappa) CE at the least margins that interval arithmetic allows in the box around x.

    Parameters
    ----------
    setup : Setup
        Its threat has the box's radius, in l_inf.
    coefficients : CertifiedCoefficients
        The radius grows linearly, epoch by epoch, from 0 after the warm-up; kappa falls from 1 with it.

    References
    ----------
    Gowal et al. 2018, "On the effectiveness of interval bound propagation", section 3 and equation 12. The schedule is
    by epochs, where theirs is by steps; the step sizes are those of the other methods here.
    """

    def margins(
        graph: certified.Graph, network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, growth: float
    ) -> torch.Tensor:
        del network
        box = certified.Box.around(images, growth * setup.threat.eps)
        return certified.least_margins(graph, certified.interval_bounds(graph, box), labels)

    schedule = certified.Schedule(setup.epochs, coefficients.warmup, coefficients.ramp)
    return certified.certified_objective(schedule, margins, kappa=coefficients.kappa)


METHOD = TrainingMethod(
    name="IBP",
    trains_on="the least margins that intervals allow in a box that grows, and images as they are",
    settings=Ibp,
    objective=ibp,
    norms=("linf",),
)
