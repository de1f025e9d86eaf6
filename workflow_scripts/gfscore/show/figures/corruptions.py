"""Recall of each class under each kind of corruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.class_names import classes_of
from gfscore.core.names import class_phrase, model_count, shortened_all
from gfscore.core.numbers import number
from gfscore.show.figures.cells import (
    bare,
    colour_bar,
    colours,
    known_to,
    name_columns,
    name_some_columns,
    number_cells,
    number_rows,
    separate_cells,
)
from gfscore.show.figures.style import counted, drawing, framed_figure, laid_out, sample_range
from gfscore.statistics.disparity import TIE_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_NUMBERED, MOST_NAMED = 16, 60


def corruption_by_class(rows: pd.DataFrame, measure: Measure) -> Figure:
    """Recall by kind of corruption (rows) and class (columns), mean over severities and models.

    Takes class_errors rows of one measure that name a corruption, and that measure.
    """
    table = rows.groupby(["corruption", "class_index"])["recall"].mean().unstack("class_index")
    table = table.loc[table.mean(axis=1).sort_values(kind="stable").index]
    names = classes_of(rows)
    many = len(names) > MOST_NAMED
    values = table.to_numpy()
    if many:
        order = np.argsort(np.nan_to_num(values.mean(axis=0), nan=np.inf), kind="stable")
        values, names = values[:, order], [names[index] for index in order]
    models = model_count(rows)
    severities = sorted({int(value) for value in rows["severity"]})
    n = rows.loc[rows["n"] > 0, "n"]
    with drawing():
        figure = framed_figure(
            0.3 * len(values) + 1.1,
            title=_sentence(values, table.index, names),
            subtitle=f"Recall of each class, {rows['measure'].iloc[0]}, {rows['dataset'].iloc[0]}; mean over "
            f"severities {', '.join(map(str, severities))} and {counted(models, 'model')}; "
            f"{sample_range(n.to_numpy())} and "
            "severity. Dark is low, bright is high; higher is better.",
            note="Hardest corruption on top. Right column: mean over classes. "
            + ("Classes are sorted by their mean, weakest left. " if many else "")
            + f"Each cell alone is {known_to(n.min(), over=f', over the {int(n.min()):,} images of a class')}.",
        )
        axes = figure.subplots()
        image = axes.imshow(values, cmap=colours(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
        axes.set_yticks(range(len(values)), [shortened_all([name.replace("_", " ")], 26)[0] for name in table.index])
        if many:
            name_some_columns(axes, shortened_all(names, 18), label=f"rank of {len(names):,} classes by mean recall")
        else:
            name_columns(axes, shortened_all(names, 18), room=62)
            separate_cells(axes, *values.shape)
        bare(axes)
        if len(names) <= MOST_NUMBERED:
            number_cells(axes, values, image, number)
        number_rows(axes, np.nanmean(values, axis=1))
        colour_bar(figure, image, axes, "recall (share of the class)", pad=0.065)
        return laid_out(figure)


def _sentence(values, kinds, names):
    if not np.isfinite(values).any():
        return "No class has a corrupted copy"
    hardest = np.nanmean(values, axis=1)
    tied = np.flatnonzero(hardest <= np.nanmin(hardest) + TIE_TOLERANCE)
    kind = str(kinds[int(tied[0])]).replace("_", " ").capitalize()
    costs = f"{kind} costs" if len(tied) == 1 else f"{len(tied)} kinds of corruption cost"
    # A class counts under every kind of corruption where no other one is lower.
    low = values <= np.nanmin(values, axis=1, keepdims=True) + TIE_TOLERANCE
    times = low.sum(axis=0)
    most = np.flatnonzero(times == times.max())
    alone = len(most) == 1
    weakest = f"{class_phrase(names[most[0]])} has the lowest" if alone else f"{len(most)} classes have the lowest"
    deepest = np.flatnonzero((values <= np.nanmin(values) + TIE_TOLERANCE).any(axis=0))
    whose = "" if set(deepest) & set(most) else f" for {class_phrase(names[deepest[0]])}"
    return (
        f"{costs} most recall (to {number(np.nanmin(hardest))}); {weakest} under {times.max()} of {len(values)} "
        f"corruptions{'' if alone else ' each'}, down to {number(np.nanmin(values))}{whose}"
    )
