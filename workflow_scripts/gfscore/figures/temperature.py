"""Figures about the scale of the logits: the temperature search, and a constant added to every logit."""

import textwrap

import numpy as np

from gfscore import takeaways
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
from gfscore.numbers import number, signed

WIDTH = 10.5
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
    """One panel per objective: the searched curve over T, its optimal range, T* and T = 1.

    Takes calibration rows, the contents of calibration.json, and the number of models compared. An objective without
    a common T* (likelihood) shows every model's own T instead of a curve.
    """
    panels = list(results)
    columns = min(3 if len(panels) != 4 else 2, len(panels))
    rows = -(-len(panels) // columns)
    with drawing():
        figure = framed_figure(
            WIDTH,
            2.75 * rows,
            title=takeaways.calibration(results),
            subtitle=f"{printable(next(iter(results.values()))['measure'])}: each objective against the temperature T, "
            f"{counted(models, 'model')}; higher is better.",
            note="Shaded: every temperature that is as good as the best one. Solid line: T*. Dashed line: T = 1. "
            "An optimum that reaches the end of the search says that the search range, not the data, chose T*.",
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
            axes.set_title(PANEL_TITLES.get(objective, objective.replace("_", " ")))
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        return laid_out(figure)


def _curve(axes, rows, result):
    rows = rows.sort_values("temperature")
    low, high = result["interval"]
    axes.axvspan(low, high, color=CONTRAST, alpha=0.18, linewidth=0)
    axes.plot(rows["temperature"], rows["value"], color=ACCENT, linewidth=1.6)
    axes.axvline(result["t_star"], color=CONTRAST, linewidth=1.6)
    axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot([result["t_star"]], [result["best"]], "o", color=CONTRAST, markersize=6)
    if result["at_one"] is not None:
        axes.plot([1], [result["at_one"]], "o", markerfacecolor=PAPER, markeredgecolor=MUTED, markersize=5.5)
    _log_axis(axes, rows["temperature"].min(), rows["temperature"].max())
    values = rows["value"].dropna()
    room = max(0.05, values.max() - values.min())
    axes.set_ylim(values.max() - 1.5 * room, values.max() + 0.1 * room)
    at_one = f"at T = 1: {signed(result['at_one'])}" if result["at_one"] is not None else "undefined at T = 1"
    lines = [f"T* = {result['t_star']:.3g}: {signed(result['best'])}", at_one]
    box = {"facecolor": PAPER, "alpha": 0.85, "edgecolor": "none", "pad": 2}
    place = {"transform": axes.transAxes, "ha": "right", "va": "bottom", "size": 8, "bbox": box}
    axes.text(0.985, 0.12 if result["edge"] else 0.03, "\n".join(lines), linespacing=1.45, color=INK, **place)
    if result["edge"]:
        _warn_of_edge(axes)


def _warn_of_edge(axes):
    axes.text(
        0.985, 0.03, "reaches the end of the search", transform=axes.transAxes, ha="right", va="bottom",
        size=8, color=WARNING, weight="bold", bbox={"facecolor": PAPER, "alpha": 0.85, "edgecolor": "none", "pad": 2},
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
    if result["edge"]:
        _warn_of_edge(axes)
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
    constant that means nothing.
    """
    measures = list(table["measure"].unique())
    models = table[["dataset", "threat", "model"]].drop_duplicates()
    with drawing():
        figure = framed_figure(
            WIDTH,
            3.4,
            title=takeaways.logit_shift(table),
            subtitle=f"Aggregate score of {counted(len(models), 'model')} on "
            f"{printable(table['dataset'].iloc[0])} when the same constant is added to every logit.",
            note="The classifier decides the same at every shift. Values on the samples at hand; no intervals, since "
            "the samples are the same at every shift. Named: the model that moves most.",
        )
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, measure in zip(panels, measures, strict=True):
            rows = table[table["measure"] == measure]
            rows = rows.assign(label=model_labels(rows))
            _shift_lines(axes, rows)
            moved = takeaways.largest_shift(rows)
            change = f"moves by up to {number(moved)}" if moved > takeaways.UNCHANGED else "does not move"
            axes.set_title(f"{shortened(measure, 30)}: {change}")
            axes.set_xlabel("constant added to every logit")
            quiet(axes, grid="y")
        panels[0].set_ylabel("aggregate score (higher is better)")
        panels[0].set_ylim(bottom=0)
        return laid_out(figure)


def _shift_lines(axes, rows):
    changes = {}
    for label, model in rows.groupby("label", sort=False):
        ordered = model.sort_values("shift")
        axes.plot(ordered["shift"], ordered["value"], ".-", color=ACCENT, alpha=0.45, linewidth=1.4, markersize=4)
        changes[label] = (np.ptp(ordered["value"].to_numpy()), ordered)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    label, (change, ordered) = max(changes.items(), key=lambda item: item[1][0])
    if change > takeaways.UNCHANGED:
        axes.plot(ordered["shift"], ordered["value"], color=CONTRAST, linewidth=2)
        peak = ordered.iloc[int(ordered["value"].to_numpy().argmax())]
        axes.annotate(
            shortened(label, 26), (peak["shift"], peak["value"]), xytext=(0, 6), textcoords="offset points",
            ha="center", va="bottom", color=INK, size=8,
        )  # fmt: skip
