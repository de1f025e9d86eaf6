"""Pictures of the documentation: their type, and the frame of finding, subtitle and note around the axes."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfscore.show.drawing.theme import INK, MUTED, PAPER

GRID, RULE = "#e3e7ed", "#b9c0ca"

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

PNG_DPI = 160
PNG_METADATA = {"Software": None}
"""Without what would name the version of a library."""

WIDTH = 10.5
"""Of a figure, in inches."""

MARGIN, GAP = 0.14, 0.1
TITLE_SIZE, TITLE_LINE = 12.5, 0.25
TEXT_SIZE, TEXT_LINE = 8.5, 0.175
LAYOUT_DECIMALS = 5
"""Decimals of the places of axes, as shares of the figure: a hundredth of a pixel."""


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of this look, for everything that makes, lays out or saves a figure."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # Names may use any script. The SVG keeps their characters; the PNG shows a box where the font has no glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def framed_figure(body: float, *, title: str, subtitle: str, note: str, width: float = WIDTH) -> Figure:
    """Empty figure, `width` inches wide, with room of `body` inches for axes between its header and its note.

    `title` is the finding, `subtitle` says what is shown, `note` how to read it; all are wrapped to the width.
    """
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


def extent_of(words: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Width and height in inches of a line in the font of the figures."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    width, height, _ = text_to_path.get_text_width_height_descent(words, font, ismath=False)
    return width / 72, height / 72


def _wrapped(text, width, *, size, weight="normal"):
    # Lines no wider than `width` inches; a single word too long stays whole.
    lines: list[str] = []
    room, space = 0.0, extent_of(" ", size, weight)[0]
    for word in text.split():
        extent = extent_of(word, size, weight)[0]
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
