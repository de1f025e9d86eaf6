"""Radars, drawn by matplotlib."""

from typing import Any

import numpy as np

from gfscore.core.numbers import end_of_range
from gfscore.show.forms.panels import Panel, categories, short_names
from gfscore.show.forms.theme import ACCENT, CONTRAST, GRID, MUTED


def radar(panel: Panel) -> float:
    """Draw one panel: values around a circle, their band, the mean of all panels, a triangle at the lowest."""
    axes, form, own = panel.axes, panel.form, panel.own
    spokes = categories(own, form.spoke)
    angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    around = np.append(angles, angles[0])
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)

    def closed(column: str) -> Any:
        values = own[column].to_numpy(dtype=float)
        return np.append(values, values[0])

    value = closed(form.value.column)
    axes.fill_between(around, closed(form.low), closed(form.high), color=ACCENT, alpha=0.2, linewidth=0)
    if form.reference and panel.frame[form.panel].nunique() > 1:
        axes.plot(around, closed(form.reference), color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    axes.plot(around, value, color=ACCENT, linewidth=1.6)
    worst = np.flatnonzero(value[:-1] == np.nanmin(value))
    axes.plot(angles[worst], value[worst], "v", color=CONTRAST, markersize=5.5)
    top = outer_circle(float(np.nanmax(panel.frame[form.high])), panel.words.value_range)
    axes.set_ylim(0, top)
    axes.set_yticks([top / 2, top], ["", end_of_range(top)], size=6, color=MUTED)
    axes.set_rlabel_position(180 / len(spokes))
    axes.set_xticks(angles, short_names(spokes, 11).values(), size=7.5)
    axes.tick_params(pad=-3)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        label.set_ha("center" if abs(np.sin(angle)) < 0.1 else "left" if np.sin(angle) > 0 else "right")
    axes.spines["polar"].set_color(GRID)
    return 10.0


def outer_circle(highest: float, value_range: tuple[float, float] | None) -> float:
    """The end of the measure's range where the values come near it, else a round number above them."""
    end = value_range[1] if value_range else np.inf
    if np.isfinite(end) and highest > end / 2:
        return float(end)
    power = 10.0 ** np.floor(np.log10(max(highest, 1e-9)))
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * (1 - 1e-9)))
