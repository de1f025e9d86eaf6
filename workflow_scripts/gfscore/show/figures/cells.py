"""Matrices drawn as coloured cells: colours, numbers that stay legible on them, and names along both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.numbers import number, percent, upper_bound
from gfscore.show.figures.style import ABSENT, INK, MUTED, PAPER, SEQUENTIAL
from gfscore.statistics.intervals import hoeffding_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

# Apart from the colours of the page, which follow its theme: cells do not.
MIDDLE_LUMINANCE = 0.179  # black and white text have equal contrast here
ON_BRIGHT, ON_DARK = "#10131a", "#ffffff"
UPRIGHT_ABOVE = 32
CONFIDENCE = 0.95


def colours() -> Colormap:
    """The sequential colour map, with a colour of its own for cells without a value."""
    import matplotlib as mpl

    return mpl.colormaps[SEQUENTIAL].with_extremes(bad=ABSENT)


def legible(image: AxesImage, value: float) -> str:
    """Black or white text for a cell, by its relative luminance (Web Content Accessibility Guidelines)."""
    norm: Any = image.norm  # which takes numbers as well as arrays
    channels = np.array(image.cmap(norm(value))[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return ON_BRIGHT if linear @ [0.2126, 0.7152, 0.0722] > MIDDLE_LUMINANCE else ON_DARK


def number_cells(
    axes: Axes, values: NDArray[np.float64], image: AxesImage, words: Callable[[float], str], *, size: float = 8.5
) -> None:
    """Write `words(value)` into every cell of a matrix (R, C) that has a value."""
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            text = axes.text(
                column, row, words(value), ha="center", va="center_baseline", size=size, color=legible(image, value)
            )
            text.set_in_layout(False)


def number_rows(axes: Axes, values: NDArray[np.float64]) -> None:
    """Write one value for all columns behind each row of a matrix, under the heading "all"."""
    for row, value in enumerate(values):
        axes.annotate(
            number(value), (1, row), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center_baseline", color=INK, weight="bold", size=8.5,
        )  # fmt: skip
    axes.annotate(
        "all", (1, 1), xycoords="axes fraction", xytext=(8, 6), textcoords="offset points", color=MUTED, size=8.5
    )


def known_to(n: float, *, over: str = "") -> str:
    """How precisely one share of `n` independent samples is known, in words; `over` says what they are."""
    half: Any = hoeffding_half_width(n, classes=1, alpha=1 - CONFIDENCE, width=1)  # a number, as n is one
    return f"known to \u00b1{upper_bound(half)} or better ({percent(CONFIDENCE)}, Hoeffding{over})"


def separate_cells(axes: Axes, rows: int, columns: int) -> None:
    """Draw the gaps between the cells of a matrix."""
    for position in range(1, columns):
        axes.axvline(position - 0.5, color=PAPER, linewidth=1.5)
    for position in range(1, rows):
        axes.axhline(position - 0.5, color=PAPER, linewidth=1.5)


def name_columns(axes: Axes, names: Sequence[str], *, room: float, upright_above: int = UPRIGHT_ABOVE) -> None:
    """Names above the columns, turned where they do not fit; `room` is how many characters the axes are wide.

    More names than `upright_above` stand upright.
    """
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(len(names)), names)
    if max(map(len, names)) > room / len(names):
        upright = len(names) > upright_above
        for label in axes.get_xticklabels():
            label.set(rotation=90 if upright else 40, ha="left", rotation_mode="anchor")
            if upright:
                label.set(va="center", size=7.5)


def name_some_columns(axes: Axes, names: Sequence[str], *, label: str) -> None:
    """Names of a few of many columns, which stand in the order of `names`."""
    k = len(names)
    positions = np.unique(np.linspace(0, k - 1, 5).round().astype(int))
    axes.set_xticks(positions, [f"{position + 1}\n{names[position]}" for position in positions])
    labels = axes.get_xticklabels()
    labels[0].set_horizontalalignment("left")
    labels[-1].set_horizontalalignment("right")
    axes.set_xlabel(label)


def bare(axes: Axes) -> None:
    """Axes of a matrix without frame and tick marks."""
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def colour_bar(
    figure: Figure, image: AxesImage, axes: Axes | NDArray[Any], label: str, *, pad: float = 0.02, aspect: float = 24
) -> Colorbar:
    """Colour bar beside one or several axes, without frame and tick marks."""
    bar = figure.colorbar(image, ax=axes, fraction=0.03, pad=pad, aspect=aspect)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label(label)
    return bar


def mark_cells(axes: Axes, chosen: NDArray[np.bool_]) -> None:
    """Put a dot into the upper right corner of the cells that a boolean matrix chooses."""
    rows, columns = np.nonzero(chosen)
    axes.plot(columns + 0.38, rows - 0.32, ".", color=INK, markeredgecolor=PAPER, markersize=6, markeredgewidth=0.6)
