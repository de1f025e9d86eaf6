"""Tolerance and Deviation of every model along every latent dimension, and what moving a dimension does to images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.projections.columns import SCALED
from gfscore.core.names import model_labels, printable, shortened_all
from gfscore.core.numbers import number, percent
from gfscore.show.figures.cells import bare, colour_bar, colours, name_columns, number_cells, separate_cells
from gfscore.show.figures.style import ABSENT, counted, drawing, framed_figure, laid_out

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_ROWS, MOST_NUMBERED = 60, 24
BESIDE = ("accuracy", "censored", "constant")
DIVERGING = "PuOr"
"""Two hues that people without colour vision tell apart, light at zero."""


def tolerance_by_dimension(scores: pd.DataFrame) -> Figure:
    """Two matrices of models (rows) by latent dimensions: mean Tolerance and mean Deviation, all dimensions first.

    Takes rows of projection_scores; models are in the order of their Tolerance, accuracy and censoring beside their
    names; constant classifiers come last, marked, and are in no mean. Attributes have no Deviation: none is drawn then.
    """
    whole = scores[scores["class_index"] == ALL]
    means = whole[whole["dimension_index"] == ALL].sort_values(["constant", "tolerance"], ascending=[True, False])
    shown = means.head(MOST_ROWS)
    labels = [_beside(*row) for row in zip(_labels(shown), *(shown[name] for name in BESIDE), strict=True)]
    order = whole.drop_duplicates("dimension_index").sort_values("dimension_index")
    both = bool(means["deviation"].notna().all())
    drawn = ("tolerance", "deviation") if both else ("tolerance",)
    matrices = {name: _matrix(whole, shown, order["dimension_index"], name) for name in drawn}
    rows, columns = len(shown), len(order)
    models = means[~means["constant"].astype(bool)]
    what = "latent dimensions" if both else "attributes"
    of_moves = "of up to one sigma" if both else "to the other end of an attribute's range"
    with drawing():
        figure = framed_figure(
            0.9 + 0.3 * max(rows, 3),
            title=_sentence(whole[~whole["constant"].astype(bool)], len(models)),
            subtitle=f"Mean over n = {int(means['n'].max()):,} samples of {means['dataset'].iloc[0]}, "
            f"{what} of {means['mapper'].iloc[0]}, moves {of_moves}. In brackets: clean accuracy of these samples, "
            "and the share of moves that change no prediction and count as 1.",
            note="A constant classifier has Tolerance 1, which says nothing without the accuracy: it is marked, and "
            "left out of the title."
            + (" Deviation is at most 1\N{NO-BREAK SPACE}\N{MINUS SIGN}\N{NO-BREAK SPACE}Tolerance." if both else "")
            + (f" The {MOST_ROWS} models with the largest Tolerance of {len(means)}." if len(means) > rows else ""),
        )
        panels = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
        for axes, (name, values) in zip(panels, matrices.items(), strict=True):
            image = axes.imshow(values, cmap=colours(), interpolation="nearest", aspect="auto")
            separate_cells(axes, rows, columns)
            name_columns(
                axes, shortened_all(["all", *order["dimension"][1:]], 14 if both else 24), room=88 // len(drawn)
            )
            if rows * columns <= MOST_NUMBERED * 12:
                number_cells(axes, values, image, lambda value: f"{value:.2f}", size=7.5)
            bare(axes)
            colour_bar(figure, image, axes, f"{name.capitalize()} ({'higher' if SCALED[name] else 'lower'} is better)")
        panels[0].set_yticks(range(rows), labels)
        return laid_out(figure)


def effects_of_dimensions(effects: pd.DataFrame) -> Figure:
    """Matrix of latent dimensions (rows) by traits of decoded images: standardised change from -sigma to +sigma.

    Takes rows of projection_effects; Tolerance and divergence stand beside the names of the dimensions.
    """
    rows = effects.drop_duplicates("dimension_index").sort_values("dimension_index")
    traits = list(dict.fromkeys(effects["trait"]))
    measured = set(effects.loc[effects["how"] == "measured", "trait"])
    values = effects.pivot(index="dimension_index", columns="trait", values="shift").loc[
        rows["dimension_index"], traits
    ]
    values = values.to_numpy(dtype=np.float64)
    reach = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    labels = [
        f"{name}  (Tolerance {number(t)}, {_share(c)} censored)"
        for name, t, c in zip(rows["dimension"], rows["tolerance"], rows["censored"], strict=True)
    ]
    with drawing():
        import matplotlib as mpl

        figure = framed_figure(
            1.3 + 0.34 * max(len(rows), 3),
            title=_strongest(rows, traits, values, measured),
            subtitle=f"Mean change of a decoded image when one {_moved(rows)}, in standard deviations of the trait "
            "over real images" + ("." if measured == set(traits) else "; of attributes, of their probability."),
            note=_unused(rows) + _of_models(rows) + " A dimension may move several traits at once: "
            "disentanglement is asked of the mapper, not guaranteed.",
        )
        axes = figure.subplots()
        cmap = mpl.colormaps[DIVERGING].with_extremes(bad=ABSENT)
        image = axes.imshow(values, cmap=cmap, vmin=-reach, vmax=reach, interpolation="nearest", aspect="auto")
        separate_cells(axes, len(rows), len(traits))
        name_columns(axes, shortened_all([_readable(trait, measured) for trait in traits], 24), room=80)
        number_cells(axes, values, image, _signed, size=8)
        axes.set_yticks(range(len(rows)), labels)
        bare(axes)
        colour_bar(figure, image, axes, "change in standard deviations" if measured == set(traits) else "change")
        return laid_out(figure)


def _matrix(whole, shown, dimensions, name):
    keys = list(zip(shown["threat"], shown["model"], strict=True))
    table = whole.pivot(index=["threat", "model"], columns="dimension_index", values=name)
    return table.loc[keys, list(dimensions)].to_numpy(dtype=np.float64)


def _labels(frame):
    return shortened_all(model_labels(frame), 24)


def _beside(name, accuracy, censored, constant):
    mark = ", constant" if constant else ""
    return f"{name}  ({_share(accuracy)}, {_share(censored)}{mark})"


def _share(value):
    return "n/a" if value is None or np.isnan(value) else percent(round(float(value), 3))


def _of_models(rows):
    first = rows.iloc[0]
    if not first["models"]:
        return " Every classifier is constant: no Tolerance."
    return (
        f" Tolerance and share of censored moves: mean over {counted(int(first['models']), 'model')} that "
        f"{'is' if first['models'] == 1 else 'are'} not constant, of clean accuracy {_share(first['accuracy'])}."
    )


def _sentence(whole, models):
    if whole.empty:
        return "Every classifier gives all decoded images one class, so that no Tolerance says anything"
    apart = whole[whole["dimension_index"] != ALL].groupby("dimension", sort=False)["tolerance"].mean()
    if apart.min() == 1:
        return "No move along any latent dimension changes a prediction"
    most = apart.idxmin()
    over = f", mean over {counted(models, 'model')}" if models > 1 else ""
    return f"Predictions depend most on {printable(most)}: Tolerance {number(apart.min())}{over}"


def _signed(value):
    # No -0.00: what rounds to zero has no sign worth printing.
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 0.005 else "0.00"


def _moved(rows):
    mapper = rows["mapper"].iloc[0]
    if of_attributes(rows):
        return f"attribute of {mapper} goes from one end of its range to the other"
    return f"dimension of {mapper} goes from \N{MINUS SIGN}sigma to +sigma"


def _readable(trait, measured):
    # What is measured on images has names of ours; attributes keep theirs, as the rows do.
    return trait.replace("_", " ") if trait in measured else trait


def _strongest(rows, traits, values, measured):
    if not np.isfinite(values).any() or np.nanmax(np.abs(values)) == 0:
        return "No latent dimension changes anything that is measured"
    row, column = np.unravel_index(np.nanargmax(np.abs(values)), values.shape)
    name, trait = printable(rows["dimension"].iloc[row]), printable(_readable(traits[column], measured))
    way = "raises" if values[row, column] > 0 else "lowers"
    unit = "standard deviations" if traits[column] in measured else "in probability"
    return f"{name} {way} {trait} most: by {number(abs(values[row, column]))} {unit} from one side to the other"


UNUSED_BELOW = 0.05
"""Divergence from the prior, in nats, below which a decoder hardly uses a dimension."""


def of_attributes(effects: pd.DataFrame) -> bool:
    """Whether what the mapper moves are attributes, which have no divergence from a prior (projection_effects rows)."""
    return bool(effects["divergence"].isna().all())


def _unused(rows):
    if of_attributes(rows):
        return "Tolerance: share of an attribute's range that a move crosses before predictions change."
    idle = rows[rows["divergence"].notna() & (rows["divergence"].astype(float) < UNUSED_BELOW)]
    if idle.empty:
        return "Every dimension is in use."
    return f"Hardly used by the decoder (divergence below {UNUSED_BELOW} nats): {', '.join(idle['dimension'])}."
