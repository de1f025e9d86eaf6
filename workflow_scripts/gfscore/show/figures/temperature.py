"""The temperature search: one panel per objective."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.names import printable, shortened_all, without_threat
from gfscore.core.numbers import signed, temperature
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    GRID,
    INK,
    MUTED,
    PAPER,
    WARNING,
    counted,
    drawing,
    framed_figure,
    laid_out,
    quiet,
)
from gfscore.show.words import takeaways

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HEAD_LINE = 12.5
PANEL_TITLES = {
    "cross_model_accuracy": "Cross-model accuracy (Eq. 8)",
    "within_model_class_accuracy": "Within-model class accuracy",
    "ranking_stability": "Ranking stability (Eq. 9)",
    "ranking_stability_endpoints": "Ranking stability, end points only",
    "likelihood": "Likelihood, each model its own T",
    "attack_distance": "Attack distance",
}
PANEL_AXES = {
    "cross_model_accuracy": "Spearman, score and clean accuracy",
    "within_model_class_accuracy": "mean Spearman over classes",
    "ranking_stability": "smallest Spearman in window",
    "ranking_stability_endpoints": "smaller Spearman of both ends",
    "attack_distance": "Spearman, score and attack distance",
}


def calibration_curves(table: pd.DataFrame, results: Mapping[str, Mapping[str, Any]], *, models: int) -> Figure:
    """One panel per objective: the searched curve over T, every optimal stretch of it, T* and T = 1.

    Takes calibration rows, the contents of calibration.json, and the number of models compared. An objective without
    a common T* (likelihood) shows every model's own T instead of a curve.
    """
    panels = list(results)
    columns = min(3 if len(panels) != 4 else 2, len(panels))
    rows = -(-len(panels) // columns)
    shaded = any(len(takeaways.optimal_stretches(result)) for result in results.values())
    words = {objective: _words(result) for objective, result in results.items()}
    room = max(map(len, words.values()))
    alone = any(result["t_star_by_model"] for result in results.values())
    with drawing():
        figure = framed_figure(
            (2.5 + room * HEAD_LINE / 72) * rows,
            title=takeaways.calibration(results),
            subtitle=f"{printable(next(iter(results.values()))['measure'])}: each objective against the temperature T, "
            f"{counted(models, 'model')}; higher is better.",
            note=("Shaded: the temperatures that are as good as the best one. " if shaded else "")
            + ("Filled dot: T*, in the widest shaded stretch. " if shaded else "")
            + ("Likelihood: a dot is one model's own T. " if alone else "")
            + "Dashed line: T = 1. Where an optimum reaches the end of the search, the search range, not the data "
            "alone, decides where it lies.",
        )
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, objective in zip(grid.flat, panels, strict=False):
            result = results[objective]
            if result["t_star_by_model"]:
                _own_temperatures(axes, result)
            elif result["t_star"] is None:
                _no_curve(axes, result)
            else:
                _curve(axes, table[table["objective"] == objective], result)
                axes.set_ylabel(PANEL_AXES.get(objective, "objective"), size=8)
            _head(axes, PANEL_TITLES.get(objective, objective.replace("_", " ")), words[objective], room=room)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        return laid_out(figure)


def _curve(axes, rows, result):
    # Both values of a step stand at its temperature, in their order.
    rows = rows.sort_values("temperature", kind="stable")
    for low, high in takeaways.optimal_stretches(result):
        # The edge keeps a stretch of one temperature visible.
        axes.axvspan(low, high, facecolor=CONTRAST, edgecolor=CONTRAST, alpha=0.3, linewidth=0.6)
    axes.plot(rows["temperature"], rows["value"], color=ACCENT, linewidth=1.6)
    axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot([result["t_star"]], [result["best"]], "o", color=CONTRAST, markersize=6)
    if result["at_one"] is not None:
        axes.plot([1], [result["at_one"]], "o", markerfacecolor=PAPER, markeredgecolor=MUTED, markersize=5.5)
    _log_axis(axes, rows["temperature"].min(), rows["temperature"].max())
    values = rows["value"].dropna()
    room = max(0.05, values.max() - values.min())
    axes.set_ylim(values.max() - 1.12 * room, values.max() + 0.12 * room)


def _words(result):
    # What is written under the title of a panel, line by line, with its style.
    lines = []
    if result["t_star"] is not None:
        at_one = f"at T = 1: {signed(result['at_one'])}" if result["at_one"] is not None else "undefined at T = 1"
        lines.append((f"T* = {temperature(result['t_star'])}: {signed(result['best'])}; {at_one}", {"color": INK}))
    if result["interval"]:
        name = "T" if result["t_star_by_model"] else "optimal"
        lines.append((f"{name}: {takeaways.optimal_range(result)}", {"color": MUTED}))
    if result["edge"]:
        lines.append(("reaches the end of the search", {"color": WARNING, "weight": "bold"}))
    return lines


def _head(axes, title, lines, *, room):
    # Everything written about a panel stands above it, so that it hides neither curve nor shading.
    axes.set_title(title, pad=5 + room * HEAD_LINE)
    for index, (line, style) in enumerate(lines):
        axes.annotate(
            line, (0, 1), xycoords="axes fraction", xytext=(0, 5 + (room - 1 - index) * HEAD_LINE),
            textcoords="offset points", ha="left", va="bottom", size=8, **style,
        )  # fmt: skip


def _no_curve(axes, result):
    reason = textwrap.fill(f"no optimum: {printable(result['undefined'])}", 38)
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", color=MUTED, size=8.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _own_temperatures(axes, result):
    labels = without_threat(result["t_star_by_model"])
    chosen = sorted(zip(labels, result["t_star_by_model"].values(), strict=True), key=lambda item: item[1])
    y = np.arange(len(chosen))
    temperatures = np.array([temperature for _, temperature in chosen])
    axes.hlines(y, np.minimum(temperatures, 1), np.maximum(temperatures, 1), color=GRID, linewidth=1.5)
    axes.plot(temperatures, y, "o", color=CONTRAST, markersize=5)
    axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    few = len(chosen) <= 24
    axes.set_yticks(y if few else [], shortened_all([name for name, _ in chosen], 22) if few else [])
    axes.tick_params(axis="y", labelsize=8 if len(chosen) <= 12 else 6)
    axes.set_ylim(-0.8, len(chosen) - 0.2)
    _log_axis(axes, min(0.5, temperatures.min()), max(2, temperatures.max()))


def _log_axis(axes, low, high):
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    axes.set_xscale("log")
    ticks = [base * 10.0**power for power in range(-4, 5) for base in (1, 2, 5)]
    ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.05]
    if len(ticks) > 6:
        ticks = [tick for tick in ticks if np.isclose(np.log10(tick) % 1, 0) or np.isclose(np.log10(tick) % 1, 1)]
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(low / 1.06, high * 1.06)
    axes.set_xlabel("temperature T (log scale)")
    quiet(axes, grid="x")
