"""Places of the models by FP as lambda grows, with the exact lambdas at which two of them change places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.names import enumeration, model_labels, shortened, shortened_all
from gfscore.core.numbers import number, percent, setting
from gfscore.show.figures.grid import identity
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    INK,
    MUTED,
    PAPER,
    RULE,
    counted,
    drawing,
    framed_figure,
    laid_out,
    quiet,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_MARKED = 14
MOST_DRAWN = 400
"""Swaps that lines are drawn through; of more, so many that lie evenly among them: no eye tells the difference."""
MOST_NAMED = 3
LONGEST = 28
LEAST_RANGE = 1.0


def fp_reranking(summary: pd.DataFrame, swaps: pd.DataFrame, measure: Measure, *, fp_lambda: float) -> Figure:
    """Place of each model by FP(lambda) = class mean - lambda RDI, for lambda from 0 to 1 or more.

    Takes model_summary and lambda_swaps rows of one measure at T = 1, that measure, and the audit's lambda of FP.
    """
    rows = summary.assign(label=model_labels(summary))
    end = max(LEAST_RANGE, 2 * fp_lambda)
    inside = np.unique(swaps.loc[swaps["fp_lambda"] <= end, "fp_lambda"])
    drawn = inside[np.unique(np.linspace(0, len(inside) - 1, min(len(inside), MOST_DRAWN)).astype(int))]
    edges = np.concatenate([[0.0], drawn, [end]])
    between = (edges[:-1] + edges[1:]) / 2
    places = np.column_stack([_places(rows, lam) for lam in between])
    chosen = _places(rows, fp_lambda)
    moved = np.flatnonzero(places[:, 0] != chosen)
    beyond = len(swaps) - int((swaps["fp_lambda"] <= end).sum())
    with drawing():
        figure = framed_figure(
            min(30, 0.27 * len(rows) + 1.0),
            title=_sentence(rows, swaps, moved, fp_lambda=fp_lambda),
            subtitle=f"{measure.title}, {identity(summary)}; {counted(len(rows), 'model')}. Place by "
            "FP = class mean \u2212 \u03bb \u00d7 RDI, the best on top.",
            note=f"Dashed line: \u03bb = {setting(fp_lambda)}, the audit's. Marks below: the exact \u03bb of every swap"
            + (f"; {beyond:,} more beyond {setting(end)}" if beyond else "")
            + f". Thick lines change places between 0 and {setting(fp_lambda)}. Places are of the values measured: "
            + _overlap(rows, fp_lambda=fp_lambda),
        )
        axes = figure.subplots()
        for row, label in enumerate(rows["label"]):
            _line(axes, places[row], edges, label, moved=row in moved)
        axes.axvline(fp_lambda, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        axes.plot(
            inside, np.zeros(len(inside)), "|", color=INK, markersize=9, clip_on=False,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
        if len(inside) <= MOST_MARKED:
            _mark(axes, places, inside)
        names = shortened_all(rows["label"], 30)
        _name_places(axes, names, places[:, 0], side="left")
        _name_places(axes.twinx(), names, places[:, -1], side="right")
        for each in figure.axes:
            each.set_ylim(len(rows) + 0.6, 0.4)
            quiet(each, grid="x")
            each.spines[["left", "right"]].set_visible(False)
        axes.set_xlim(0, end)
        axes.set_xlabel("\u03bb, weight of RDI in FP (0: class mean alone; no unit)")
        return laid_out(figure)


def _places(rows, lam):
    # Ordered by value, then by name, so that ties do not depend on the order of the table.
    fp = (rows["class_mean"] - lam * rows["rdi"]).to_numpy()
    order = np.lexsort((rows["label"].to_numpy(dtype=str), -fp))
    places = np.empty(len(rows), dtype=int)
    places[order] = np.arange(1, len(rows) + 1)
    return places


def _line(axes, places, edges, label, *, moved):
    # Level between swaps; a change of place slants around its lambda, no wider than the stretches beside it.
    lengths = np.diff(edges)
    x, y = [edges[0]], [places[0]]
    for index in range(1, len(places)):
        if places[index] != places[index - 1]:
            half = min(0.012 * edges[-1], 0.5 * lengths[index - 1], 0.5 * lengths[index])
            x += [edges[index] - half, edges[index] + half]
            y += [places[index - 1], places[index]]
    x.append(edges[-1])
    y.append(places[-1])
    style = {"color": CONTRAST, "linewidth": 2.4} if moved else {"color": ACCENT, "linewidth": 1.4, "alpha": 0.55}
    axes.plot(x, y, solid_joinstyle="round", **style)


def _mark(axes, places, inside):
    for index, lam in enumerate(inside):
        changed = np.flatnonzero(places[:, index] != places[:, index + 1])
        if len(changed) == 0:
            continue
        axes.annotate(
            number(lam), (lam, places[changed, index].mean()), ha="center", va="center", size=7.5, color=INK,
            bbox={"facecolor": PAPER, "edgecolor": RULE, "linewidth": 0.5, "boxstyle": "round,pad=0.2"},
        ).set_in_layout(False)  # fmt: skip


def _name_places(axes, names, places, *, side):
    order = np.argsort(places)
    axes.set_yticks(
        places[order], [f"{places[index]}  {names[index]}" if side == "left" else names[index] for index in order]
    )
    axes.tick_params(length=0)


def _sentence(rows, swaps, moved, *, fp_lambda):
    total = len(rows)
    if len(swaps) == 0:
        return f"No weight of RDI changes the order of the {total} models"
    first = swaps.sort_values("fp_lambda", kind="stable").iloc[0]
    pair = enumeration([shortened(first[name], LONGEST) for name in ("before_model", "after_model")])
    if len(moved) == 0:
        return (
            f"Up to \u03bb = {setting(fp_lambda)} all {total} models keep their places; the first swap, of {pair}, "
            f"comes at {number(first['fp_lambda'])}"
        )
    names = [shortened(rows["label"].iloc[index], LONGEST) for index in moved]
    who = enumeration(names) if len(names) <= MOST_NAMED else f"{len(names)} of {total} models"
    verb = "change places" if len(names) > 1 else "changes its place"
    return (
        f"Weighing RDI with \u03bb = {setting(fp_lambda)}, {who} {verb}; "
        f"the first swap, of {pair}, comes at {number(first['fp_lambda'])}"
    )


def _overlap(rows, *, fp_lambda):
    ordered = rows.sort_values("fp", ascending=False)
    low, high = ordered["fp_low"].to_numpy()[:-1], ordered["fp_high"].to_numpy()[1:]
    known = ~(np.isnan(low) | np.isnan(high))
    apart = int((low[known] > high[known]).sum())
    confidence = percent(rows["confidence"].iloc[0])
    total = int(known.sum())
    which = "all" if apart == 0 else f"{total - apart:,} of"
    return f"at \u03bb = {setting(fp_lambda)} the {confidence} intervals of FP of {which} {total:,} neighbours overlap."
