"""Class values against the planted truth, one panel per measure."""

import numpy as np

from gfscore.show.drawing.theme import ACCENT, CONTRAST, INK, MUTED
from studies.drawing import drawing, framed_figure, laid_out, quiet

PANELS = {
    "GREAT score, softmax": "score",
    "PGD": "share surviving",
    "Square": "share surviving",
    "minimal l2 distance": "l2 distance",
    "certified radius": "l2 distance",
    "probabilistic, Gaussian": "share robust",
}
"""Measure -> what its axis shows."""

LINES = {
    "plain": {"color": INK, "marker": "o", "markersize": 7, "markerfacecolor": "none"},
    "sure of the weak class": {"color": CONTRAST, "marker": "s", "markersize": 3.5},
    "steps": {"color": ACCENT, "marker": "^", "markersize": 4},
}


def known_truth_figure(twins):
    """Figure of six measures on three of the twins; takes the list of Twin of one number of classes."""
    rows = {(row.twin, row.measure): row for twin in twins for row in twin.rows}
    with drawing():
        figure = framed_figure(
            5.2,
            title="Three classifiers that decide alike: only measures that look at decisions agree on all of them",
            subtitle=f"Class values of six measures against the planted mean l2 distance of {twins[0].rows[0].classes} "
            "classes; the weak class is the leftmost. Grey: what the measure ought to say.",
            note="Plain logits; logits 30 times as large where the weak class is predicted; logits rounded to steps, "
            "whose gradient is zero. Markers on top of each other are equal values.",
        )
        grid = figure.subplots(2, 3, sharex=True)
        for axes, (measure, unit) in zip(grid.flat, PANELS.items(), strict=True):
            _panel(axes, [rows[twin, measure] for twin in LINES])
            axes.set_title(measure)
            axes.set_ylabel(unit)
        for axes in grid[1]:
            axes.set_xlabel("true mean l2 distance of the class")
        grid[0, 0].legend(loc="upper right", handlelength=1.4)
    return laid_out(figure)


def _panel(axes, rows):
    order = np.argsort(rows[0].radii)
    radii = rows[0].radii[order]
    axes.plot(radii, rows[0].truth[order], color=MUTED, alpha=0.45, linewidth=5, solid_capstyle="round", label="truth")
    for row in rows:
        axes.plot(radii, row.values[order], linewidth=1, label=row.twin, **LINES[row.twin])
    axes.set_ylim(bottom=-0.02)
    quiet(axes, grid="y")
