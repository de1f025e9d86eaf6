"""Intervals, bars, curves and points, drawn by matplotlib."""

from typing import Any

import numpy as np

from gfscore.show.forms import Curves, Frame
from gfscore.show.forms.layout import name_beside, quiet
from gfscore.show.forms.panels import MOST_LABELLED, Panel, categories, ends_of, outermost, runs_of, short_names
from gfscore.show.forms.theme import ACCENT, CATEGORIES, CONTRAST, INK, MUTED, PAPER, SHAPES

DASHED = (0, (4, 3))
MOST_ZOOM = 4.0
"""Intervals may widen a frame to so many times the spread of the points; what is longer ends in an arrow."""
MOST_BANDS = 8
LEGEND = 0.85
"""Inches of an entry."""


# ---- rows ----


def intervals(panel: Panel) -> float | None:
    """Draw one panel: thin lines between bounds, dots at values, ticks at what chance gives."""
    axes, form, own = panel.axes, panel.form, panel.own
    rows = categories(panel.frame, form.row)
    kinds = categories(own, form.colour) if form.colour else [""]
    place = own[form.row].astype(str).map({name: index for index, name in enumerate(rows)}).to_numpy(dtype=float)
    which = own[form.colour].astype(str).map(kinds.index).to_numpy() if form.colour else np.zeros(len(own), dtype=int)
    y = place + 0.56 / max(len(kinds), 2) * (which - (len(kinds) - 1) / 2)
    value, low, high = (own[name].to_numpy(dtype=float) for name in (form.value.column, form.low, form.high))
    hollow, bold = (_flags(own, name) for name in (form.hollow, form.bold))
    for index, stands in ((index, stands) for index in range(len(kinds)) for stands in (False, True)):
        mine, look = (which == index) & (bold == stands), index % len(CATEGORIES)
        colour = CONTRAST if stands else CATEGORIES[look]
        axes.hlines(y[mine], low[mine], high[mine], color=colour, alpha=0.4, linewidth=1.3 if form.colour else 2.6)
        dot = {"color": colour, "markersize": 4.8 if form.colour else 5.5, "linestyle": "none"}
        for face, also in ((colour, mine & ~hollow), (PAPER, mine & hollow)):
            shape = "D" if stands and not form.colour else SHAPES[look][0]
            axes.plot(value[also], y[also], shape, markerfacecolor=face, **dot)
    if form.tick:
        axes.vlines(own[form.tick], y - 0.36, y + 0.36, color=CONTRAST, linewidth=2)
    if form.rule is not None:
        axes.axvline(form.rule, color=MUTED, linewidth=0.8, zorder=1)
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "size": 8}
    for at in y[np.isnan(value)]:
        axes.annotate("undefined", (0.02, at), color=MUTED, **beside)
    for row, text in zip(place, own[form.aside] if form.aside else place * np.nan, strict=True):
        if form.aside:
            axes.annotate(str(text), (1, row), xytext=(8, 0), textcoords="offset points", color=INK, **beside)
    _rows(panel, rows)
    _range(axes.set_xlim, axes.get_xlim(), form.value, np.concatenate([value, low]))
    return _legend(panel, kinds) if form.colour else None


def _flags(own, column):
    return own[column].to_numpy(dtype=bool) if column else np.zeros(len(own), dtype=bool)


def _legend(panel, kinds):
    # Above the axes; returns the room that it takes.
    looks = [(SHAPES[index % len(SHAPES)][0], CATEGORIES[index % len(CATEGORIES)]) for index in range(len(kinds))]
    handles = [panel.axes.plot([], [], shape, color=colour, linestyle="none")[0] for shape, colour in looks]
    columns = max(1, int(panel.width // LEGEND))
    panel.axes.legend(
        handles, short_names(kinds, 12).values(), loc="lower left", bbox_to_anchor=(-0.03, 1.0), borderpad=0,
        ncols=columns, handletextpad=0.1, columnspacing=0.7, fontsize=7.5, markerscale=0.8,
    )  # fmt: skip
    return 8.0 + 14.0 * -(-len(kinds) // columns)


def bars(panel: Panel) -> None:
    """Draw one panel: bars at the mean of a row, a dot for each of its values."""
    axes, form, own = panel.axes, panel.form, panel.own
    rows = categories(panel.frame, form.row)
    place = own[form.row].astype(str).map({name: index for index, name in enumerate(rows)})
    mean, values = own.groupby(place)[form.value.column].mean(), own[form.value.column].to_numpy(dtype=float)
    axes.barh(mean.index, mean, height=0.62, color=ACCENT, alpha=0.3, linewidth=0)
    sure = _flags(own, form.sure)
    if len(own) > len(mean):
        full: dict[str, Any] = {"color": CONTRAST, "markersize": 5, "markeredgecolor": PAPER, "markeredgewidth": 0.6}
        axes.plot(values[sure], place[sure], "o", **full)
        hollow: dict[str, Any] = {"color": INK, "markersize": 4, "markerfacecolor": "none", "markeredgewidth": 0.8}
        axes.plot(values[~sure], place[~sure], "o", **hollow)
    if form.rule:
        axes.axvline(own[form.rule].iloc[0], color=MUTED, linewidth=1, linestyle=DASHED)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    _rows(panel, rows)
    axes.set_xlim(left=-0.012 * max(values.max(), 1e-9))


def _rows(panel, rows):
    axes, form = panel.axes, panel.form
    if panel.left:
        names = short_names(rows, 34 if panel.width > 4 else 22).values()
        axes.set_yticks(range(len(rows)), names, size=8.5 if len(rows) <= 60 else 5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    if panel.bottom or form.panel:
        axes.set_xlabel(panel.words.of(form.value.title), size=8 if form.panel else 9)
    if form.panel:
        axes.locator_params(axis="x", nbins=4)
    quiet(axes, grid="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(labelbottom=panel.bottom or bool(form.panel and getattr(form, "apart", False)))


def _range(setting, found, axis, values):
    known = values[np.isfinite(values)]
    if axis.end is not None:
        setting(0, axis.end * 1.02)
    elif axis.zero and not (known < 0).any():
        setting(0, found[1])


# ---- curves ----


def height_of_curves(form: Curves, frame: Frame, width: float, panels: int) -> float:
    """Inches of a panel of curves."""
    return 2.6 if panels > 1 else 3.9 if frame[form.line].nunique() <= MOST_LABELLED else 4.6


def curves(panel: Panel) -> None:
    """Draw one panel of lines, their bands, marked points and shaded stretches."""
    axes, form, own = panel.axes, panel.form, panel.own
    many = own[form.line].nunique() > MOST_BANDS
    for _, line in own.groupby(form.line, sort=False):
        _line(axes, form, line, many=many)
    for axis, limits, setting in ((form.x, axes.get_xlim, axes.set_xlim), (form.y, axes.get_ylim, axes.set_ylim)):
        _range(setting, limits(), axis, own[axis.column].to_numpy(dtype=float))
        if axis.log:
            _logarithmic(axes.xaxis if axis is form.x else axes.yaxis, own.loc[own[axis.column] > 0, axis.column])
    x = own[form.x.column]
    if not form.x.zero:
        axes.set_xlim(*((x.min() / 1.06, x.max() * 1.06) if form.x.log else (x.min(), x.max() or 1)))
    if form.y.reverse:
        most = own[form.y.column].max()
        axes.set_ylim(most + 0.6, 0.4)
        axes.set_yticks(np.unique(np.linspace(1, most, min(int(most), 12)).round()))
    if form.rule is not None:
        axes.axvline(form.rule, color=MUTED, linewidth=1, linestyle=DASHED, zorder=0)
    if panel.bottom or form.apart:
        axes.set_xlabel(panel.words.of(form.x.title), size=8 if form.panel else 9)
        axes.tick_params(labelbottom=True)
    if panel.left:
        axes.set_ylabel(panel.words.of(form.y.title), size=8 if form.panel else 9)
    quiet(axes, grid="both")


def _line(axes, form, line, *, many):
    bold = bool(form.bold and line[form.bold].iloc[0])
    x, y = (line[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
    style: dict[str, Any] = {"color": CONTRAST, "linewidth": 2.2, "zorder": 3}
    if not bold:
        width, alpha = 0.9 if many and form.panel else 1.5, 0.55 if many or form.bold else 1
        style = {"color": ACCENT, "linewidth": width, "alpha": alpha}
    axes.plot(x, y, ".-" if form.points else "-", markersize=4, solid_joinstyle="round", **style)
    if form.dot:
        marked = line[form.dot].to_numpy(dtype=bool)
        axes.plot(x[marked], y[marked], "o", color=CONTRAST, markersize=6, zorder=4)
    for name in (form.low, form.high):
        if name and line[name].notna().any() and (bold or not many):
            axes.fill_between(x, y, line[name].to_numpy(dtype=float), color=style["color"], alpha=0.13, linewidth=0)
    if form.shade:
        # The edge keeps a stretch of one value visible.
        for first, last in runs_of(line[form.shade].to_numpy(dtype=bool)):
            axes.axvspan(x[first], x[last], facecolor=CONTRAST, edgecolor=CONTRAST, alpha=0.3, linewidth=0.6)


def _logarithmic(axis, values):
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = values.min(), values.max()
    ticks = [base * 10.0**power for power in range(-6, 7) for base in (1, 2, 5)]
    ticks = [tick for tick in ticks if low * 0.95 <= tick <= high * 1.05]
    if len(ticks) > 6:
        ticks = [tick for tick in ticks if np.isclose(np.log10(tick), round(np.log10(tick)))]
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])


def name_curves(panel: Panel) -> None:
    """Names of the lines, where they are few, else of those that stand out."""
    form, ends = panel.form, ends_of(panel.own, panel.form)
    if len(ends) > MOST_LABELLED:
        ends = ends[ends[form.bold].astype(bool)] if form.bold else ends.head(0)
    if form.names:
        _name(panel, ends, form.line)


def _name(panel, points, column):
    if points.empty:
        return
    form, bold = panel.form, getattr(panel.form, "bold", None)
    names = short_names(points[column].astype(str).tolist(), 24)
    colours = [CONTRAST if bold and stands else INK for stands in (points[bold] if bold else names)]
    x, y = (points[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
    name_beside(panel.axes, x, y, list(names.values()), colours)


# ---- points ----

POINTS: dict[str, dict[str, Any]] = {
    "accent": {"marker": "o", "color": ACCENT, "markersize": 7, "markeredgecolor": PAPER},
    "open": {"marker": "^", "color": PAPER, "markersize": 7, "markeredgecolor": CONTRAST},
    "contrast": {"marker": "^", "color": CONTRAST, "markersize": 8, "markeredgecolor": PAPER},
}


def scatter(panel: Panel) -> None:
    """Draw one panel of points with their intervals, cut at the frame where they would squeeze the points."""
    axes, form, own = panel.axes, panel.form, panel.own
    x, y = (own[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
    if form.diagonal:
        end = 1.08 * max(x.max(), y.max(), 1e-9)
        axes.set(xlim=(0, end), ylim=(0, end))
        axes.fill_between([0, end], [0, end], end, color=CONTRAST, alpha=0.06, linewidth=0)
        axes.plot([0, end], [0, end], color=MUTED, linewidth=1, linestyle=DASHED)
        axes.text(0.02, 0.97, form.corner, transform=axes.transAxes, va="top", color=CONTRAST, size=8.5, weight="bold")
    for horizontal, low, high in ((True, form.x_low, form.x_high), (False, form.y_low, form.y_high)):
        if low and high:
            bounds = own[low].to_numpy(dtype=float), own[high].to_numpy(dtype=float)
            _lines(axes, (x, y), bounds, horizontal=horizontal, fixed=form.diagonal)
    states = own[form.state].to_numpy() if form.state else np.full(len(own), "")
    for state, look in form.sides or (("", "accent"),):
        axes.plot(x[states == state], y[states == state], linestyle="none", label=state, **POINTS[look])
    if len(set(states)) > 1:
        axes.legend(loc="lower right", handletextpad=0.2)
    axes.set_xlabel(panel.words.of(form.x.title))
    if panel.left:
        axes.set_ylabel(panel.words.of(form.y.title))
    quiet(axes, grid="both")


def _lines(axes, points, bounds, *, horizontal, fixed):
    (low, high), values, across = bounds, points[0 if horizontal else 1], points[1 if horizontal else 0]
    set_limits, get_limits = (axes.set_xlim, axes.get_xlim) if horizontal else (axes.set_ylim, axes.get_ylim)
    if not fixed:
        spread = max(np.ptp(values), 0.05 * max(np.nanmax(np.abs(values)), 1e-9))
        zoom, center = (MOST_ZOOM if len(values) > 1 else np.inf), (values.max() + values.min()) / 2
        start = min(max(np.nanmin(low, initial=np.inf), center - zoom / 2 * spread), values.min() - 0.1 * spread)
        stop = max(min(np.nanmax(high, initial=-np.inf), center + zoom / 2 * spread), values.max() + 0.1 * spread)
        set_limits(start - 0.03 * (stop - start), stop + 0.03 * (stop - start))
    edges = get_limits()
    draw = axes.hlines if horizontal else axes.vlines
    faint = 0.28 if len(values) <= MOST_LABELLED else 0.08
    draw(across, np.clip(low, *edges), np.clip(high, *edges), color=ACCENT, alpha=faint, linewidth=1.3)
    arrow: dict[str, Any] = {"linestyle": "none", "color": ACCENT, "alpha": 0.55, "markersize": 4.5, "clip_on": False}
    for beyond, edge, marker in ((low < edges[0], edges[0], "<v"), (high > edges[1], edges[1], ">^")):
        if beyond.any():
            at = np.full(int(beyond.sum()), edge)
            ends = (at, across[beyond]) if horizontal else (across[beyond], at)
            axes.plot(*ends, marker[0 if horizontal else 1], **arrow)[0].set_in_layout(False)


def name_points(panel: Panel) -> None:
    """Names of the points beside the frame, where they are few, else of the outermost."""
    _name(panel, outermost(panel.own, panel.form), panel.form.name)
