"""Attack-free score against attack distance, model by model: what lies above the line is refuted, or open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.core.names import model_labels, printable, shortened_all
from gfscore.core.numbers import number, percent
from gfscore.show.figures.placement import place_labels
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
from gfscore.show.words.measure_words import (
    NOT_REFUTED,
    NOT_SETTLED,
    REFUTED,
    mean_scores_against_distances,
    mean_scores_refuted,
    why_not_settled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MOST_LABELLED = 40

MARKS: dict[str, tuple[str, dict[str, Any]]] = {
    NOT_REFUTED: ("o", {"color": ACCENT, "markersize": 7, "markeredgecolor": PAPER}),
    NOT_SETTLED: ("^", {"color": PAPER, "markersize": 7, "markeredgecolor": CONTRAST}),
    REFUTED: ("^", {"color": CONTRAST, "markersize": 8, "markeredgecolor": PAPER}),
}


def score_against_distance(rows: pd.DataFrame, distance: Measure) -> Figure:
    """Mean score against mean distance found, one point per model, with the share of samples refuted.

    Takes falsification rows of one score at T = 1 and one measure of distances, and that measure. The score claims that
    no adversarial example is nearer than itself.
    """
    whole = rows[rows["class_index"] == ALL].reset_index(drop=True)
    x, y = whole["mean_distance"].to_numpy(), whole["mean_score"].to_numpy()
    verdicts = mean_scores_against_distances(whole)
    unsettled = why_not_settled(whole, verdicts)
    low, high = whole["low"].to_numpy(), whole["high"].to_numpy()
    labels = [
        f"{name}  {number(rate)}"
        for name, rate in zip(shortened_all(model_labels(whole), 26), whole["rate"], strict=True)
    ]
    confidence = percent(whole["confidence"].iloc[0])
    censored = int(whole["censored"].sum())
    with drawing():
        figure = framed_figure(
            4.6,
            title=mean_scores_refuted(whole),
            subtitle=f"{printable(whole['measure'].iloc[0])} at T = 1 against {printable(whole['distances'].iloc[0])}, "
            f"{printable(whole['dataset'].iloc[0])}; {counted(len(whole), 'model')}, n = {int(whole['n'].min()):,} "
            "samples or more. Above the line the mean score exceeds the mean distance found: refuted"
            f"{', or not settled (hollow)' if unsettled else ''}.",
            note="Beside each name: falsification rate, the share of correctly classified samples with an adversarial "
            f"example nearer than their score (lower is better; {_rates(low, high, confidence)}). A rate is a lower "
            "bound on the violations: attacks that fail confirm nothing."
            + (
                f" {censored:,} samples without an adversarial example count at the largest distance searched, though "
                "theirs may be larger: with such samples no mean score is refuted."
                if censored
                else ""
            )
            + f" Refuted: surely above the line, by betting, with {confidence} confidence for all models (Holm).",
        )
        axes = figure.subplots()
        end = 1.08 * max(x.max(), y.max())
        axes.set_xlim(0, end)
        axes.set_ylim(0, end)
        axes.fill_between([0, end], [0, end], end, color=CONTRAST, alpha=0.06, linewidth=0)
        axes.plot([0, end], [0, end], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        for verdict in (known for known in MARKS if known in verdicts):
            marker, style = MARKS[verdict]
            axes.plot(x[verdicts == verdict], y[verdicts == verdict], marker, **style)
        axes.text(
            0.02, 0.97, f"{'' if unsettled else 'refuted: '}score above distance", transform=axes.transAxes, va="top",
            color=CONTRAST, size=8.5, weight="bold",
        )  # fmt: skip
        axes.set_xlabel(f"mean distance of the nearest adversarial example found ({distance.unit}; higher is better)")
        axes.set_ylabel("mean score (same unit, as claimed; higher is better)")
        quiet(axes, grid="both")
        laid_out(figure)
        shown = np.arange(len(labels))[:MOST_LABELLED]
        place_labels(axes, x[shown], y[shown], [labels[index] for index in shown], lines=np.empty((0, 4)))
        return laid_out(figure)


def _rates(low, high, confidence):
    known = ~np.isnan(low)
    if not known.any():
        return "no intervals"
    return f"{confidence} Clopper-Pearson intervals are at most {number(float((high - low)[known].max()))} wide"
