"""One look for every chart: colours, of which meaning never hangs on red against green. Imports nothing heavy."""

INK, MUTED = "#1d2330", "#5c6675"
# Not pure white, so that the page can tell it from white text in cells and follow a dark theme.
PAPER = "#fdfdfd"
ACCENT = "#0072b2"
CONTRAST = "#d55e00"

SEQUENTIAL = "viridis"
"""For values: perceptually uniform, readable without colour vision; dark is low, bright is high."""

DIVERGING = "blueorange"
"""For differences: two hues that people without colour vision tell apart, light at 0. Both are Vega's names."""

ON_BRIGHT, ON_DARK = "#10131a", "#ffffff"
"""Text in cells."""

CATEGORIES = (ACCENT, "#e69f00", "#6b4ca0", "#56b4e9", "#8a6d00", "#cc79a7", MUTED)
"""For a few categories side by side, each with a shape of its own."""
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "stroke")
"""Shape of each category."""

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
