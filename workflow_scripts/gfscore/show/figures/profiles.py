"""Class values of each model around a circle, one small panel per model."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.names import model_count, shortened_all
from gfscore.core.numbers import end_of_range, number, percent, signed
from gfscore.show.figures.grid import class_grid, identity, panel_names
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    GRID,
    INK,
    MUTED,
    counted,
    drawing,
    framed_figure,
    laid_out,
    panel_columns,
    panel_width,
    sample_range,
)
from gfscore.statistics.ranking import spearman

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

FEWEST_CLASSES, MOST_CLASSES, MOST_MODELS = 3, 16, 20


def drawable(scores: pd.DataFrame) -> bool:
    """Whether class profiles of these class_scores rows can be read: 3 to 16 classes, at most 20 models."""
    models = model_count(scores)
    return FEWEST_CLASSES <= scores["class_index"].nunique() <= MOST_CLASSES and models <= MOST_MODELS


def class_profiles(scores: pd.DataFrame, measure: Measure) -> Figure:
    """Radar of the class values of each model with their intervals, beside the mean over models.

    Takes class_scores rows of one measure and calibration for which `drawable` holds, and that measure.
    """
    grid = class_grid(scores)
    m, k = grid.value.shape
    columns = panel_columns(m)
    rows = -(-m // columns)
    angles = np.linspace(0, 2 * np.pi, k, endpoint=False)
    mean = grid.value.mean(axis=0)
    top = _outer_circle(np.nanmax(grid.high), measure.value_range[1])
    compared = "Grey line: mean over models. " if m > 1 else ""
    with drawing():
        figure = framed_figure(
            (0.82 * panel_width(columns) + 0.75) * rows,
            title=_sentence(grid),
            subtitle=f"{measure.title} of each class, {identity(scores)}; {counted(m, 'model')}, "
            f"{sample_range(grid.n)}. Further out is higher; higher is better.",
            note=f"Band: simultaneous {percent(scores['confidence'].iloc[0])} intervals of the model's classes. "
            f"{compared}Triangle: lowest class of the model. The centre is 0, the circles stand at "
            f"{end_of_range(top / 2)} and {end_of_range(top)} ({measure.unit}). Models by their mean over all samples.",
        )
        panels = figure.subplots(rows, columns, subplot_kw={"projection": "polar"}, squeeze=False)
        names = panel_names(grid.labels, columns)
        for index, axes in enumerate(panels.flat):
            if index >= m:
                axes.set_visible(False)
                continue
            _panel(axes, angles, grid, index, mean=mean if m > 1 else None, top=top, name=names[index])
        engine: Any = figure.get_layout_engine()
        engine.set(hspace=0.1 if rows > 1 else 0.02, wspace=0.02)
        return laid_out(figure)


def _panel(axes, angles, grid, index, *, mean, top, name):
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    value, low, high = grid.value[index], grid.low[index], grid.high[index]
    around = np.append(angles, angles[0])

    def closed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.append(values, values[0])

    axes.fill_between(around, closed(low), closed(high), color=ACCENT, alpha=0.2, linewidth=0)
    if mean is not None:
        axes.plot(around, closed(mean), color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    axes.plot(around, closed(value), color=ACCENT, linewidth=1.6)
    worst = np.flatnonzero(value == np.nanmin(value))
    axes.plot(angles[worst], value[worst], "v", color=CONTRAST, markersize=5.5)
    axes.set_ylim(0, top)
    axes.set_yticks([top / 2, top], [])
    axes.set_xticks(angles, shortened_all(grid.classes, 11), size=7.5)
    axes.tick_params(pad=-3)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        side = np.sin(angle)
        label.set_ha("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    axes.spines["polar"].set_color(GRID)
    axes.set_title(f"{name}  {number(grid.total[index])}", loc="center", size=8, color=INK, pad=10)


def _sentence(grid):
    m = len(grid.models)
    if m == 1:
        spread = np.nanmax(grid.value) - np.nanmin(grid.value)
        return f"{grid.models[0]}: best and worst class are {number(spread)} apart"
    pairs = [float(spearman(grid.value[a], grid.value[b])) for a, b in combinations(range(m), 2)]
    known = [rho for rho in pairs if not np.isnan(rho)]
    if not known:
        return "The classes of a model have equal values, so that there is no order of classes to compare"
    mean = float(np.mean(known))
    verb = "agree on" if mean > 0.5 else "agree little on" if mean > 0 else "do not agree on"
    return (
        f"Models {verb} which classes are weak: mean Spearman {signed(mean)} "
        f"over {counted(len(known), 'pair')} of models ({signed(min(known))} to {signed(max(known))})"
    )


def _outer_circle(highest, end):
    # The end of the range where the values come near it, else a round number above them.
    if highest > end / 2:
        return float(end)
    power = 10.0 ** np.floor(np.log10(max(highest, 1e-9)))
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * (1 - 1e-9)))
