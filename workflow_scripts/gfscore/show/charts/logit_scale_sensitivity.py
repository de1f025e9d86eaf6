"""Aggregate scores against a factor on every logit, which no decision depends on."""

from __future__ import annotations

from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.logit_shift_sensitivity import changed, largest_change
from gfscore.show.forms import Axis, Curves, Frame


def scaled(subject: Subject) -> Frame | None:
    """Aggregate score of each model against a factor on all its logits (see `changed`)."""
    return changed(subject, "scale", ("shift", 0))


CHART = Chart(
    name="logit_scale_sensitivity",
    title="Sensitivity to the scale of the logits",
    question="Does the score depend on the scale of the logits?",
    section="trust",
    tables=("sensitivity",),
    about="audit",
    data=scaled,
    form=Curves(
        panel="measure",
        x=Axis("change", "factor on every logit (log scale)", log=True),
        y=Axis("value", "aggregate score (higher is better)", zero=True),
        line="model",
        bold="most",
        points=True,
    ),
    finding=largest_change,
    shows="Aggregate score when every logit is multiplied by the same factor",
    note="The classifier decides the same at every change. Values on the samples at hand; no intervals, since the "
    "samples are the same throughout. Thick line: the model that moves furthest from its value on the logits "
    "as they are. Of more than 30 models those that move most.",
    order=9,
    figure=False,
)
