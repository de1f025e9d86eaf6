"""Class values of each model around a circle, one small panel per model."""

from __future__ import annotations

from itertools import combinations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.class_heatmap import class_values, measure_range
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE

FEWEST_CLASSES = 3
MOST_CLASSES = 16
MOST_MODELS = 20
AGREE = 0.5
"""Mean rank correlation above which models agree."""


def profiles(subject: Subject) -> pd.DataFrame:
    """Class values with their intervals, beside the mean over models; 3 to 16 classes and at most 20 models."""
    rows = subject.rows("class_scores")
    few_classes = FEWEST_CLASSES <= rows["class"].nunique() <= MOST_CLASSES
    if not few_classes or rows["label"].nunique() > MOST_MODELS:
        raise NothingToDraw
    frame = class_values(subject)
    return frame.assign(mean=frame.groupby("class")["value"].transform("mean"))


def agreement_of_profiles(frame: pd.DataFrame) -> Finding:
    """Whether models agree on which classes are weak: Spearman over classes of every pair of models."""
    from gfscore.statistics.ranking import spearman

    values = frame.pivot(index="model", columns="class", values="value")
    if len(values) == 1:
        ends = {"low": float(frame["value"].min()), "high": float(frame["value"].max())}
        return Finding("best_and_worst", {"model": str(values.index[0])}, ends)

    correlations = []
    for first, second in combinations(values.to_numpy(), 2):
        rho = float(spearman(first, second))
        if not np.isnan(rho):
            correlations.append(rho)
    if not correlations:
        spread = values.max(axis=1) - values.min(axis=1)
        if (spread > TIE_TOLERANCE).any():
            return Finding("profiles_unranked")
        return Finding("classes_equal")

    mean = float(np.mean(correlations))
    numbers = {
        "rho": mean,
        "rho_low": min(correlations),
        "rho_high": max(correlations),
        "pairs": len(correlations),
    }
    return Finding("profiles_agree" if mean > AGREE else "profiles_differ", numbers=numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A small circle for each model, further out is higher."""
    top = drawing.outer_circle(float(frame["high"].max()), measure_range(frame))
    drawing.radars(
        axes,
        frame,
        panel="model",
        spoke="class",
        value="value",
        most="most",
        low="low",
        high="high",
        top=top,
        reference="mean",
    )


CHART = Chart(
    name="class_profiles",
    title="Class profiles",
    question="Are the same classes weak in every model?",
    section="class",
    tables=("class_scores",),
    about="score",
    data=profiles,
    draw=draw,
    finding=agreement_of_profiles,
    shows="{measure_title} of each class ({unit}); further out is higher, higher is better",
    note="Thin lines: simultaneous {confidence} intervals of the model's classes. Dashed line: mean over models. "
    "Triangle: lowest class of the model. The centre is 0.",
    as_failures=True,
    undecided="Shaded: what undecided samples may add.",
    per_class=True,
    order=3,
)
