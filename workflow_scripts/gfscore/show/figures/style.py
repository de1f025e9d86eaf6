"""One look for all figures: colours, type, and the frame of sentence, subtitle and note around the axes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

INK = "#1d2330"
MUTED = "#5c6675"
GRID = "#e3e7ed"
RULE = "#b9c0ca"
# Not pure white, so that the page can tell it from white text in cells and follow a dark theme.
PAPER = "#fdfdfd"
ACCENT = "#0072b2"
CONTRAST = "#d55e00"
WARNING = "#b04a00"
ABSENT = "#d4d9e0"

SEQUENTIAL = "viridis"
"""Perceptually uniform and readable without colour vision: dark is low, bright is high."""

SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    # Names may hold dollar signs: nothing is ever read as a formula.
    "text.parse_math": False,
    "text.usetex": False,
    "figure.facecolor": PAPER,
    "figure.dpi": 100,
    "axes.facecolor": "none",
    "axes.edgecolor": RULE,
    "axes.linewidth": 0.8,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    # Publishers refuse Type 3 fonts.
    "pdf.fonttype": 42,
    "svg.hashsalt": "gfscore",
    "svg.image_inline": True,
    "path.simplify": False,
}

WIDTH = 10.5
"""Of a figure, in inches."""

MARGIN, GAP = 0.14, 0.1
TITLE_SIZE, TITLE_LINE = 12.5, 0.25
TEXT_SIZE, TEXT_LINE = 8.5, 0.175


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of this look, for everything that makes, lays out or saves a figure."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # Names may use any script. The SVG keeps their characters; the PNG shows a box where the font has no glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


MOST_IN_ROW = 5
LAYOUT_DECIMALS = 5
"""Decimals of the places of axes, as shares of the figure: a hundredth of a pixel."""


def framed_figure(body: float, *, title: str, subtitle: str, note: str, width: float = WIDTH) -> Figure:
    """Empty figure, `width` inches wide, with room of `body` inches for axes between its header and its note.

    `title` is the takeaway, `subtitle` says what is shown, `note` how to read it; all are wrapped to the width.
    """
    from matplotlib.figure import Figure

    # A little less than there is: the renderers set type slightly differently.
    inner = 0.975 * (width - 2 * MARGIN)
    titles = _balanced(title, inner, size=TITLE_SIZE, weight="bold")
    subtitles = _wrapped(subtitle, inner, size=TEXT_SIZE)
    notes = _wrapped(note, inner, size=TEXT_SIZE)
    header = MARGIN + TITLE_LINE * len(titles) + TEXT_LINE * len(subtitles) + GAP
    footer = GAP + TEXT_LINE * len(notes) + MARGIN
    height = header + body + footer

    figure = Figure(figsize=(width, height))
    top = height - MARGIN
    bold: dict[str, Any] = {"size": TITLE_SIZE, "weight": "bold"}
    small: dict[str, Any] = {"size": TEXT_SIZE, "color": MUTED}
    for gid, lines, step, style in (
        ("takeaway", titles, TITLE_LINE, bold),
        ("subtitle", subtitles, TEXT_LINE, small),
        ("note", notes, TEXT_LINE, small),
    ):
        if gid == "note":
            top = MARGIN + TEXT_LINE * len(notes)
        for index, line in enumerate(lines):
            figure.text(MARGIN / width, top / height, line, va="top", ha="left", gid=f"{gid}-{index}", **style)
            top -= step
    side = MARGIN / width
    figure.set_layout_engine(
        "constrained", rect=(side, footer / height, 1 - 2 * side, body / height), w_pad=0.05, h_pad=0.04
    )
    return figure


def _balanced(text, width, **font):
    # As few lines as fit, about equally long, so that no word is left alone on the last one.
    lines = _wrapped(text, width, **font)
    while len(lines) > 1 and len(narrower := _wrapped(text, width * 0.96, **font)) == len(lines):
        width, lines = width * 0.96, narrower
    return lines


def _wrapped(text, width, *, size, weight="normal"):
    # Lines no wider than `width` inches in the font of the figures; a single word too long stays whole.
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)

    def measure(words: str) -> float:
        return text_to_path.get_text_width_height_descent(words, font, ismath=False)[0] / 72

    lines: list[str] = []
    room, space = 0.0, measure(" ")
    for word in text.split():
        extent = measure(word)
        if lines and extent + space <= room:
            lines[-1] += f" {word}"
            room -= extent + space
        else:
            lines.append(word)
            room = width - extent
    return lines


def laid_out(figure: Figure) -> Figure:
    """The figure with its layout computed and kept, so that SVG and PNG agree and no text is left to be made later."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # The layout's solver sums in the order of memory addresses, so its last digits change from run to run.
    for axes in figure.axes:
        bounds = axes.get_position(original=True).bounds
        left, bottom, width, height = (round(edge, LAYOUT_DECIMALS) for edge in bounds)
        axes.set_position((left, bottom, width, height))
    return figure


def quiet(axes: Axes, *, grid: Literal["x", "y", "both"]) -> None:
    """Axes with a light grid along one axis ("x" or "y") and no tick marks."""
    axes.tick_params(length=0)
    axes.grid(visible=True, axis=grid)


def sample_range(n: NDArray[np.number]) -> str:
    """Samples per class in words, from counts: "n = 45 samples per class", "n = 43 to 46 ..."."""
    known = n[n > 0]
    if len(known) == 0:
        return "no samples"
    low, high = int(known.min()), int(known.max())
    return f"n = {low:,} samples per class" if low == high else f"n = {low:,} to {high:,} samples per class"


def panel_width(columns: int) -> float:
    """Width in inches of one of so many small panels side by side; few of them leave room at the side."""
    return WIDTH / max(columns, 3)


def panel_columns(panels: int) -> int:
    """How many small panels stand side by side: five or four, whichever leaves fewer places empty; few in one row."""
    if panels <= MOST_IN_ROW:
        return panels
    return 3 if panels == 6 else min((MOST_IN_ROW, 4), key=lambda columns: -panels % columns)


def counted(number: int, noun: str) -> str:
    """Number with its noun in the right form: "1 model", "9 models"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
