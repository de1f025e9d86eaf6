"""Which class a targeted attack turns into which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.class_names import classes_of, readable_classes
from gfscore.core.names import capitalised, class_phrase, model_count, shortened_all
from gfscore.core.numbers import number
from gfscore.show.figures.cells import bare, colour_bar, colours, known_to, name_columns, number_cells, separate_cells
from gfscore.show.figures.style import counted, drawing, framed_figure, laid_out
from gfscore.statistics.disparity import TIE_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_CLASSES, MOST_NUMBERED = 40, 16


def target_success_matrix(cells: pd.DataFrame, targets: pd.DataFrame, measure: Measure) -> Figure:
    """Success of targeted attacks by true class (rows) and target (columns), mean over models, targets' means below.

    Takes target_matrix and target_success rows of one measure with at most 40 classes, and that measure.
    """
    names = shortened_all(classes_of(targets), 16)
    k = len(names)
    mean = np.full((k, k), np.nan)
    for (source, target), success in cells.groupby(["source_index", "target_index"])["success"].mean().items():
        if source != target:
            mean[source, target] = success
    every = targets.groupby("class_index")["success"].mean().reindex(range(k)).to_numpy()
    models = model_count(targets)
    n = int(targets["n"].min())
    with drawing():
        figure = framed_figure(
            min(6.6, 1.5 + 0.42 * k),
            title=_sentence(mean, every, readable_classes(names), models=models),
            subtitle=f"Share of the true class that the attack turns into the target: {measure.title}, "
            f"{targets['measure'].iloc[0]}, {targets['dataset'].iloc[0]}; {counted(models, 'model')}"
            f"{', mean' if models > 1 else ''}. Dark is low, bright is high; lower is better.",
            note="Last row: all samples of the other classes, at least "
            f"n = {n:,}; each of these numbers alone is {known_to(n)}. Grey: the class itself, or no samples. Samples "
            "that are taken for the target without any attack count; a stronger attack may succeed more often.",
        )
        axes = figure.subplots()
        shown = np.vstack([mean, every])
        image = axes.imshow(
            shown, cmap=colours(), vmin=0, vmax=np.nanmax(shown) or 1, interpolation="nearest", aspect="auto"
        )
        separate_cells(axes, k + 1, k)
        axes.axhline(k - 0.5, color="white", linewidth=5)
        name_columns(axes, names, room=70)
        axes.set_yticks(range(k + 1), [*names, "all others"])
        axes.set_xlabel("target of the attack")
        axes.set_ylabel("true class")
        bare(axes)
        if k <= MOST_NUMBERED:
            number_cells(axes, shown, image, lambda value: f"{value:.3f}", size=8)
        colour_bar(figure, image, axes, "share of the samples (lower is better)")
        return laid_out(figure)


def drawable(targets: pd.DataFrame) -> bool:
    """Whether a matrix of these target_success rows can be read: at most 40 classes."""
    return targets["class_index"].nunique() <= MOST_CLASSES


def _sentence(mean, every, names, *, models):
    if not np.isfinite(mean).any() or np.nanmax(mean) == 0:
        return "The attack reaches no target"
    over = f", mean over {counted(models, 'model')}" if models > 1 else ""
    highest, most = np.nanmax(every), np.nanmax(mean)
    easiest = np.flatnonzero(every >= highest - TIE_TOLERANCE)
    often = np.argwhere(mean >= most - TIE_TOLERANCE)
    targets = f"{len(easiest)} classes are the easiest targets"
    if len(easiest) == 1:
        targets = f"{class_phrase(names[easiest[0]])} is the easiest target"
    turns = f"{len(often)} pairs of class and target succeed most often"
    if len(often) == 1:
        turns = f"{class_phrase(names[often[0][0]])} turns into {class_phrase(names[often[0][1]])} most often"
    return capitalised(f"{targets} ({number(highest)} of the other samples{over}); {turns} ({number(most)})")
