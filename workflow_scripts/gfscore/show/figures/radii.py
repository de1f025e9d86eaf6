"""Share of samples that stay right against the radius: survival under attacks, and certified accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.core.class_names import classes_of
from gfscore.core.names import model_count, model_labels, shortened, shortened_all
from gfscore.core.numbers import number, percent
from gfscore.show.figures.grid import panel_names
from gfscore.show.figures.placement import spread_out, text_extent
from gfscore.show.figures.style import (
    ACCENT,
    CONTRAST,
    INK,
    MUTED,
    counted,
    drawing,
    framed_figure,
    laid_out,
    panel_columns,
    panel_width,
    quiet,
    sample_range,
)
from gfscore.show.words.takeaways import weakest_class

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gfscore.measures import Measure

MODEL = ["dataset", "threat", "model"]
MOST_MODELS, MOST_NAMED_LINES = 20, 24
MOST_CLASS_LINES, MOST_BANDS = 40, 8
NAME_SIZE = 8
WHAT = {
    "minimal": ("not broken within r", "an upper bound on the truth, but for the draw of samples"),
    "certified": (
        "certified to r, smoothed classifier",
        "a lower bound on the truth, but for the draw of samples and wrong certificates",
    ),
}


def model_curves(rows: pd.DataFrame, measure: Measure, scores: pd.DataFrame) -> Figure:
    """Share of all samples that is right and robust to radius r, one line per model, with its bound.

    Takes radius_curves rows of one measure, that measure, and class_scores rows of it, whose means order the lines.
    """
    rows = _while_any_stands(rows)
    known = scores[scores["n"] > 0]
    sums = known.assign(total=known["value"] * known["n"]).groupby(MODEL, sort=False)[["total", "n"]].sum()
    means = (sums["total"] / sums["n"]).rename("mean").reset_index()
    whole = rows[rows["class_index"] == ALL].merge(means, on=MODEL, validate="many_to_one")
    lines = _lines(whole.assign(label=model_labels(whole)), "label")
    kind = rows["kind"].iloc[0]
    what, side = WHAT[kind]
    few = len(lines) <= MOST_BANDS
    with drawing():
        figure = framed_figure(
            4.0,
            title=_model_sentence(lines, kind, measure),
            subtitle=f"{measure.title}, {rows['measure'].iloc[0]}, {rows['dataset'].iloc[0]}; "
            f"{counted(len(lines), 'model')}, n = {int(whole['n'].max()):,} samples. Share {what}: {side}.",
            note=_how_to_read(whole, kind, of="each line by itself" + ("" if few else "; drawn for the lowest line")),
        )
        axes = figure.subplots()
        for index, (_, line) in enumerate(lines):
            _draw(axes, line, colour=CONTRAST if index == 0 and len(lines) > 1 else ACCENT, bound=few or index == 0)
        axes.set_ylabel(f"share {what}\n(higher is better)")
        _radius_axis(axes, f" ({measure.unit})", end=rows["radius"].max())
        axes.set_ylim(0, 1.02)
        laid_out(figure)
        if len(lines) <= MOST_NAMED_LINES:
            _name_ends(axes, lines)
        return laid_out(figure)


def class_curves(rows: pd.DataFrame, measure: Measure, scores: pd.DataFrame) -> Figure:
    """The same for each class, one panel per model: the weakest class stands out, the rest shows the spread.

    Takes radius_curves rows of one measure of at most 20 models, that measure, and class_scores rows of it, whose means
    order the lines.
    """
    rows = _while_any_stands(rows)
    means = scores[[*MODEL, "class_index", "value"]].rename(columns={"value": "mean"})
    classes = rows[rows["class_index"] != ALL].merge(means, on=[*MODEL, "class_index"], validate="many_to_one")
    names = classes_of(classes)
    panels = {
        label: _lines(own, "class_index")
        for label, own in classes.assign(label=model_labels(classes)).groupby("label", sort=False)
    }
    kind = rows["kind"].iloc[0]
    what, side = WHAT[kind]
    columns = panel_columns(len(panels))
    count = -(-len(panels) // columns)
    with drawing():
        figure = framed_figure(
            max(2.2, panel_width(columns) * 0.8) * count + 0.3,
            title=weakest_class(scores.merge(classes[MODEL].drop_duplicates(), on=MODEL)),
            subtitle=f"{measure.title} by class, {rows['measure'].iloc[0]}, {rows['dataset'].iloc[0]}; "
            f"{counted(len(panels), 'model')}, {sample_range(classes['n'].to_numpy())}. Share {what}: {side}.",
            note=f"Radius in {measure.unit}. Thin lines: classes. Thick: the class with the smallest mean, "
            "named in the panel. "
            + _how_to_read(classes, kind, of="all classes of a model together, drawn for the thick line"),
        )
        grid = figure.subplots(count, columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        titles = panel_names(panels, columns)
        for index, lines in enumerate(panels.values()):
            axes = grid.flat[index]
            for _, line in lines[1 : MOST_CLASS_LINES + 1]:
                axes.plot(line["radius"], line["share"], color=ACCENT, linewidth=0.9, alpha=0.5)
            weakest, line = lines[0]
            _draw(axes, line, colour=CONTRAST, bound=True)
            axes.set_title(f"{titles[index]}: {shortened(names[weakest], 14)}", size=8)
            _radius_axis(axes, "", end=rows["radius"].max(), labelled=index + columns >= len(panels), size=8)
            axes.tick_params(labelbottom=index + columns >= len(panels))
            if index % columns == 0:
                axes.set_ylabel("share (higher is better)", size=8)
        grid.flat[0].set_ylim(0, 1.02)
        return laid_out(figure)


def _while_any_stands(rows):
    # Up to the first radius at which every share is 0: beyond it there is nothing to see.
    standing = rows.loc[rows["share"] > 0, "radius"].max()
    following = rows.loc[rows["radius"] > standing, "radius"]
    return rows[rows["radius"] <= (following.min() if len(following) else standing)]


def drawable(rows: pd.DataFrame) -> bool:
    """Whether the classes of these radius_curves rows can be shown: at most 20 models."""
    return model_count(rows) <= MOST_MODELS


def _lines(rows, key):
    # (name, rows by radius), the smallest mean first; lines without samples are left out.
    found = [(name, own.sort_values("radius")) for name, own in rows.groupby(key, sort=False)]
    found = [(name, own) for name, own in found if own["share"].notna().any()]
    return sorted(found, key=lambda item: (round(_mean(item[1]), 12), str(item[0])))


def _mean(line):
    return float(line["mean"].iloc[0])


def _draw(axes, line, *, colour, bound):
    axes.plot(line["radius"], line["share"], color=colour, linewidth=1.8)
    for name in ("low", "high"):
        if bound and line[name].notna().any():
            axes.fill_between(line["radius"], line["share"], line[name], color=colour, alpha=0.13, linewidth=0)


def _radius_axis(axes, unit, *, end, labelled=True, size=None):
    axes.set_xlim(0, end)
    if labelled:
        axes.set_xlabel(f"radius r{unit}", size=size)
    quiet(axes, grid="both")


def _name_ends(axes, lines):
    # Names stand in a column beside the axes, in the order of the lines at the last radius that still tells them apart.
    radii = lines[0][1]["radius"].to_numpy()
    shares = np.array([line["share"].ffill().to_numpy() for _, line in lines])
    at = int(np.argmax(np.ptp(shares, axis=0)))
    names = shortened_all([name for name, _ in lines], 24)
    box = axes.get_window_extent().bounds
    height = 1.15 * max(text_extent(axes, name, NAME_SIZE)[1] for name in names) * axes.figure.dpi / 72 / box[3] * 1.02
    places = spread_out(shares[:, at], height, low=height / 2, high=1.02 - height / 2)
    room = radii[-1] * 0.2
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= radii[-1]])
    axes.set_xlim(0, radii[-1] + room)
    for index, (name, place) in enumerate(zip(names, places, strict=True)):
        axes.annotate(
            name, (radii[at], shares[index, at]), xytext=(radii[-1] + 0.04 * room, place), textcoords="data",
            va="center", ha="left", size=NAME_SIZE, color=CONTRAST if index == 0 and len(lines) > 1 else INK,
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.4, "shrinkA": 1, "shrinkB": 1,
                        "relpos": (0, 0.5)},
        ).set_in_layout(False)  # fmt: skip


def _how_to_read(rows, kind, *, of):
    confidence = percent(rows["confidence"].iloc[0])
    if kind == "minimal":
        bound = (
            f"Band: up to the upper {confidence} bound at each radius ({of}). " if rows["high"].notna().any() else ""
        )
        return (
            f"{bound}Attacks that fail prove nothing, so the truth may lie below any line. Lines end where samples "
            "were left without an adversarial example, and where all are 0."
        )
    bound = f"Band: down to the lower {confidence} bound at each radius ({of}). " if rows["low"].notna().any() else ""
    return f"{bound}It holds for the smoothed classifier, and says nothing about the classifier before smoothing."


def _model_sentence(lines, kind, measure):
    mean = "mean distance found" if kind == "minimal" else "mean radius"
    best, worst = lines[-1], lines[0]
    if len(lines) == 1:
        return f"{shortened_all([best[0]], 40)[0]}: {mean} {number(_mean(best[1]))} ({measure.unit})"
    names = shortened_all([best[0], worst[0]], 30)
    ends = f"largest for {names[0]} ({number(_mean(best[1]))}), smallest for {names[1]} ({number(_mean(worst[1]))})"
    return f"{mean.capitalize()}: {ends}"
