"""Where the errors fall: CFPS, the share of all errors that fall on each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.class_names import classes_of
from gfscore.core.names import capitalised, class_phrase, model_count, model_labels, shortened_all
from gfscore.core.numbers import number, percent
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
    sample_range,
)
from gfscore.statistics.binomial import lower_shares
from gfscore.statistics.disparity import TIE_TOLERANCE
from gfscore.statistics.multiplicity import SIGNIFICANT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_LISTED = 30


def false_positive_shares(rows: pd.DataFrame, measure: Measure, *, independent: bool) -> Figure:
    """CFPS of each class: bar at the mean over models, one dot per model, filled where clearly above 1/K.

    Takes class_errors rows of one measure, all conditions together, and that measure. `independent`: each sample counts
    once, so that the test of a class against 1/K holds; else no dot is filled. Beyond 30 classes the highest are shown.
    """
    shares, above = _shares(rows, independent=independent)
    names = classes_of(rows)
    models, k = shares.shape
    mean = shares.mean(axis=0)
    order = np.argsort(-mean, kind="stable")[:MOST_LISTED]
    left = k - len(order)
    tested = (
        f"Filled dot: above 1/K, exact binomial test of the model's errors, {percent(1 - SIGNIFICANT)} for all classes "
        "and models together. "
        if independent
        else "Copies of one image are no independent samples, so no test is made. "
    )
    with drawing():
        figure = framed_figure(
            0.25 * len(order) + 0.9,
            title=_sentence(names, mean, above, models=models, independent=independent),
            subtitle=f"Share of all errors that are wrongly called each class (CFPS): {measure.title}, "
            f"{_identity(rows)}; {counted(models, 'model')}, {sample_range(rows['n'].to_numpy())}."
            + (f" The {len(order)} highest of {k:,} classes." if left else ""),
            note=f"Bar: mean over models. Dot: one model. {tested}Dashed line: 1/K = {number(1 / k)}, as if errors "
            "fell on all classes alike.",
        )
        axes = figure.subplots()
        y = np.arange(len(order))
        axes.barh(y, mean[order], height=0.62, color=ACCENT, alpha=0.3, linewidth=0)
        for own, sure in zip(shares[:, order], above[:, order], strict=True):
            axes.plot(own[sure], y[sure], "o", color=CONTRAST, markersize=5, markeredgecolor=PAPER, markeredgewidth=0.6)
            axes.plot(own[~sure], y[~sure], "o", color=INK, markerfacecolor="none", markersize=4, markeredgewidth=0.8)
        axes.axvline(1 / k, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks(y, shortened_all([names[index] for index in order], 32))
        axes.set_ylim(len(order) - 0.4, -0.6)
        axes.set_xlim(left=-0.012 * shares.max())
        axes.axvline(0, color=MUTED, linewidth=0.8)
        axes.set_xlabel("CFPS (share of the model's errors; equal shares are fairest)")
        quiet(axes, grid="x")
        axes.spines["left"].set_visible(False)
        return laid_out(figure)


def has_errors(rows: pd.DataFrame) -> bool:
    """Whether any model of these class_errors rows calls a sample a wrong class; abstentions are errors of no class."""
    return bool((rows["cfps"] > 0).any())


def _shares(rows, *, independent):
    # CFPS (M, K) of the models whose errors fall on classes, and where it is surely above 1/K.
    found, above = [], []
    models = model_count(rows)
    ordered = rows.assign(label=model_labels(rows)).sort_values("class_index", kind="stable")
    for _, own in ordered.groupby("label", sort=False):
        if has_errors(own):
            k = len(own)
            errors = round(float((own["false_positives"].sum()) / own["cfps"].sum()))
            low = lower_shares(own["false_positives"].to_numpy(), np.full(k, errors), alpha=SIGNIFICANT / (k * models))
            found.append(own["cfps"].to_numpy())
            above.append((low > 1 / k) & independent)
    return np.array(found), np.array(above)


def _identity(rows):
    return f"{rows['measure'].iloc[0]}, {rows['dataset'].iloc[0]}"


def _sentence(names, mean, above, *, models, independent):
    largest = np.flatnonzero(mean >= mean.max() - TIE_TOLERANCE)
    share = number(mean.max())
    if not independent:
        draws = f"{class_phrase(names[largest[0]])} draws the largest share"
        if len(largest) > 1:
            draws = f"{len(largest)} classes draw the largest shares"
        return capitalised(f"{draws} of the errors, {share} on average")
    often = above.sum(axis=0)
    if not above.any():
        return f"No class draws significantly more than an equal share of the errors; at most {share} on average"
    # Of the classes above in most models, those of the largest mean.
    most = np.flatnonzero(often == often.max())
    most = most[mean[most] >= mean[most].max() - TIE_TOLERANCE]
    times = f"all {models}" if often.max() == models else f"{often.max()} of {models}"
    who = f"{len(most)} classes draw" if len(most) > 1 else f"{class_phrase(names[most[0]])} draws"
    return capitalised(
        f"{who} more than an equal share of the errors in {times} models{' each' if len(most) > 1 else ''}, "
        f"{number(mean[most[0]])} on average"
    )
