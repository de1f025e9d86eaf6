"""Share of all samples that is certified to a radius."""

from __future__ import annotations

from functools import partial

from gfscore.show.charts.declaration import Chart
from gfscore.show.charts.survival import extremes, radius_curves
from gfscore.show.forms import Axis, Curves

CHART = Chart(
    name="certified_accuracy",
    title="Certified accuracy",
    question="How far does a proof reach?",
    section="trust",
    tables=("radius_curves", "class_scores"),
    data=partial(radius_curves, kind="certified", by_class=False),
    form=Curves(
        x=Axis("radius", "radius r ({unit})", zero=True),
        y=Axis("share", "share certified to r (higher is better)", end=1.0),
        line="model",
        low="low",
        high="high",
        bold="weakest",
    ),
    finding=extremes,
    shows="{measure_title}: share certified to r, smoothed classifier; a lower bound on the truth, but for the draw "
    "of samples",
    note="Band: down to the lower {confidence} bound at each radius, each line by itself. It holds for the smoothed "
    "classifier, and says nothing about the classifier before smoothing.",
    order=5,
)
