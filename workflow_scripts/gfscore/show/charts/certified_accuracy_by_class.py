"""Certified accuracy of each class, one panel per model of at most 20."""

from dataclasses import replace
from functools import partial

from gfscore.show.charts.survival_by_class import CHART as SURVIVAL
from gfscore.show.charts.survival_by_class import class_curves

CHART = replace(
    SURVIVAL,
    name="certified_accuracy_by_class",
    title="Certified accuracy by class",
    question="For which class does a proof reach least far?",
    data=partial(class_curves, kind="certified"),
    shows="{measure_title} by class: share certified to r, smoothed classifier",
    note="Thin lines: classes. Thick: the class of the smallest mean, with its lower {confidence} bound (all classes "
    "of a model together). It holds for the smoothed classifier alone.",
    order=6,
)
