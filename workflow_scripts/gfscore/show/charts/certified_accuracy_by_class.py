"""Certified accuracy of each class, one panel per model of at most 20."""

from __future__ import annotations

from functools import partial

from gfscore.show.charts.declaration import Chart
from gfscore.show.charts.survival_by_class import BY_CLASS, class_curves, weakest_of_models

CHART = Chart(
    name="certified_accuracy_by_class",
    title="Certified accuracy by class",
    question="For which class does a proof reach least far?",
    section="trust",
    tables=("radius_curves", "class_scores"),
    data=partial(class_curves, kind="certified"),
    form=BY_CLASS,
    finding=weakest_of_models,
    shows="{measure_title} by class: share certified to r, smoothed classifier",
    note="Thin lines: classes. Thick: the class of the smallest mean, with its lower {confidence} bound (all classes "
    "of a model together). It holds for the smoothed classifier alone.",
    per_class=True,
    order=6,
)
