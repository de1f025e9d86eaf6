"""Share of all samples that is certified to a radius."""

from dataclasses import replace
from functools import partial

from gfscore.show.charts.survival import CHART as SURVIVAL
from gfscore.show.charts.survival import draw, radius_curves

CHART = replace(
    SURVIVAL,
    name="certified_accuracy",
    title="Certified accuracy",
    question="How far does a proof reach?",
    data=partial(radius_curves, kind="certified", by_class=False),
    draw=partial(draw, share="share certified to r"),
    shows="{measure_title}: share certified to r, smoothed classifier; a lower bound on the truth, but for the draw "
    "of samples",
    note="Band: down to the lower {confidence} bound at each radius, each line by itself. It holds for the smoothed "
    "classifier, and says nothing about the classifier before smoothing.",
    order=5,
)
