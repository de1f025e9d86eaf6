"""Colours of every chart, of which meaning never hangs on red against green, and matplotlib's settings.

The page sets the colours of THEMED to its own, so that a chart follows a light or a dark page.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib import rc_params_from_file
from matplotlib.colors import Colormap, LinearSegmentedColormap

STYLE = Path(__file__).parent / "gfscore.mplstyle"

INK = "#1d2330"
MUTED = "#5c6675"
LINE = "#dfe4ea"
# Not pure white, so that the page can tell it from white text in cells and follow a dark theme.
PAPER = "#fdfdfd"
ACCENT = "#0072b2"
CONTRAST = "#b04a00"

THEMED = {INK: "ink", MUTED: "muted", LINE: "line", PAPER: "paper", ACCENT: "accent", CONTRAST: "contrast"}
"""Colour -> variable of the page's style that takes its place."""

ON_BRIGHT = "#10131a"
ON_DARK = "#ffffff"
"""Text in cells."""

CATEGORIES = (ACCENT, "#e69f00", "#6b4ca0", "#56b4e9", "#8a6d00", "#cc79a7", MUTED)
"""For a few categories side by side, each with a marker of its own."""
MARKERS = ("o", "s", "D", "^", "v", "P", "_")

VALUES = "viridis"
"""Colours of values: perceptually uniform, readable without colour vision; dark is low, bright is high."""

BLUE_TO_ORANGE = (
    "#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb", "#fce0ba", "#fbbf74", "#e8932f", "#c5690d",
    "#994a07",
)  # fmt: skip
"""Colours of differences: two hues that people without colour vision tell apart, light at 0."""


def colours_of_differences() -> Colormap:
    """Colour map of differences."""
    return LinearSegmentedColormap.from_list("blue to orange", BLUE_TO_ORANGE)


@cache
def settings() -> mpl.RcParams:
    """Settings of gfscore.mplstyle."""
    return rc_params_from_file(str(STYLE), use_default_template=False)


_entered: list[bool] = []


@contextmanager
def look() -> Iterator[None]:
    """Settings of matplotlib for all that makes, lays out or saves a chart; within itself it does nothing."""
    if _entered:
        yield
        return
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(settings())
        # Names may use any script. The SVG keeps their characters; the PNG shows a box where the font has no glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        _entered.append(True)
        try:
            yield
        finally:
            _entered.pop()
