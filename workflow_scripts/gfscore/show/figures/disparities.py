"""Figures with one mark per model: score against RDI, and the disparity metrics side by side."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.metrics import FIRST
from gfscore.core.names import model_labels, shortened_all
from gfscore.core.numbers import percent, setting
from gfscore.show.figures.grid import identity
from gfscore.show.figures.placement import place_labels
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    INK,
    MUTED,
    PAPER,
    counted,
    drawing,
    framed_figure,
    laid_out,
    quiet,
)
from gfscore.show.words import takeaways
from gfscore.statistics.multiplicity import SIGNIFICANT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_LABELLED = 40
# Intervals may widen the frame to this many times the spread of the points; what is longer ends in an arrow.
MOST_ZOOM = 4.0


def score_against_rdi(summary: pd.DataFrame, measure: Measure) -> Figure:
    """Aggregate against RDI, one point per model, with both intervals.

    Takes model_summary rows of one measure and calibration, and that measure. Intervals that would squeeze the
    points are cut at the frame and end in an arrow. Beyond 40 models only the outermost ones are named.
    """
    confidence = percent(summary["confidence"].iloc[0])
    x, y = summary["value"].to_numpy(), summary["rdi"].to_numpy()
    with drawing():
        figure = framed_figure(
            5.2,
            title=takeaways.score_and_rdi(summary),
            subtitle=f"{measure.title}, {identity(summary)}; {counted(len(summary), 'model')}. "
            "Best is right (higher mean) and low (classes more equal).",
            note=f"Lines: {confidence} intervals of each model, joint over its classes; an arrow marks an interval "
            "that goes on beyond the frame. RDI grows with the scale of the measure.",
        )
        axes = figure.subplots()
        axes.set_xlim(_frame(x, summary["value_low"], summary["value_high"], measure))
        axes.set_ylim(_frame(y, summary["rdi_low"], summary["rdi_high"], measure))
        _crosses(axes, summary)
        axes.plot(x, y, "o", color=ACCENT, markersize=7, markeredgecolor=PAPER, markeredgewidth=1)
        axes.set_xlabel(f"aggregate, mean over all samples ({measure.unit}; higher is better)")
        axes.set_ylabel(f"RDI, best minus worst class ({measure.unit}; lower is more equal)")
        quiet(axes, grid="both")
        laid_out(figure)
        labels = shortened_all(model_labels(summary), 30)
        shown = list(range(len(labels))) if len(labels) <= MOST_LABELLED else _outermost(x, y)
        across = np.column_stack([summary["value_low"], y, summary["value_high"], y])
        upright = np.column_stack([x, summary["rdi_low"], x, summary["rdi_high"]])
        place_labels(axes, x[shown], y[shown], [labels[index] for index in shown], lines=np.vstack([across, upright]))
        return laid_out(figure)


def _frame(values, low, high, measure):
    # Limits that show every interval whole, unless the points would then take up too little of the frame.
    spread = max(np.ptp(values), 0.05 * (measure.value_range[1] - measure.value_range[0]))
    zoom = MOST_ZOOM if len(values) > 1 else np.inf
    center = (values.max() + values.min()) / 2
    start = max(low.min(), center - zoom / 2 * spread)
    stop = min(high.max(), center + zoom / 2 * spread)
    start, stop = min(start, values.min() - 0.1 * spread), max(stop, values.max() + 0.1 * spread)
    return start - 0.03 * (stop - start), stop + 0.03 * (stop - start)


def _crosses(axes, rows):
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x, y = rows["value"].to_numpy(), rows["rdi"].to_numpy()
    line = {"color": ACCENT, "alpha": 0.28, "linewidth": 1.3}
    axes.hlines(y, rows["value_low"].clip(lower=left), rows["value_high"].clip(upper=right), **line)
    axes.vlines(x, rows["rdi_low"].clip(lower=bottom), rows["rdi_high"].clip(upper=top), **line)
    for beyond, horizontal, edge, marker in (
        (rows["value_low"] < left, True, left, "<"),
        (rows["value_high"] > right, True, right, ">"),
        (rows["rdi_low"] < bottom, False, bottom, "v"),
        (rows["rdi_high"] > top, False, top, "^"),
    ):
        if beyond.any():
            at = np.full(beyond.sum(), edge)
            ends = (at, y[beyond]) if horizontal else (x[beyond], at)
            (marks,) = axes.plot(
                *ends, marker, linestyle="none", color=ACCENT, alpha=0.55, markersize=4.5, clip_on=False
            )
            marks.set_in_layout(False)


def _outermost(x, y):
    found = {int(index) for values in (x, -x, y, -y) for index in np.argsort(values, kind="stable")[:5]}
    return sorted(found)


PANELS = tuple(metric for metric in FIRST if metric.kind != "level")
"""Metrics of which each has a panel: as many as a page is wide."""


def disparity_bars(
    summary: pd.DataFrame, measure: Measure, *, fp_lambda: float, guessing: Collection[str] = ()
) -> Figure:
    """RDI, NRGC, WCR and FP of each model with their intervals and what chance alone gives.

    Takes model_summary rows of one measure and calibration, that measure, lambda of FP, and `guessing` as
    takeaways.disparity does. Models are sorted by aggregate value.
    """
    ordered = summary.assign(label=model_labels(summary)).sort_values(
        ["value", "label"], ascending=[False, True], ignore_index=True
    )
    confidence = percent(summary["confidence"].iloc[0])
    y = np.arange(len(ordered))
    with drawing():
        figure = framed_figure(
            0.27 * len(ordered) + 0.95,
            title=takeaways.disparity(summary, guessing=guessing),
            subtitle=f"{measure.title}, {identity(summary)}; {counted(len(summary), 'model')}, "
            "highest aggregate on top.",
            note=f"Thin line: {confidence} interval, joint over the model's classes. Upright tick: what chance alone "
            "gives, the mean when class membership is shuffled; a disparity near it is no evidence of unequal "
            "classes. Above chance, in the title: interval of RDI above 0, and permutation p of classes with one "
            f"distribution of values at most {setting(SIGNIFICANT)} after Holm's adjustment for the number "
            f"of models. FP = class mean \u2212 {setting(fp_lambda)} \u00d7 RDI.",
        )
        panels = figure.subplots(1, len(PANELS), sharey=True)
        for axes, metric in zip(panels, PANELS, strict=True):
            _bars(axes, ordered, y, metric.name)
            axes.set_title(metric.title)
            unit = "no unit" if metric.unitless else measure.unit.split(",")[0]
            axes.set_xlabel(f"{unit}; {metric.better}", size=8)
            quiet(axes, grid="x")
            axes.spines["left"].set_visible(False)
            axes.locator_params(axis="x", nbins=4)
        panels[0].set_yticks(y, shortened_all(ordered["label"], 32))
        panels[0].set_ylim(len(ordered) - 0.4, -0.6)
        return laid_out(figure)


def _bars(axes, rows, y, name):
    values, low = rows[name].to_numpy(), rows[f"{name}_low"]
    known = ~np.isnan(values)
    axes.barh(y[known], values[known], height=0.62, color=ACCENT, alpha=0.3, linewidth=0)
    axes.hlines(y, low, rows[f"{name}_high"], color=INK, linewidth=0.9, alpha=0.75)
    axes.plot(values[known], y[known], "o", color=ACCENT, markersize=5)
    if f"{name}_permuted" in rows:
        axes.vlines(rows[f"{name}_permuted"], y - 0.36, y + 0.36, color=CONTRAST, linewidth=2)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    for row in y[~known]:
        axes.annotate(
            "undefined", (0, row), xytext=(6, 0), textcoords="offset points", va="center", color=MUTED, size=8,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    if not (np.append(low, values) < 0).any():
        axes.set_xlim(left=0, right=None if known.any() else 1)
