"""Which class is taken for which: confusion matrices of single models and their mean over models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.classwise.confusion import mean_confusion, row_shares
from gfscore.audit.classwise.confusion_rows import confusion_matrices
from gfscore.core.class_names import classes_of
from gfscore.core.names import capitalised, class_phrase, model_count, model_labels, shortened_all
from gfscore.core.numbers import number
from gfscore.show.figures.cells import bare, colour_bar, colours, known_to, name_columns, number_cells, separate_cells
from gfscore.show.figures.grid import panel_names
from gfscore.show.figures.style import (
    ACCENT,
    INK,
    counted,
    drawing,
    framed_figure,
    laid_out,
    panel_columns,
    panel_width,
    quiet,
    sample_range,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_CLASSES, MOST_NUMBERED = 40, 16
MOST_MODELS = 20
LISTED = 25
SMALLEST_SHARE = 0.0005


def confusion_figures(confusions: pd.DataFrame, errors: pd.DataFrame, measure: Measure) -> Iterator[tuple[str, Figure]]:
    """Yield (name, Figure) of the confusions of one measure: mean over models, single models, or most frequent pairs.

    Takes confusions rows and class_errors rows, all conditions together, of one measure, and that measure. Up to 40
    classes there are matrices, of single models up to 20 models; beyond, the most frequent pairs.
    """
    names = classes_of(errors)
    if len(names) > MOST_CLASSES:
        yield "confused_pairs", _pairs_figure(_pairs(confusions, errors), names, errors, measure)
        return
    counts = confusion_matrices(confusions, len(names))
    yield "confusion", _mean_figure(counts, names, errors, measure)
    if 1 < len(counts) <= MOST_MODELS:
        shares = {label: row_shares(matrix) for label, matrix in counts.items()}
        yield "confusion_models", _models_figure(shares, names, errors, measure)


def _mean_figure(counts, names, errors, measure):
    mean = mean_confusion(counts.values())
    k = len(names)
    size = min(6.2, 1.2 + 0.42 * k) if k <= MOST_NUMBERED else 6.4
    with drawing():
        figure = framed_figure(
            size,
            title=_sentence(mean, names, models=len(counts)),
            subtitle=f"Confusion matrix{_over(len(counts))}; {_what(errors, measure)}.",
            note=_note(errors, measure),
        )
        axes = figure.subplots()
        image = _matrix(axes, mean, names)
        axes.set_ylabel("true class")
        axes.set_xlabel("predicted class")
        colour_bar(figure, image, axes, "share of the true class taken for another (lower is better)")
        return laid_out(figure)


def _models_figure(shares, names, errors, measure):
    columns = panel_columns(len(shares))
    rows = -(-len(shares) // columns)
    top = max(_off_diagonal(matrix).max() for matrix in shares.values())
    worst = max(shares, key=lambda label: _off_diagonal(shares[label]).max())
    true, guess = np.unravel_index(np.argmax(_off_diagonal(shares[worst])), shares[worst].shape)
    with drawing():
        figure = framed_figure(
            (panel_width(columns) + 0.3) * rows,
            title=f"The most frequent confusion of any model: {shortened_all([worst], 30)[0]} takes "
            f"{class_phrase(names[true])} for {class_phrase(names[guess])} in {number(top)} of the cases",
            subtitle=f"Confusion matrix of each of {counted(len(shares), 'model')}; {_what(errors, measure)}. "
            "One colour scale for all.",
            note=_note(errors, measure, numbers=False),
        )
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in panels.flat[len(shares) :]:
            axes.set_visible(False)
        short, titles = shortened_all(names, 10), panel_names(shares, columns)
        for index, (label, axes) in enumerate(zip(shares, panels.flat, strict=False)):
            image = _image(axes, shares[label], top=top)
            bare(axes)
            axes.set_title(titles[index], size=8)
            shown = range(len(names)) if len(names) <= MOST_NUMBERED else []
            axes.set_xticks(
                shown, [short[place] for place in shown], rotation=90 if max(map(len, short)) > 2 else 0, size=7
            )
            axes.set_yticks(shown, [short[place] for place in shown], size=7)
            axes.tick_params(labelbottom=index + columns >= len(shares))
            if index % columns == 0:
                axes.set_ylabel("true class", size=8)
            if index + columns >= len(shares):
                axes.set_xlabel("predicted class", size=8)
        colour_bar(figure, image, panels, "share of the true class (lower is better)")
        return laid_out(figure)


def _over(models):
    return f", mean over {counted(models, 'model')}" if models > 1 else ""


def _share(value):
    # Decimals alike in all cells, so that they compare at a glance.
    if value == 0:
        return "0"
    return f"{value:.3f}" if value >= SMALLEST_SHARE else "<.001"


def _matrix(axes, matrix, names):
    numbered = len(names) <= MOST_NUMBERED
    image = _image(axes, matrix, top=_off_diagonal(matrix).max())
    separate_cells(axes, *matrix.shape)
    name_columns(axes, shortened_all(names, 16), room=70)
    axes.set_yticks(range(len(names)), shortened_all(names, 20), size=8.5 if numbered else 7.5)
    bare(axes)
    if numbered:
        errors = np.where(_off_diagonal(matrix) > 0, matrix, np.nan)
        np.fill_diagonal(errors, np.nan)
        number_cells(axes, errors, image, _share, size=8)
        for index, value in enumerate(np.diag(matrix)):
            if not np.isnan(value):
                axes.text(
                    index, index, _share(value), ha="center", va="center_baseline", size=8, color=INK, weight="bold"
                ).set_in_layout(False)
    return image


def _image(axes, matrix, *, top):
    shown = np.array(matrix)
    np.fill_diagonal(shown, np.nan)
    return axes.imshow(shown, cmap=colours(), vmin=0, vmax=top or 1, interpolation="nearest", aspect="auto")


def _off_diagonal(matrix):
    errors = np.nan_to_num(matrix)
    return errors - np.diag(np.diag(errors))


def _what(errors, measure):
    return (
        f"{measure.title}, {errors['measure'].iloc[0]}, {errors['dataset'].iloc[0]}; "
        f"{sample_range(errors['n'].to_numpy())}"
    )


def _note(errors, measure, *, numbers=True):
    diagonal = "Grey diagonal: recall, the share that is recognised" if numbers else "Grey: recognised"
    empty = "Cells without a number: 0. " if numbers else ""
    return f"{diagonal}. Rows sum to 1. {empty}{_precision(errors, measure)}"


def _precision(errors, measure):
    n = errors.loc[errors["n"] > 0, "n"].min()
    if measure.several_copies:
        return f"{int(n):,} or more disturbed copies in each row; copies of one sample are not independent."
    return f"Each cell alone, on {int(n):,} independent samples of its row, is {known_to(n)}."


def _sentence(mean, names, *, models):
    errors = _off_diagonal(mean)
    if errors.max() == 0:
        return "No class is ever taken for another"
    true, guess = np.unravel_index(np.argmax(errors), errors.shape)
    return _most_often(names[true], names[guess], errors[true, guess], models=models)


def _most_often(true, guess, share, *, models):
    return capitalised(
        f"{class_phrase(true)} is most often taken for {class_phrase(guess)}: "
        f"in {number(share)} of the cases{_over(models)}"
    )


def _pairs(confusions, errors):
    # Mean share over models of every pair that occurs, largest first; models that never make it count as 0.
    n = errors.set_index(["dataset", "threat", "model", "class_index"])["n"]
    wrong = confusions[confusions["true_index"] != confusions["predicted_index"]]
    keys = list(wrong[["dataset", "threat", "model", "true_index"]].itertuples(index=False, name=None))
    shares = wrong.assign(share=wrong["count"].to_numpy() / n.loc[keys].to_numpy(), label=model_labels(wrong))
    models = model_count(errors)
    table = shares.pivot_table(index=["true_index", "predicted_index"], columns="label", values="share", fill_value=0)
    table["mean"] = table.sum(axis=1) / models
    return table.sort_values("mean", ascending=False, kind="stable")


def _pairs_figure(table, names, errors, measure):
    listed = table.head(LISTED)
    models = model_count(errors)
    short = shortened_all(names, 26)
    y = np.arange(len(listed))
    (true, guess), share = listed.index[0], listed["mean"].iloc[0]
    with drawing():
        figure = framed_figure(
            0.25 * len(listed) + 0.9,
            title=_most_often(names[true], names[guess], share, models=models),
            subtitle=f"The {len(listed)} most frequent of {len(table):,} confusions that occur; "
            f"{_what(errors, measure)}.",
            note=f"Bar: mean over {counted(models, 'model')}. Dot: one model. " + _precision(errors, measure),
        )
        axes = figure.subplots()
        axes.barh(y, listed["mean"], height=0.62, color=ACCENT, alpha=0.3, linewidth=0)
        for label in listed.columns.drop("mean"):
            axes.plot(listed[label], y, "o", color=INK, markerfacecolor="none", markersize=4, markeredgewidth=0.8)
        axes.set_yticks(y, [f"{short[a]} \u2192 {short[b]}" for a, b in listed.index])
        axes.set_ylim(len(listed) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("share of the true class that is taken for the other (lower is better)")
        quiet(axes, grid="x")
        axes.spines["left"].set_visible(False)
        return laid_out(figure)
