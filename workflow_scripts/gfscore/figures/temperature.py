"""Figures about the scale of the logits: the temperature search, and a constant added to every logit."""

import textwrap

import numpy as np

from gfscore.figures.placement import spread_out, text_extent
from gfscore.figures.style import (
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
from gfscore.names import model_labels, printable, shortened, shortened_all, without_threat
from gfscore.numbers import number, signed, temperature
from gfscore.report import takeaways

WIDTH = 10.5
MOST_NAMED_LINES, SOME_NAMED_LINES = 15, 8
HEAD_LINE = 12.5
LINE_NAME_SIZE, LINE_NAME_GAP = 8, 20
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


def calibration_curves(table, results, *, models):
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
            WIDTH,
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


def logit_shift_sensitivity(table):
    """Aggregate score of each model against a constant added to all its logits, one panel per measure.

    Takes sensitivity rows. Predictions and softmax do not change; a sigmoid score does, so its level depends on a
    constant that means nothing. Beyond 15 models only those that move most are named.
    """
    measures = list(table["measure"].unique())
    models = table[["dataset", "threat", "model"]].drop_duplicates()
    named = "" if len(models) <= MOST_NAMED_LINES else f" Named: the {SOME_NAMED_LINES} models that move most."
    with drawing():
        figure = framed_figure(
            WIDTH,
            3.9,
            title=takeaways.logit_shift(table),
            subtitle=f"Aggregate score of {counted(len(models), 'model')} on "
            f"{printable(table['dataset'].iloc[0])} when the same constant is added to every logit.",
            note="The classifier decides the same at every shift. Values on the samples at hand; no intervals, since "
            f"the samples are the same at every shift. Thick line: the model that moves most.{named}",
        )
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        lines = {}
        for axes, measure in zip(panels, measures, strict=True):
            rows = table[table["measure"] == measure]
            lines[axes] = _shift_lines(axes, rows.assign(label=model_labels(rows)))
            moved = takeaways.largest_shift(rows)
            change = f"moves by up to {number(moved)}" if moved > takeaways.UNCHANGED else "does not move"
            axes.set_title(f"{shortened(measure, 30)}: {change}")
            axes.set_xlabel("constant added to every logit")
            quiet(axes, grid="y")
        panels[0].set_ylabel("aggregate score (higher is better)")
        panels[0].set_ylim(bottom=0)
        laid_out(figure)
        for axes, drawn in lines.items():
            _name_lines(axes, drawn)
        return laid_out(figure)


def _shift_lines(axes, rows):
    # Draws one line per model; returns (label, shifts, values), the model that moves most first.
    lines = []
    for label, model in rows.groupby("label", sort=False):
        ordered = model.sort_values("shift")
        lines.append((label, ordered["shift"].to_numpy(), ordered["value"].to_numpy()))
    lines.sort(key=lambda line: -np.ptp(line[2]))
    for index, (_, shifts, values) in enumerate(lines):
        most = index == 0 and len(lines) > 1 and np.ptp(values) > takeaways.UNCHANGED
        style = {"color": CONTRAST, "linewidth": 2.2, "zorder": 3} if most else {"color": ACCENT, "linewidth": 1.3}
        axes.plot(shifts, values, ".-", alpha=1 if most else 0.55, markersize=4, **style)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    return lines


def _name_lines(axes, lines):
    # Names stand in a column at the end where the lines are further apart, in the order of their ends.
    if len(lines) > MOST_NAMED_LINES:
        lines = [line for line in lines[:SOME_NAMED_LINES] if np.ptp(line[2]) > takeaways.UNCHANGED]
    if not lines:
        return
    ends = np.array([values[[0, -1]] for _, _, values in lines])
    side = int(np.ptp(ends[:, 1]) >= np.ptp(ends[:, 0]))
    names = shortened_all([label for label, _, _ in lines], 18)
    extents = np.array([text_extent(axes, name, LINE_NAME_SIZE) for name in names])
    first, last = min(line[1][0] for line in lines), max(line[1][-1] for line in lines)
    box = axes.get_window_extent().bounds * np.array(72 / axes.figure.dpi)
    taken = min(0.6, (extents[:, 0].max() + LINE_NAME_GAP + 4) / box[2])
    room = (last - first) * 1.03 / (1 - taken) * taken
    margin = 0.03 * (last - first)
    # Ticks belong to the data, not to the room for names.
    axes.set_xticks([tick for tick in axes.get_xticks() if first <= tick <= last])
    axes.set_xlim(first - (margin if side else room), last + (room if side else margin))
    low, high = axes.get_ylim()
    height = 1.1 * extents[:, 1].max() / box[3] * (high - low)
    places = spread_out(ends[:, side], height, low=low + height / 2, high=high - height / 2)
    leader = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 3}
    leader["relpos"] = (1 - side, 0.5)
    gap = LINE_NAME_GAP / box[2] * np.ptp(axes.get_xlim())
    for (_, shifts, _), end, name, place in zip(lines, ends[:, side], names, places, strict=True):
        x = shifts[-side]
        axes.annotate(
            name, (x, end), xytext=(x + (gap if side else -gap), place), textcoords="data",
            ha="left" if side else "right", va="center", color=INK, size=LINE_NAME_SIZE,
            arrowprops=leader,
        ).set_in_layout(False)  # fmt: skip
