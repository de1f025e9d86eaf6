"""SABR: training at interval bounds in small boxes around attacked points (Mueller et al. 2023)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Number, Share
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import certified, objectives, torch
from gfscore.training.methods.ibp import CertifiedCoefficients


class SabrCoefficients(CertifiedCoefficients):
    """Coefficients of SABR."""

    kappa: Share = Field(0, description="Weight of images as they are, at the full radius; 1 before it grows.")
    size: Annotated[Number, Field(gt=0, le=1)] = Field(
        0.3, description="Radius of the small box as a share of the full one (the paper's lambda)."
    )


class Sabr(Training):
    """SABR: the loss at the least margins that intervals allow in small boxes around PGD examples."""

    method: Literal["SABR"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: SabrCoefficients = Field(default_factory=SabrCoefficients)


def sabr(setup: objectives.Setup, coefficients: SabrCoefficients) -> objectives.Objective:
    """Loss of IBP in boxes of radius lambda eps around PGD examples within (1 - lambda) eps.

    What is proven of a small box holds for a part of the ball only: the loss is no bound, and leaves the network more
    accuracy than IBP does, which branch and bound may still prove.

    Parameters
    ----------
    setup : Setup
        Its threat, in l_inf, has the radius and the steps of PGD, which shrink with the region that is attacked.
    coefficients : SabrCoefficients
        Coefficients of IBP, and lambda.

    References
    ----------
    Mueller et al. 2023, "Certified training: small boxes are all you need", sections 3 and 4. Left out: the
    initialisation and the regularisation of Shi et al. 2021, boxes that shrink after ReLUs, and the l1 penalty.
    """
    size = coefficients.size

    def margins(
        graph: certified.Graph, network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, growth: float
    ) -> torch.Tensor:
        attacked = images
        if size < 1:
            reach = growth * (1 - size)
            attacked = setup.perturb(network, images, labels, radius=reach, step=reach)
        box = certified.Box.around(attacked, growth * size * setup.threat.eps)
        return certified.least_margins(graph, certified.interval_bounds(graph, box), labels)

    schedule = certified.Schedule(setup.epochs, coefficients.warmup, coefficients.ramp)
    return certified.certified_objective(schedule, margins, kappa=coefficients.kappa)


METHOD = TrainingMethod(
    name="SABR",
    trains_on="the least margins that intervals allow in small boxes around PGD examples",
    settings=Sabr,
    objective=sabr,
    norms=("linf",),
)
