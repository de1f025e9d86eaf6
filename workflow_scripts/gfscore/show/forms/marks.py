"""Intervals, bars, curves, points and radars, drawn by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from gfscore.core.numbers import end_of_range
from gfscore.show.forms.layout import name_beside, quiet
from gfscore.show.forms.panels import categories, short_names
from gfscore.show.forms.theme import ACCENT, CATEGORIES, CONTRAST, GRID, INK, MUTED, PAPER, SHAPES

DASHED = (0, (4, 3))
MOST_NAMED, EXTREME = 24, 8
"""Names beside lines or points; of more, so many of the outermost."""
MOST_ZOOM = 4.0
"""Intervals may widen a frame to so many times the spread of the points; what is longer ends in an arrow."""


# ---- rows ----


def height_of_rows(form, frame, width, panels):
    """Inches of a panel with a line of text for each row."""
    return 0.26 * len(categories(frame, form.row)) + 1.0


def intervals(axes, form, own, frame, words, edge, width):
    """Draw one panel: thin lines between bounds, dots at values, ticks at what chance gives."""
    rows = categories(frame, form.row)
    kinds = categories(own, form.colour) if form.colour else [""]
    step = 0.56 / max(len(kinds), 2)
    place = own[form.row].astype(str).map({name: index for index, name in enumerate(rows)}).to_numpy(dtype=float)
    which = own[form.colour].astype(str).map(kinds.index).to_numpy() if form.colour else np.zeros(len(own), dtype=int)
    y = place + step * (which - (len(kinds) - 1) / 2)
    value, low, high = (own[name].to_numpy(dtype=float) for name in (form.value.column, form.low, form.high))
    hollow = own[form.hollow].to_numpy(dtype=bool) if form.hollow else np.zeros(len(own), dtype=bool)
    bold = own[form.bold].to_numpy(dtype=bool) if form.bold else np.zeros(len(own), dtype=bool)
    for index in range(len(kinds)):
        for chosen, emphasised in ((~bold, False), (bold, True)):
            mine = (which == index) & chosen
            colour = CONTRAST if emphasised else CATEGORIES[index % len(CATEGORIES)]
            axes.hlines(y[mine], low[mine], high[mine], color=colour, alpha=0.4, linewidth=1.3 if form.colour else 2.6)
            for face, also in ((colour, ~hollow), (PAPER, hollow)):
                axes.plot(
                    value[mine & also], y[mine & also], SHAPES[index % len(SHAPES)][0], color=colour,
                    markerfacecolor=face, markersize=4.8 if form.colour else 5.5, linestyle="none",
                )  # fmt: skip
    if form.tick:
        axes.vlines(own[form.tick], y - 0.36, y + 0.36, color=CONTRAST, linewidth=2)
    if form.rule is not None:
        axes.axvline(form.rule, color=MUTED, linewidth=0.8, zorder=0)
    for at in y[np.isnan(value)]:
        axes.annotate("undefined", (0.02, at), xycoords=("axes fraction", "data"), va="center", color=MUTED, size=8)
    if form.colour:
        handles = [
            axes.plot([], [], SHAPES[i % len(SHAPES)][0], color=CATEGORIES[i % len(CATEGORIES)], linestyle="none")[0]
            for i in range(len(kinds))
        ]
        axes.legend(
            handles, short_names(kinds, 12).values(), loc="lower left", bbox_to_anchor=(-0.03, 1.0), borderpad=0,
            ncols=max(1, int(width // 0.85)), handletextpad=0.1, columnspacing=0.7, fontsize=7.5, markerscale=0.8,
        )  # fmt: skip
    if form.aside:
        for row, text in zip(place, own[form.aside], strict=True):
            axes.annotate(str(text), (1, row), xycoords=("axes fraction", "data"), xytext=(8, 0),
                          textcoords="offset points", va="center", color=INK, size=8)  # fmt: skip
    _rows(axes, form, rows, words, edge, width)
    _range(axes.set_xlim, axes.get_xlim(), form.value, np.concatenate([value, low]))
    return _Pad(22 * -(-len(kinds) // max(1, int(width // 0.85)))) if form.colour else None


def bars(axes, form, own, frame, words, edge, width):
    """Draw one panel: bars at the mean of a row, a dot for each of its values."""
    rows = categories(frame, form.row)
    place = own[form.row].astype(str).map({name: index for index, name in enumerate(rows)})
    mean = own.groupby(place)[form.value.column].mean()
    axes.barh(mean.index, mean, height=0.62, color=ACCENT, alpha=0.3, linewidth=0)
    sure = own[form.sure].to_numpy(dtype=bool) if form.sure else np.zeros(len(own), dtype=bool)
    values = own[form.value.column].to_numpy(dtype=float)
    if len(own) > len(mean):
        axes.plot(
            values[sure], place[sure], "o", color=CONTRAST, markersize=5, markeredgecolor=PAPER, markeredgewidth=0.6
        )
        axes.plot(
            values[~sure], place[~sure], "o", color=INK, markerfacecolor="none", markersize=4, markeredgewidth=0.8
        )
    if form.rule:
        axes.axvline(own[form.rule].iloc[0], color=MUTED, linewidth=1, linestyle=DASHED)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    _rows(axes, form, rows, words, edge, width)
    axes.set_xlim(left=-0.012 * max(values.max(), 1e-9))


class _Pad:
    # Room above a panel that a legend takes, in points.
    def __init__(self, pad):
        self.pad = pad


def _rows(axes, form, rows, words, edge, width):
    if edge.left:
        size = 8.5 if len(rows) <= 60 else 5
        axes.set_yticks(range(len(rows)), short_names(rows, 34 if width > 4 else 22).values(), size=size)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    if edge.bottom or form.panel:
        axes.set_xlabel(words.of(form.value.title), size=8 if form.panel else 9)
    if form.panel:
        axes.locator_params(axis="x", nbins=4)
    quiet(axes, grid="x")
    axes.spines["left"].set_visible(False)


def _range(setting, found, axis, values):
    known = values[np.isfinite(values)]
    if axis.end is not None:
        setting(0, axis.end * 1.02)
    elif axis.zero and not (known < 0).any():
        setting(0, found[1])


# ---- curves ----


def height_of_curves(form, frame, width, panels):
    """Inches of a panel of curves."""
    lines = frame[form.line].nunique()
    return 3.9 if panels == 1 and lines <= MOST_NAMED else 4.6 if panels == 1 else 2.6


def curves(axes, form, own, frame, words, edge, width):
    """Draw one panel of lines, their bands, marked points and shaded stretches."""
    small = form.panel is not None
    many = own[form.line].nunique() > 8
    for _, line in own.groupby(form.line, sort=False):
        bold = bool(form.bold and line[form.bold].iloc[0])
        x, y = (line[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
        style: dict[str, Any] = {"color": CONTRAST, "linewidth": 2.2, "zorder": 3} if bold else {"color": ACCENT}
        style |= (
            {} if bold else {"linewidth": 0.9 if many and small else 1.5, "alpha": 0.55 if many or form.bold else 1}
        )
        axes.plot(x, y, ".-" if form.points else "-", markersize=4, solid_joinstyle="round", **style)
        if form.dot:
            marked = line[form.dot].to_numpy(dtype=bool)
            axes.plot(x[marked], y[marked], "o", color=CONTRAST, markersize=6, zorder=4)
        for name in (form.low, form.high):
            if name and line[name].notna().any() and (bold or not many):
                axes.fill_between(x, y, line[name], color=style["color"], alpha=0.13, linewidth=0)
        if form.shade:
            _shade(axes, x, line[form.shade].to_numpy(dtype=bool))
    for axis, limits, setting in ((form.x, axes.get_xlim, axes.set_xlim), (form.y, axes.get_ylim, axes.set_ylim)):
        _range(setting, limits(), axis, own[axis.column].to_numpy(dtype=float))
    x = own[form.x.column]
    if form.x.log:
        _logarithmic(axes.xaxis, x)
    if form.y.log:
        _logarithmic(axes.yaxis, own.loc[own[form.y.column] > 0, form.y.column])
    if not form.x.zero:
        axes.set_xlim(*((x.min() / 1.06, x.max() * 1.06) if form.x.log else (x.min(), x.max() or 1)))
    if form.y.reverse:
        most = own[form.y.column].max()
        axes.set_ylim(most + 0.6, 0.4)
        axes.set_yticks(np.unique(np.linspace(1, most, min(int(most), 12)).round()))
    if form.rule is not None:
        axes.axvline(form.rule, color=MUTED, linewidth=1, linestyle=DASHED, zorder=0)
    if edge.bottom or form.apart:
        axes.set_xlabel(words.of(form.x.title), size=8 if small else 9)
    if edge.left:
        axes.set_ylabel(words.of(form.y.title), size=8 if small else 9)
    quiet(axes, grid="both")


def _shade(axes, x, shaded):
    # From the first to the last value of each run; the edge keeps a run of one value visible.
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shaded.astype(int), [0]])))
    for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
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


def name_curves(axes, form, own):
    """Names of the lines behind their ends, where they are few, else of those that stand out."""
    if not form.names:
        return
    ends = own[own[form.y.column].notna()].groupby(form.line, sort=False).tail(1)
    if len(ends) > MOST_NAMED:
        ends = ends[ends[form.bold].astype(bool)] if form.bold and ends[form.bold].any() else ends.head(EXTREME)
    _name(axes, form, ends, form.line, form.bold)


def _name(axes, form, points, column, bold):
    if points.empty:
        return
    names = short_names(points[column].astype(str).tolist(), 24)
    colours = [CONTRAST if bold and flag else INK for flag in (points[bold] if bold else names)]
    x, y = (points[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
    name_beside(axes, x, y, list(names.values()), colours)


# ---- points ----


def height_of_scatter(form, frame, width, panels):
    """Inches of a panel of points."""
    return 5.0


POINTS: dict[str, dict[str, Any]] = {
    "accent": {"marker": "o", "color": ACCENT, "markersize": 7, "markeredgecolor": PAPER},
    "open": {"marker": "^", "color": PAPER, "markersize": 7, "markeredgecolor": CONTRAST},
    "contrast": {"marker": "^", "color": CONTRAST, "markersize": 8, "markeredgecolor": PAPER},
}


def scatter(axes, form, own, frame, words, edge, width):
    """Draw one panel of points with their intervals, cut at the frame where they would squeeze the points."""
    x, y = (own[axis.column].to_numpy(dtype=float) for axis in (form.x, form.y))
    if form.diagonal:
        end = 1.08 * max(x.max(), y.max(), 1e-9)
        axes.set(xlim=(0, end), ylim=(0, end))
        axes.fill_between([0, end], [0, end], end, color=CONTRAST, alpha=0.06, linewidth=0)
        axes.plot([0, end], [0, end], color=MUTED, linewidth=1, linestyle=DASHED)
        axes.text(0.02, 0.97, form.corner, transform=axes.transAxes, va="top", color=CONTRAST, size=8.5, weight="bold")
    for horizontal, values, low, high in ((True, x, form.x_low, form.x_high), (False, y, form.y_low, form.y_high)):
        if low and high:
            _lines(
                axes,
                x,
                y,
                values,
                own[low].to_numpy(float),
                own[high].to_numpy(float),
                horizontal=horizontal,
                fixed=form.diagonal,
            )
    states = own[form.state] if form.state else np.full(len(own), "")
    for state, look in form.sides or (("", "accent"),):
        chosen = np.asarray(states == state)
        axes.plot(x[chosen], y[chosen], linestyle="none", label=state, **POINTS[look])
    if form.sides and len(set(states)) > 1:
        axes.legend(loc="lower right", handletextpad=0.2)
    axes.set_xlabel(words.of(form.x.title))
    if edge.left:
        axes.set_ylabel(words.of(form.y.title))
    quiet(axes, grid="both")


def _lines(axes, x, y, values, low, high, *, horizontal, fixed):
    set_limits, get_limits = (axes.set_xlim, axes.get_xlim) if horizontal else (axes.set_ylim, axes.get_ylim)
    if not fixed:
        spread = max(np.ptp(values), 0.05 * max(np.nanmax(np.abs(values)), 1e-9))
        zoom, center = (MOST_ZOOM if len(values) > 1 else np.inf), (values.max() + values.min()) / 2
        start = min(max(np.nanmin(low, initial=np.inf), center - zoom / 2 * spread), values.min() - 0.1 * spread)
        stop = max(min(np.nanmax(high, initial=-np.inf), center + zoom / 2 * spread), values.max() + 0.1 * spread)
        set_limits(start - 0.03 * (stop - start), stop + 0.03 * (stop - start))
    edges = get_limits()
    line: dict[str, Any] = {"color": ACCENT, "alpha": 0.28, "linewidth": 1.3}
    draw, across = (axes.hlines, y) if horizontal else (axes.vlines, x)
    draw(across, np.clip(low, *edges), np.clip(high, *edges), **line)
    for beyond, edge, marker in ((low < edges[0], edges[0], "<v"), (high > edges[1], edges[1], ">^")):
        if not beyond.any():
            continue
        at = np.full(int(beyond.sum()), edge)
        ends = (at, across[beyond]) if horizontal else (across[beyond], at)
        axes.plot(
            *ends, marker[0 if horizontal else 1], linestyle="none", color=ACCENT, alpha=0.55, markersize=4.5,
            clip_on=False,
        )[0].set_in_layout(False)  # fmt: skip


def name_points(axes, form, own):
    """Names of the points beside the frame, where they are few, else of the outermost."""
    named = own
    if len(own) > MOST_NAMED:
        ordered = own.sort_values(form.y.column, kind="stable")
        named = ordered.iloc[[*range(EXTREME), *range(-EXTREME, 0)]]
    _name(axes, form, named, form.name, None)


# ---- radars ----


def height_of_radar(form, frame, width, panels):
    """Inches of a round panel with names around it."""
    return 0.82 * min(width, 3.4) + 0.75


def radar(axes, form, own, frame, words, edge, width):
    """Draw one panel: values around a circle, their band, the mean of all panels, a triangle at the lowest."""
    spokes = categories(own, form.spoke)
    angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    around = np.append(angles, angles[0])
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    value, low, high = (own[name].to_numpy(dtype=float) for name in (form.value.column, form.low, form.high))
    axes.fill_between(around, np.append(low, low[0]), np.append(high, high[0]), color=ACCENT, alpha=0.2, linewidth=0)
    if form.reference and frame[form.panel].nunique() > 1:
        mean = own[form.reference].to_numpy(dtype=float)
        axes.plot(around, np.append(mean, mean[0]), color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    axes.plot(around, np.append(value, value[0]), color=ACCENT, linewidth=1.6)
    if np.isfinite(value).any():
        worst = np.flatnonzero(value == np.nanmin(value))
        axes.plot(angles[worst], value[worst], "v", color=CONTRAST, markersize=5.5)
    end = words.value_range[1] if words.value_range else np.inf
    top = _outer_circle(float(np.nanmax(frame[form.high])), end)
    axes.set_ylim(0, top)
    axes.set_yticks([top / 2, top], [end_of_range(top / 2), end_of_range(top)], size=6, color=MUTED)
    axes.set_rlabel_position(180 / len(spokes))
    axes.set_xticks(angles, short_names(spokes, 11).values(), size=7.5)
    axes.tick_params(pad=-3)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        label.set_ha("center" if abs(np.sin(angle)) < 0.1 else "left" if np.sin(angle) > 0 else "right")
    axes.spines["polar"].set_color(GRID)
    return _Pad(10)


def _outer_circle(highest, end):
    # The end of the range where the values come near it, else a round number above them.
    if np.isfinite(end) and highest > end / 2:
        return float(end)
    power = 10.0 ** np.floor(np.log10(max(highest, 1e-9)))
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * (1 - 1e-9)))
