"""RDI against the number of samples per class: the bound of the GF-Score paper's Eq. 12 beside draws from the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.measured import row_generator
from gfscore.core.numbers import number, percent
from gfscore.show.figures.style import ACCENT, CONTRAST, INK, MUTED, counted, drawing, framed_figure, laid_out, quiet
from gfscore.statistics.concentration import rdi_deviations, sample_sizes
from gfscore.statistics.intervals import rdi_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gfscore.audit.measured import Measured
    from gfscore.measures import Measure

DRAWS = 400


def rdi_concentration(measured: Sequence[Measured], measure: Measure, *, confidence: float, seed: int) -> Figure:
    """How far RDI lies from its true value when every class has n samples: the bound, and draws from the audit's data.

    Takes a list of Measured of one measure, one per model, that measure, the `confidence` of the bound, and the seed of
    the draws. What is drawn from counts as the population, so the bound has to hold for every line.
    """
    counts = [np.unique(item.labels, return_counts=True)[1] for item in measured]
    classes = max(len(count) for count in counts)
    largest = int(min(count.min() for count in counts))
    sizes = sample_sizes(largest)
    width = measure.value_range[1] - measure.value_range[0]
    bound = np.asarray(rdi_bound(sizes, classes=classes, alpha=1 - confidence, width=width))
    found = [
        rdi_deviations(item.values, item.labels, sizes=sizes, draws=DRAWS, rng=row_generator(seed, item.key))
        for item in measured
    ]
    lines = np.array([deviations.quantile(confidence) for deviations in found])
    beyond = sum(int((deviations.values > bound[:, None]).sum()) for deviations in found)
    asked = len(found) * len(sizes) * DRAWS
    key = measured[0].key
    with drawing():
        figure = framed_figure(
            3.9,
            title=_sentence(lines, bound, sizes),
            subtitle=f"{measure.title}, {key['measure']}, {key['dataset']}; {counted(len(found), 'model')}, "
            f"{classes:,} classes. Distance of RDI from its value on all samples, when every class has n of them.",
            note=f"Upper line: bound of the GF-Score paper's Eq. 12 at {percent(confidence)}, whatever the data. Lower "
            f"lines, one per model: what {percent(confidence)} of {DRAWS} draws of n samples per class, with "
            f"replacement, stay within; the audit's own samples are the population. {beyond:,} of {asked:,} draws go "
            f"beyond the bound. They do not show that noise alone puts RDI above its true value. Right end: n = "
            f"{largest:,}, the smallest class here.",
        )
        axes = figure.subplots()
        axes.plot(sizes, bound, color=CONTRAST, linewidth=2.4)
        for line in lines:
            axes.plot(sizes, line, ".-", color=ACCENT, alpha=0.5, linewidth=1.2, markersize=4)
        _log_axes(axes, sizes, [*bound, *lines[lines > 0]])
        middle = len(sizes) // 2
        for values, words, colour, above in (
            (bound, "bound (Eq. 12)", CONTRAST, True),
            (lines.max(axis=0), f"{percent(confidence)} of the draws, by model", ACCENT, True),
        ):
            axes.annotate(
                words, (sizes[middle], values[middle]), xytext=(0, 7 if above else -7), textcoords="offset points",
                ha="left", va="bottom", color=colour, weight="bold", size=8.5,
            )  # fmt: skip
        axes.set_xlabel("samples per class, n (log scale)")
        axes.set_ylabel(f"distance from the RDI of all samples\n({measure.unit}; lower is better)")
        axes.tick_params(axis="both", colors=INK)
        quiet(axes, grid="both")
        axes.spines[["left", "bottom"]].set_color(MUTED)
        return laid_out(figure)


def _sentence(lines, bound, sizes):
    worst = float(lines[:, -1].max())
    if worst == 0:
        return (
            f"RDI does not vary at all at {sizes[-1]:,} samples per class, where the bound allows {number(bound[-1])}"
        )
    times = float(bound[-1] / worst)
    return (
        f"{sizes[-1]:,} samples per class, drawn again, give an RDI within {number(worst)} of that of all; the bound, "
        f"{number(bound[-1])}, is {number(times)} times as wide, but holds for the true RDI"
    )


def _log_axes(axes, sizes, values):
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, low, high in ((axes.xaxis, sizes[0], sizes[-1]), (axes.yaxis, min(values), max(values))):
        ticks = [base * 10.0**power for power in range(-6, 7) for base in (1, 2, 5)]
        shown = [tick for tick in ticks if low * 0.95 <= tick <= high * 1.05]
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_locator(FixedLocator(shown))
        axis.set_ticks(shown, [f"{tick:,g}" for tick in shown])
    axes.set_xlim(sizes[0] / 1.08, sizes[-1] * 1.08)
