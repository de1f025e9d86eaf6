"""One look for every chart: colours, of which meaning never hangs on red against green. Imports nothing heavy."""

from typing import Final

INK, MUTED, GRID, RULE = "#1d2330", "#5c6675", "#e3e7ed", "#b9c0ca"
# Not pure white, so that the page can tell it from white text in cells and follow a dark theme.
PAPER = "#fdfdfd"
ACCENT = "#0072b2"
CONTRAST = "#d55e00"
ABSENT = "#d4d9e0"

SEQUENTIAL: Final = "viridis"
"""For values: perceptually uniform, readable without colour vision; dark is low, bright is high."""

DIVERGING: Final = "blueorange"
DIVERGING_STOPS: Final = (
    "#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb",
    "#fce0ba", "#fbbf74", "#e8932f", "#c5690d", "#994a07",
)  # fmt: skip
"""For differences: two hues that people without colour vision tell apart, light at 0. Vega's name, and its colours."""

ON_BRIGHT, ON_DARK = "#10131a", "#ffffff"
"""Text in cells."""

CATEGORIES = (ACCENT, "#e69f00", "#6b4ca0", "#56b4e9", "#8a6d00", "#cc79a7", MUTED)
"""For a few categories side by side, each with a shape of its own."""
SHAPES = (
    ("o", "circle"), ("s", "square"), ("D", "diamond"), ("^", "triangle-up"), ("v", "triangle-down"),
    ("P", "cross"), ("X", "stroke"),
)  # fmt: skip
"""Shape of each category: matplotlib's name, Vega's name."""

PARAMETERS = {
    "ink": INK,
    "muted": MUTED,
    "line": "#dfe4ea",
    "surface": PAPER,
    "accent": ACCENT,
    "contrast": "#b04a00",
    "wash": "#cfe3f1",
}
"""Parameters of Vega-Lite specifications that a page sets to its own colours, with those of a bright page."""
