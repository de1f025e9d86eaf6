"""CROWN-IBP: training at linear bounds between intervals (Zhang et al. 2020)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Share
from gfscore.networks.training_settings import Ball, Training, TrainingMethod
from gfscore.training.lazy import certified, objectives, torch
from gfscore.training.methods.ibp import CertifiedCoefficients


class CrownIbpCoefficients(CertifiedCoefficients):
    """Coefficients of CROWN-IBP."""

    beta: Share = Field(0, description="Weight of linear bounds against intervals at the full radius; 1 before.")


class CrownIbp(Training):
    """CROWN-IBP: as IBP, at bounds that are linear in the pixels while the box grows."""

    method: Literal["CROWN_IBP"]
    threat: Ball = Field(default_factory=Ball)
    coefficients: CrownIbpCoefficients = Field(default_factory=CrownIbpCoefficients)


def crown_ibp(setup: objectives.Setup, coefficients: CrownIbpCoefficients) -> objectives.Objective:
    """Loss of IBP at beta times the margins of CROWN with intervals in between, plus 1 - beta times interval margins.

    Parameters
    ----------
    setup : Setup
        Its threat has the box's radius, in l_inf.
    coefficients : CrownIbpCoefficients
        Coefficients of IBP, and beta, which falls from 1 as the radius grows.

    References
    ----------
    Zhang et al. 2020, "Towards stable and efficient training of verifiably robust neural networks", section 3.2 and
    equation 12.
    """

    def margins(
        graph: certified.Graph, network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, growth: float
    ) -> torch.Tensor:
        del network
        beta = 1 - (1 - coefficients.beta) * growth
        box = certified.Box.around(images, growth * setup.threat.eps)
        bounds = certified.interval_bounds(graph, box)
        intervals = certified.least_margins(graph, bounds, labels)
        if beta == 0:
            return intervals
        linear = certified.least_margins(graph, bounds, labels, through_relus=True)
        return beta * linear + (1 - beta) * intervals

    schedule = certified.Schedule(setup.epochs, coefficients.warmup, coefficients.ramp)
    return certified.certified_objective(schedule, margins, kappa=coefficients.kappa)


METHOD = TrainingMethod(
    name="CROWN_IBP",
    trains_on="as IBP, with bounds that are linear in the pixels while the box grows",
    settings=CrownIbp,
    objective=crown_ibp,
    norms=("linf",),
)
