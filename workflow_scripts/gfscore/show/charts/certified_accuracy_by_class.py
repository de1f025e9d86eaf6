"""Certified accuracy of each class, one panel per model of at most 20."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.survival import radius_curves
from gfscore.show.charts.survival_by_class import MOST_MODELS, weakest_of_models
from gfscore.show.forms import Axis, Curves

if TYPE_CHECKING:
    import pandas as pd


def certified_classes(subject: Subject) -> pd.DataFrame | None:
    """Certified accuracy of each class, one panel per model of at most 20."""
    frame = radius_curves(subject, "certified", by_class=True)
    return None if frame is None or frame["model"].nunique() > MOST_MODELS else frame


CHART = Chart(
    name="certified_accuracy_by_class",
    title="Certified accuracy by class",
    question="For which class does a proof reach least far?",
    section="trust",
    tables=("radius_curves", "class_scores"),
    data=certified_classes,
    form=Curves(
        panel="model",
        x=Axis("radius", "radius r ({short_unit})", zero=True),
        y=Axis("share", "share (higher is better)", end=1.0),
        line="class",
        low="low",
        high="high",
        bold="weakest",
        names=False,
    ),
    finding=weakest_of_models,
    shows="{measure_title} by class: share certified to r, smoothed classifier",
    note="Thin lines: classes. Thick: the class of the smallest mean, with its lower {confidence} bound (all classes "
    "of a model together). It holds for the smoothed classifier alone.",
    per_class=True,
    order=6,
)
