"""Tables of projections as LaTeX, laid out like Tables 1 to 3 of the projection-fairness paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.core.names import model_labels
from gfscore.core.numbers import MINUS, count, is_missing, model_count, number
from gfscore.show.exports.latex import MISSING, latex_of

if TYPE_CHECKING:
    import pandas as pd

OF_SAMPLES = {"Acc": "task_accuracy", "DP": "dp", "EOpp": "eopp", "EOdd": "eodd"}
"""Columns of all samples of the task, by title."""

OF_MOVES = {"Tol": "tolerance", "Dev": "deviation"}
"""Columns of the moves, which say nothing of a constant classifier."""

OF_COUPLING = {"Coupling": "coupling"}

CONSTANT = "*"


def projection_table(models: pd.DataFrame) -> str:
    """Scores of every model over all sensitive attributes, task beside task: Tables 1 and 3 of the paper, a str.

    Takes projection_models rows of one mapper. Numbers have three significant digits and are in 0..1, as they stand.
    """
    compared = models["group_attributes"].dropna()
    attributes = f", the last three mean over {_range(compared)} attributes" if len(compared) else ""
    caption = (
        f"Scores over all sensitive attributes by task, {_about(models)} Acc, DP, EOpp, EOdd: of all "
        f"samples{attributes}. Tol, Dev: of {_range(models['n'])} samples, mean over {_range(models['dimensions'])} "
        "dimensions. The attribute that is the task itself is left out. Higher is better for Acc and Tol, lower for "
        f"others. {_marks(models, OF_MOVES)}"
    )
    return _latex(models, OF_SAMPLES | OF_MOVES, caption=caption, name="projection")


def coupling_table(models: pd.DataFrame) -> str:
    """Coupling of every model by task: Table 2 of the paper, a str. Takes projection_models rows of one mapper."""
    caption = f"Coupling by task, {_about(models)} {_marks(models, OF_COUPLING)}"
    return _latex(models, OF_COUPLING, caption=caption, name="coupling")


def _latex(models, columns, *, caption, name):
    import pandas as pd

    # A model has one name in every task.
    label = model_labels(models.assign(dataset=""))
    parts = {"": pd.DataFrame({"Model": dict.fromkeys(label)})}
    shown = pd.DataFrame({title: models.apply(_cell, axis=1, column=column) for title, column in columns.items()})
    for task, rows in shown.assign(label=label).groupby(models["dataset"], sort=False):
        parts[task] = rows.set_index("label")
    frame = pd.concat(parts, axis=1)
    frame["", "Model"] = frame.index
    if len(columns) == 1:
        frame.columns = ["Model", *frame.columns.get_level_values(0)[1:]]
    aligned = "l" + "r" * (frame.shape[1] - 1)
    return latex_of(frame, caption=caption, label=f"tab:{models['mapper'].iloc[0]}-{name}", aligned=aligned)


def _cell(row, column):
    if row["constant"] and column not in OF_SAMPLES.values():
        return MISSING + CONSTANT
    return MISSING if is_missing(row[column]) else number(row[column]).replace(MINUS, "-")


def _about(models):
    named = models[["threat", "model"]].drop_duplicates()
    return f"{model_count(len(named))} on the mapper {models['mapper'].iloc[0]}."


def _range(values):
    low, high = count(values.min()), count(values.max())
    return low if low == high else f"{low} to {high}"


def _marks(models, columns):
    # What of the marks stands in the table.
    constant = models["constant"].astype(bool)
    found = [f"{MISSING}{CONSTANT}: constant, one class for all decoded images."] if constant.any() else []
    if models.loc[~constant, list(columns.values())].isna().any(axis=None):
        found.append(f"{MISSING}: undefined, as Dev where moves have one side.")
    return " ".join(found)
