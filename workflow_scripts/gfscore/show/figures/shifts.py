"""Aggregate scores against a constant added to every logit, which no decision depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.names import model_count, model_labels, printable, shortened, shortened_all
from gfscore.core.numbers import number
from gfscore.show.figures.placement import spread_out, text_extent
from gfscore.show.figures.style import ACCENT, CONTRAST, INK, MUTED, counted, drawing, framed_figure, laid_out, quiet
from gfscore.show.words import takeaways

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_NAMED_LINES, SOME_NAMED_LINES = 15, 8
LINE_NAME_SIZE, LINE_NAME_GAP = 8, 20


def logit_shift_sensitivity(table: pd.DataFrame) -> Figure:
    """Aggregate score of each model against a constant added to all its logits, one panel per measure.

    Takes sensitivity rows. Predictions and softmax do not change; a sigmoid score does, so its level depends on a
    constant that means nothing. Beyond 15 models only those that move most are named.
    """
    measures = list(table["measure"].unique())
    models = model_count(table)
    named = "" if models <= MOST_NAMED_LINES else f" Named: the {SOME_NAMED_LINES} models that move most."
    with drawing():
        figure = framed_figure(
            3.9,
            title=takeaways.logit_shift(table),
            subtitle=f"Aggregate score of {counted(models, 'model')} on "
            f"{printable(table['dataset'].iloc[0])} when the same constant is added to every logit.",
            note="The classifier decides the same at every shift. Values on the samples at hand; no intervals, since "
            f"the samples are the same at every shift. Thick line: the model that moves most.{named}",
        )
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        lines = {}
        for axes, measure in zip(panels, measures, strict=True):
            rows = table[table["measure"] == measure]
            lines[axes] = _shift_lines(axes, rows.assign(label=model_labels(rows)))
            moved = takeaways.largest_shift(rows)
            change = f"moves by up to {number(moved)}" if moved > takeaways.UNCHANGED else "does not move"
            axes.set_title(f"{shortened(measure, 30)}: {change}")
            axes.set_xlabel("constant added to every logit")
            quiet(axes, grid="y")
        panels[0].set_ylabel("aggregate score (higher is better)")
        panels[0].set_ylim(bottom=0)
        laid_out(figure)
        for axes, drawn in lines.items():
            _name_lines(axes, drawn)
        return laid_out(figure)


def _shift_lines(axes, rows):
    # Draws one line per model; returns (label, shifts, values), the model that moves most first.
    lines = []
    for label, model in rows.groupby("label", sort=False):
        ordered = model.sort_values("shift")
        lines.append((label, ordered["shift"].to_numpy(), ordered["value"].to_numpy()))
    lines.sort(key=lambda line: -np.ptp(line[2]))
    for index, (_, shifts, values) in enumerate(lines):
        most = index == 0 and len(lines) > 1 and np.ptp(values) > takeaways.UNCHANGED
        style = {"color": CONTRAST, "linewidth": 2.2, "zorder": 3} if most else {"color": ACCENT, "linewidth": 1.3}
        axes.plot(shifts, values, ".-", alpha=1 if most else 0.55, markersize=4, **style)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    return lines


def _name_lines(axes, lines):
    # Names stand in a column at the end where the lines are further apart, in the order of their ends.
    if len(lines) > MOST_NAMED_LINES:
        lines = [line for line in lines[:SOME_NAMED_LINES] if np.ptp(line[2]) > takeaways.UNCHANGED]
    if not lines:
        return
    ends = np.array([values[[0, -1]] for _, _, values in lines])
    side = int(np.ptp(ends[:, 1]) >= np.ptp(ends[:, 0]))
    names = shortened_all([label for label, _, _ in lines], 18)
    extents = np.array([text_extent(axes, name, LINE_NAME_SIZE) for name in names])
    first, last = min(line[1][0] for line in lines), max(line[1][-1] for line in lines)
    box = axes.get_window_extent().bounds * np.array(72 / axes.figure.dpi)
    taken = min(0.6, (extents[:, 0].max() + LINE_NAME_GAP + 4) / box[2])
    room = (last - first) * 1.03 / (1 - taken) * taken
    margin = 0.03 * (last - first)
    # Ticks belong to the data, not to the room for names.
    axes.set_xticks([tick for tick in axes.get_xticks() if first <= tick <= last])
    axes.set_xlim(first - (margin if side else room), last + (room if side else margin))
    low, high = axes.get_ylim()
    height = 1.1 * extents[:, 1].max() / box[3] * (high - low)
    places = spread_out(ends[:, side], height, low=low + height / 2, high=high - height / 2)
    leader = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 3}
    leader["relpos"] = (1 - side, 0.5)
    gap = LINE_NAME_GAP / box[2] * np.ptp(axes.get_xlim())
    for (_, shifts, _), end, name, place in zip(lines, ends[:, side], names, places, strict=True):
        x = shifts[-side]
        axes.annotate(
            name, (x, end), xytext=(x + (gap if side else -gap), place), textcoords="data",
            ha="left" if side else "right", va="center", color=INK, size=LINE_NAME_SIZE,
            arrowprops=leader,
        ).set_in_layout(False)  # fmt: skip
