"""Aggregate scores against a factor on every logit, which no decision depends on."""

from dataclasses import replace
from functools import partial

from gfscore.show.charts.logit_shift_sensitivity import CHART as SHIFT
from gfscore.show.charts.logit_shift_sensitivity import draw, sensitivity_curves

CHART = replace(
    SHIFT,
    name="logit_scale_sensitivity",
    title="Sensitivity to the scale of the logits",
    question="Does the score depend on the scale of the logits?",
    data=partial(sensitivity_curves, change="scale"),
    draw=partial(draw, title="factor on every logit (log scale)", log=True),
    shows="Aggregate score when every logit is multiplied by the same factor",
    order=9,
    figure=False,
)
