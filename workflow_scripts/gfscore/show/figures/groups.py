"""Values of groups of samples: by attribute and model, and by class within group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.core.class_names import classes_of
from gfscore.core.names import class_phrase, model_count, model_labels, printable, shortened_all
from gfscore.core.numbers import number, percent
from gfscore.show.figures.cells import (
    bare,
    colour_bar,
    colours,
    mark_cells,
    name_columns,
    name_some_columns,
    number_cells,
    separate_cells,
)
from gfscore.show.figures.heatmap import colour_limits
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    MUTED,
    PAPER,
    counted,
    drawing,
    framed_figure,
    laid_out,
    quiet,
)
from gfscore.show.words.group_words import group_gaps, sure_gaps, widest_attributes, widest_gap

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_ATTRIBUTES, MOST_MODELS, IN_ROW = 8, 40, 4
MOST_ROWS, MOST_NUMBERED, MOST_NAMED = 40, 16, 60
COLOURS = (ACCENT, CONTRAST, "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6b4ca0")
MARKS = "osD^vP*"


def group_score_plot(scores: pd.DataFrame, measure: Measure) -> Figure:
    """Value of each group with its interval: a panel per attribute, a row per model.

    Takes group_scores rows of one measure, and that measure. Beyond 8 attributes those with the largest differences are
    drawn, beyond 40 models those with the highest values.
    """
    whole, gaps = scores[scores["class_index"] == ALL], group_gaps(scores)
    attributes = widest_attributes(gaps, MOST_ATTRIBUTES)
    models = gaps.assign(label=model_labels(gaps)).groupby("label", sort=False)["value"].mean()
    order = models.sort_values(ascending=False, kind="stable").index[:MOST_MODELS].tolist()
    whole = whole.assign(label=model_labels(whole))
    columns = min(IN_ROW, len(attributes))
    lines = -(-len(attributes) // columns)
    left_out = gaps["attribute"].nunique() - len(attributes)
    with drawing():
        figure = framed_figure(
            lines * (0.27 * len(order) + 1.35),
            title=widest_gap(gaps),
            subtitle=f"{measure.title} of each group, {scores['measure'].iloc[0]}, {scores['dataset'].iloc[0]}; "
            f"{counted(len(order), 'model')}, highest value on top. Further right is better; marks on one spot: "
            "groups treated alike.",
            note=f"{sure_gaps(gaps)}. Thin lines: {percent(scores['confidence'].iloc[0])} intervals, joint over the "
            "groups of an attribute. Hollow: fewer samples than the audit's smallest cell."
            + (f" {counted(left_out, 'attribute')} with smaller differences left out." if left_out else ""),
        )
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, attribute in zip(panels, attributes, strict=False):
            _panel(axes, whole[whole["attribute"] == attribute], order, measure)
            axes.set_title(shortened_all([attribute], 28)[0], pad=22)
        for axes in panels[len(attributes) :]:
            axes.set_visible(False)
        panels[0].set_yticks(range(len(order)), shortened_all(order, 26))
        panels[0].set_ylim(len(order) - 0.4, -0.6)
        return laid_out(figure)


def _panel(axes, rows, order, measure):
    names = rows.drop_duplicates("group_index").sort_values("group_index")["group"].tolist()
    step = 0.56 / max(len(names), 2)
    for index, name in enumerate(names):
        own = rows[rows["group"] == name].set_index("label").reindex(order)
        y = np.arange(len(order)) + step * (index - (len(names) - 1) / 2)
        colour, mark = COLOURS[index % len(COLOURS)], MARKS[index % len(MARKS)]
        known = (own["n"] > 0).to_numpy()
        axes.hlines(y[known], own["low"][known], own["high"][known], color=colour, alpha=0.35, linewidth=1.1)
        small = own["small"].to_numpy(dtype=bool, na_value=False)
        for chosen, face in ((known & ~small, colour), (known & small, PAPER)):
            axes.plot(
                own["value"][chosen],
                y[chosen],
                mark,
                color=colour,
                markerfacecolor=face,
                markersize=4.8,
                linestyle="none",
            )
    marks = [
        axes.plot([], [], MARKS[i % len(MARKS)], color=COLOURS[i % len(COLOURS)], markersize=4.8, linestyle="none")[0]
        for i in range(len(names))
    ]
    axes.legend(
        marks, shortened_all(names, 12), loc="lower left", bbox_to_anchor=(-0.03, 1.0), ncols=4, handletextpad=0.1,
        columnspacing=0.7, borderpad=0, fontsize=7.5,
    )  # fmt: skip
    axes.set_xlabel(measure.unit.split(",")[0], size=8)
    axes.locator_params(axis="x", nbins=4)
    quiet(axes, grid="x")
    axes.spines["left"].set_visible(False)


def group_class_heatmap(scores: pd.DataFrame, measure: Measure) -> Figure:
    """Values by group (rows, attribute after attribute) and class (columns), mean over models.

    Takes group_scores rows of one measure, and that measure. Attributes with the largest differences between groups are
    drawn, as many as fit into 40 rows. Cells without samples are grey, small ones marked.
    """
    gaps = group_gaps(scores)
    attributes = _fitting(scores, gaps)
    cells = scores[(scores["class_index"] != ALL) & scores["attribute"].isin(attributes)]
    key = ["attribute", "group_index"]
    over_models = cells.groupby([*key, "class_index"], sort=False)
    table, small = (
        over_models[name].agg(how).unstack(sort=False) for name, how in (("value", "mean"), ("small", "max"))
    )
    small = small.to_numpy(dtype=bool)
    classes = classes_of(cells)
    names = cells.drop_duplicates(key).set_index(key)["group"]
    values, models = table.to_numpy(dtype=float), model_count(cells)
    labels = [f"{attribute}: {names[attribute, group]}" for attribute, group in table.index]
    with drawing():
        figure = framed_figure(
            0.28 * len(values) + 1.1,
            title=_widest_within_class(np.where(small, np.nan, values), table.index, names, classes),
            subtitle=f"{measure.title} by group and class, {scores['measure'].iloc[0]}, {scores['dataset'].iloc[0]}; "
            f"mean over {counted(models, 'model')}; at most {int(cells['n'].max()):,} samples per cell. Dark is "
            "low, bright is high; higher is better.",
            note="Compare the rows of one attribute within a column: equal colours, the class is treated alike. "
            "Dot: fewer samples than the audit's smallest cell, a value that says little and is left out of the title. "
            "Grey: no samples.",
        )
        axes = figure.subplots()
        image = axes.imshow(
            values, cmap=colours(), interpolation="nearest", aspect="auto", **colour_limits(values, measure)
        )
        axes.set_yticks(range(len(labels)), shortened_all(labels, 30))
        if len(classes) > MOST_NAMED:
            name_some_columns(axes, shortened_all(classes, 18), label=f"{len(classes):,} classes")
        else:
            name_columns(axes, shortened_all(classes, 18), room=62)
            separate_cells(axes, *values.shape)
            mark_cells(axes, small & ~np.isnan(values))
        bare(axes)
        if len(classes) <= MOST_NUMBERED:
            number_cells(axes, values, image, number, size=8)
        starts = [i for i in range(1, len(labels)) if table.index[i][0] != table.index[i - 1][0]]
        for start in starts:
            axes.axhline(start - 0.5, color=MUTED, linewidth=2)
        colour_bar(figure, image, axes, measure.unit, aspect=max(16, 2 * len(values)))
        return laid_out(figure)


def _fitting(scores, gaps):
    most = gaps["attribute"].nunique()
    sizes = scores.groupby("attribute", sort=False)["group_index"].nunique()
    while most > 1 and sizes[widest_attributes(gaps, most)].sum() > MOST_ROWS:
        most -= 1
    return widest_attributes(gaps, most)


def _widest_within_class(values, index, names, classes):
    # Largest difference between two groups of one attribute within a class; small cells are NaN.
    best: tuple[float, Any] = (0.0, None)
    compared = False
    attributes = np.array([attribute for attribute, _ in index])
    for attribute in dict.fromkeys(attributes):
        rows = np.flatnonzero(attributes == attribute)
        for k in range(values.shape[1]):
            known = rows[~np.isnan(values[rows, k])]
            compared |= len(known) > 1
            if len(known) > 1 and np.ptp(values[known, k]) > best[0]:
                ends = known[values[known, k].argmin()], known[values[known, k].argmax()]
                best = (np.ptp(values[known, k]), (attribute, k, *ends))
    if best[1] is None:
        return (
            "No two groups of a class differ" if compared else "No class has two groups with enough samples to compare"
        )
    attribute, k, low, high = best[1]
    both = (f"{printable(names[index[row]])} {number(values[row, k])}" for row in (low, high))
    return f"Within {class_phrase(classes[k])} groups by {printable(attribute)} differ most: {', '.join(both)}"
