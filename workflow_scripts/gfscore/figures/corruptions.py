"""Recall of each class under each kind of corruption."""

import numpy as np

from gfscore.class_names import classes_of
from gfscore.figures.cells import (
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
from gfscore.figures.style import counted, drawing, framed_figure, laid_out, sample_range
from gfscore.names import class_phrase, model_count, shortened_all
from gfscore.numbers import number

MOST_NUMBERED, MOST_NAMED = 16, 60


def corruption_by_class(rows, measure):
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
    row, column = np.unravel_index(np.nanargmin(values), values.shape)
    hardest = np.nanmean(values, axis=1)
    kind = str(kinds[int(np.argmin(hardest))]).replace("_", " ")
    low = np.nanargmin(values, axis=1)
    most = int(np.bincount(low, minlength=len(names)).argmax())
    times = int((low == most).sum())
    deepest = "" if most == column else f" for {class_phrase(names[column])}"
    return (
        f"{kind.capitalize()} costs most recall (to {number(hardest.min())}); "
        f"{class_phrase(names[most])} is the weakest class under {times} of {len(values)} corruptions, "
        f"down to {number(values[row, column])}{deepest}"
    )
