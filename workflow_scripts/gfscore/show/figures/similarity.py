"""How alike the models err, beside how alike they would look by chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.names import printable, shortened_all, without_threat
from gfscore.core.numbers import number, percent
from gfscore.show.figures.cells import bare, colour_bar, colours, name_columns, number_cells, separate_cells
from gfscore.show.figures.style import counted, drawing, framed_figure, laid_out
from gfscore.statistics.multiplicity import SIGNIFICANT, benjamini_hochberg

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_NUMBERED = 10
KINDS = {"confusion_cosine": "Confusion matrices, cosine", "error_cosine": "Errors alone, cosine"}


def similarity_matrix(rows: pd.DataFrame) -> Figure:
    """Similarity of every pair of models below the diagonal, its mean under shuffling above.

    Takes similarities rows of one measure: the cosines of the confusion matrices, and of the same without diagonal.
    """
    classes = rows["class_index"].nunique()
    rows = rows[rows["class_index"].isna()]
    models = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    names = shortened_all(without_threat(models), 24)
    place = {model: index for index, model in enumerate(models)}
    m = len(models)
    with drawing():
        figure = framed_figure(
            min(12, 0.34 * m + 2.0),
            title=_sentence(rows, names, place, classes=classes),
            subtitle=f"Cosine similarity of class-wise predictions, {printable(rows['measure'].iloc[0])}, "
            f"{printable(rows['dataset'].iloc[0])}; {counted(m, 'model')}, "
            f"n = {int(rows['n'].min()):,} shared samples. 1: the same, 0: nothing shared.",
            note="Below the diagonal: similarity of the pair. Above it: what chance gives, the mean when the second "
            "model's classes are renamed at random; a similarity near it is no evidence of a common weakness. "
            "Right panel: without the diagonal, so that being right does not count as being alike. "
            "Significantly more alike, in the title: permutation p, one-sided, by Benjamini-Hochberg over the pairs, "
            f"so that on average at most {percent(SIGNIFICANT)} of the pairs found are chance.",
        )
        panels = figure.subplots(1, len(KINDS), sharey=True)
        for axes, (kind, title) in zip(panels, KINDS.items(), strict=True):
            matrix = np.full((m, m), np.nan)
            for row in rows[rows["similarity"] == kind].itertuples():
                a, b = sorted((place[row.first], place[row.second]))
                matrix[b, a], matrix[a, b] = row.value, row.baseline
            image = axes.imshow(matrix, cmap=colours(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
            separate_cells(axes, m, m)
            name_columns(axes, names, room=30, upright_above=MOST_NUMBERED)
            axes.set_yticks(range(m), names)
            bare(axes)
            axes.set_xlabel(title, weight="bold", size=9.5, labelpad=8)
            if m <= MOST_NUMBERED:
                number_cells(axes, matrix, image, lambda value: f"{value:.3f}", size=7.5)
        colour_bar(figure, image, panels, "cosine similarity (no unit)")
        return laid_out(figure)


def _sentence(rows, names, place, *, classes):
    errors = rows[(rows["similarity"] == "error_cosine") & rows["value"].notna()]
    if errors.empty:
        return "Some models make no errors, so that there is nothing to compare"
    mean, chance = errors["value"].mean(), errors["baseline"].mean()
    average = f"cosine of errors {number(mean)} on average, {number(chance)} by chance"
    smallest = 1 / math.factorial(classes)
    if smallest > SIGNIFICANT:
        return (
            f"Whether models err more alike than by chance is not settled: renaming {classes} classes at random cannot "
            f"give a p below about {number(smallest)} ({average})"
        )
    # Holm's correction could find nothing among more than 5 pairs at 99 shuffles.
    found = errors[benjamini_hochberg(errors["p_value"], family=len(errors)) <= SIGNIFICANT]
    if found.empty:
        return f"No two models err significantly more alike than by chance: {average}"
    top = found.sort_values("value", ascending=False, kind="stable").iloc[0]
    if len(errors) == 1:
        return f"The two models err significantly more alike than by chance ({average})"
    often = f"all {len(errors)}" if len(found) == len(errors) else f"{len(found)} of {len(errors)}"
    return (
        f"{often.capitalize()} pairs of models err significantly more alike than by chance ({average}), "
        f"{names[place[top['first']]]} and {names[place[top['second']]]} most"
    )
