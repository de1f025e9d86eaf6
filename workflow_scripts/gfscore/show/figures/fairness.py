"""How much predictions depend on each attribute, class by class: the metrics of group fairness as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.core.class_names import readable_classes
from gfscore.core.names import class_phrase, model_count, printable, shortened_all
from gfscore.show.figures.cells import (
    bare,
    colour_bar,
    colours,
    mark_cells,
    name_columns,
    number_cells,
    separate_cells,
)
from gfscore.show.figures.style import counted, drawing, framed_figure, laid_out

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_CLASSES, MOST_MARKED, MOST_NUMBERED = 40, 12, 5
METRICS = {"dp": "Demographic parity", "eopp": "Equal opportunity", "eodd": "Equalized odds", "aodd": "Average odds"}


def group_metric_heatmap(metrics: pd.DataFrame) -> Figure:
    """Each metric by class (rows, the positive one against the rest) and attribute (columns), mean over models.

    Takes group_metrics rows of one measure. Beyond 40 classes those with the largest equal opportunity differences are
    drawn. A cell is grey where the metric has no value in any model, and dotted where it rests on few samples; the
    title is about the others. Source: the layout of the projection-fairness paper's Fig. 6, with classes in place of
    task attributes.
    """
    rows = metrics[metrics["class_index"] != ALL]
    attributes = list(dict.fromkeys(rows["attribute"]))
    tables, small = (
        {metric: _by_class(rows[rows["metric"] == metric], attributes, name, how) for metric in METRICS}
        for name, how in (("value", "mean"), ("small", "max"))
    )
    chosen = _largest(tables["eopp"])
    index = tables["eopp"].index[chosen]
    names = rows.drop_duplicates("class_index").set_index("class_index")["class_name"][index]
    classes = readable_classes(names)
    values = {metric: table.loc[index].to_numpy(dtype=float) for metric, table in tables.items()}
    few = {metric: table.loc[index].to_numpy(dtype=bool) for metric, table in small.items()}
    models = model_count(rows)
    left_out = len(tables["eopp"]) - len(index)
    with drawing():
        figure = framed_figure(
            0.28 * len(index) + 1.5,
            title=_sentence(values["eopp"], few["eopp"], classes, attributes),
            subtitle=f"Largest difference between groups, {printable(rows['measure'].iloc[0])}, "
            f"{printable(rows['dataset'].iloc[0])}; each class against the rest, mean over {counted(models, 'model')}. "
            "0, dark: groups treated alike; 1, bright: as differently as possible.",
            note="Approximate numbers: largest differences are biased upwards by noise, most where groups are small. "
            "Demographic parity also differs where groups contain different classes. Dot: fewer samples than "
            "the audit's smallest cell, left out of the title. Grey: a group without samples."
            + (f" {counted(left_out, 'class')} with smaller differences left out." if left_out else ""),
        )
        panels = figure.subplots(1, len(METRICS), sharey=True)
        for axes, (metric, title) in zip(panels, METRICS.items(), strict=True):
            image = axes.imshow(values[metric], cmap=colours(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
            separate_cells(axes, *values[metric].shape)
            name_columns(axes, shortened_all(attributes, 16), room=14)
            axes.set_yticks(range(len(index)), shortened_all(classes, 24))
            axes.set_xlabel(title, weight="bold", size=9.5, labelpad=8)
            bare(axes)
            if len(attributes) <= MOST_MARKED:
                mark_cells(axes, few[metric] & ~np.isnan(values[metric]))
            if len(attributes) <= MOST_NUMBERED:
                number_cells(axes, values[metric], image, lambda value: f"{value:.2f}", size=7)
        colour_bar(figure, image, panels, "difference (no unit)")
        return laid_out(figure)


def _by_class(rows, attributes, name, how):
    table = rows.groupby(["class_index", "attribute"])[name].agg(how).unstack()
    return table.reindex(columns=attributes)


def _largest(table):
    # Places of the classes that are drawn, in the order of the classes.
    if len(table) <= MOST_CLASSES:
        return np.arange(len(table))
    largest = np.nan_to_num(table.max(axis=1).to_numpy(dtype=float), nan=-1)
    return np.sort(np.argsort(-largest, kind="stable")[:MOST_CLASSES])


def _sentence(values, few, classes, attributes):
    if np.isnan(values).all():
        return "No class has samples in two groups, so that nothing can be compared"
    values = np.where(few, np.nan, values)
    if np.isnan(values).all():
        return "No class has enough samples in each group to compare its recall"
    k, a = np.unravel_index(np.nanargmax(values), values.shape)
    largest = f"{class_phrase(classes[k])} by {printable(attributes[a])}, {100 * values[k, a]:.0f} points"
    return f"Largest difference of recall found between groups: {largest}"
