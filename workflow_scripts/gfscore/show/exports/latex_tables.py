"""Tables of an audit as LaTeX.

They are laid out like Tables 2 to 5 of the GF-Score paper, and, of projections, like Tables 1 to 3 of the
projection-fairness paper.
"""

import re
from collections.abc import Mapping
from math import isnan

import pandas as pd

from gfscore.audit.calibration.evidence import ROBUST, alone
from gfscore.audit.calibration_results import Calibrations
from gfscore.audit.findings.words import OBJECTIVE_PHRASES
from gfscore.audit.metrics import MAIN
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import classes_of, readable_classes
from gfscore.core.names import model_labels, printable, with_ties
from gfscore.core.numbers import (
    MINUS,
    count_range,
    counted,
    is_missing,
    number,
    percent,
    setting,
    temperature,
)
from gfscore.measures.declaration import Measure

DECIMALS = 3

MOST_COLUMNS = 12
"""Largest number of classes that stand in columns; more of them stand in rows, on as many pages as they need."""

OBJECTIVE_OF_PAPER = "within_model_class_accuracy"
"""Objective of the calibration that the paper's numbers follow."""

MISSING = "--"
"""Cell of a number that is undefined or unknown."""

EDGE_MARK = "*"
"""Behind a temperature, or the title of scores, whose optimum is at an end of the search."""

EDGE_NOTE = f"{EDGE_MARK}: optimum at the edge of the search, a wider one may choose another T."

SPLIT_NOTE = "without the samples that chose T"
"""Of scores after a search on a part of the samples (`calibration: split`)."""

CONSTANT_MARK = "*"
"""Behind MISSING, for a classifier that gives all decoded images one class."""

LATEX_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
    }
)
"""What LaTeX would read as a command, or print as another character."""

SAMPLE_COLUMNS = {"Acc": "task_accuracy", "DP": "dp", "EOpp": "eopp", "EOdd": "eodd"}
"""Columns of all samples of the task, by title."""

MOVE_COLUMNS = {"Tol": "tolerance", "Dev": "deviation"}
"""Columns of the moves, which say nothing of a constant classifier."""

COUPLING_COLUMNS = {"Coupling": "coupling"}


# ---- models and classes ----


def model_table(
    summary: pd.DataFrame,
    measure: Measure,
    *,
    name: str,
    fp_lambda: float,
    calibrations: Calibrations,
) -> str:
    """Scores and disparity of every model, the most robust first: Tables 3 and 4 of the paper.

    Models without a known robust accuracy follow, by score. Disparity is of the values at T = 1, as in the paper.
    Calibrated scores follow the objective of the paper's numbers, or the first one where an audit does not have it.

    Parameters
    ----------
    summary : DataFrame
        Rows of model_summary of one measure with every calibration.
    measure : Measure
    name : str
        Name of the measure in config.yaml.
    fp_lambda : float
        Lambda of FP.
    calibrations : mapping of str to Calibration
        By objective; they say whether an optimum is at the edge of the search.
    """
    uncalibrated = _rows_at_calibration(summary, UNCALIBRATED)
    order = "robust accuracy" if uncalibrated["robust_accuracy"].notna().any() else "score"
    notes = [
        f"{measure.title} ({name}) of {_models_and_dataset(uncalibrated)}, sorted by {order}.",
        f"FP: class mean minus {setting(fp_lambda)} times RDI.",
    ]

    frame = pd.DataFrame({"Model": uncalibrated["label"]})
    frame["Robust acc. (%)"] = uncalibrated["robust_accuracy"].map(_percentage, na_action=None)
    frame["Score"] = uncalibrated["value"]
    undecided = measure.undecided or _some_undecided(uncalibrated)
    if undecided:
        frame["Score at most"] = uncalibrated["value_most"]
        notes.append("At most: open samples count at their largest value, elsewhere at their smallest.")

    objectives = summary.loc[summary["calibration"] != UNCALIBRATED, "calibration"].unique().tolist()
    if objectives:
        objective = OBJECTIVE_OF_PAPER if OBJECTIVE_OF_PAPER in objectives else objectives[0]
        calibration = calibrations[objective]
        title = f"Cal. score{EDGE_MARK}" if calibration.edge else "Cal. score"
        calibrated = _rows_at_calibration(summary, objective)
        frame[title] = uncalibrated["label"].map(calibrated.set_index("label")["value"])

        temperatures = calibrated["temperature"].unique()
        t_star = f"T = {temperature(temperatures[0])}" if len(temperatures) == 1 else "each model's own T"
        samples = f", {SPLIT_NOTE}" if calibration.split else ""
        notes.append(f"{title}: at {t_star}, chosen by {OBJECTIVE_PHRASES[objective]}{samples}.")
        if calibration.edge:
            notes.append(EDGE_NOTE)

    for metric in MAIN:
        if metric.kind == "level":
            continue
        frame[metric.title] = uncalibrated[metric.name]
        if metric.name == "wcr":
            if undecided:
                frame[f"{metric.title} at most"] = uncalibrated["wcr_most"]
            frame["Worst class"] = uncalibrated["wcr_tied"].map(lambda names: with_ties(readable_classes(names)))

    notes.append(_robust_accuracy_sources(uncalibrated))
    best_first = uncalibrated.sort_values(
        ["robust_accuracy", "value"], ascending=False, kind="stable", na_position="last"
    )
    return latex_of(frame.loc[best_first.index], caption=" ".join(notes), label=f"tab:{name}-models")


def _some_undecided(rows: pd.DataFrame) -> bool:
    # Samples without a value are undecided in every measure.
    return bool((rows["value_most"] > rows["value"]).any())


def class_table(scores: pd.DataFrame, measure: Measure, *, name: str) -> str:
    """Class values of every model at T = 1 with their mean over samples: Table 5 of the paper.

    Models stand in rows, or, where there are more than MOST_COLUMNS classes, the classes, in a longtable.

    Parameters
    ----------
    scores : DataFrame
        Rows of class_scores of one measure.
    measure : Measure
    name : str
        Name of the measure in config.yaml.
    """
    uncalibrated = _rows_at_calibration(scores, UNCALIBRATED)
    by_class = uncalibrated.pivot(index="label", columns="class_index", values="value")
    means = _means_over_samples(uncalibrated, "value")
    best_first = means.sort_values(ascending=False, kind="stable").index
    notes = [f"{measure.title} ({name}) by class of {_models_and_dataset(uncalibrated)}."]
    if measure.undecided or _some_undecided(uncalibrated):
        most = uncalibrated.pivot(index="label", columns="class_index", values="value_most")
        by_class = by_class.combine(most, _ranges_in_words)
        means = _ranges_in_words(means, _means_over_samples(uncalibrated, "value_most"))
        notes.append("Ranges: open samples count at their smallest and at their largest value.")
    confidence = percent(uncalibrated["confidence"].iloc[0])
    notes += [
        "All: mean over all samples.",
        f"The simultaneous {confidence} intervals stand in class_scores.csv.",
    ]
    caption = " ".join(notes)

    # A class may be called All or Model, and a model Class.
    table = by_class.loc[best_first]
    table.columns = classes_of(uncalibrated)
    many = len(table.columns) > MOST_COLUMNS
    table.insert(len(table.columns), "All", means, allow_duplicates=True)
    frame = table.T if many else table
    frame.insert(0, "Class" if many else "Model", frame.index, allow_duplicates=True)
    aligned = "l" + "r" * (len(frame.columns) - 1)
    return latex_of(frame, caption=caption, label=f"tab:{name}-classes", long=many, aligned=aligned)


def _means_over_samples(scores: pd.DataFrame, column: str) -> pd.Series:
    # Mean of a column of class rows by model, weighted by the samples of the classes.
    weighted = scores.assign(weighted=scores[column] * scores["n"])
    sums = weighted[weighted["n"] > 0].groupby("label", sort=False)
    return sums["weighted"].sum() / sums["n"].sum()


def _ranges_in_words(low: pd.Series, high: pd.Series) -> pd.Series:
    # Both ends of each value as text.
    texts = []
    for least, most in zip(low, high, strict=True):
        texts.append(MISSING if isnan(least) else f"{least:.{DECIMALS}f}--{most:.{DECIMALS}f}")
    return pd.Series(texts, index=low.index)


def calibration_table(calibrations: Calibrations, summary: pd.DataFrame, *, name: str) -> str:
    """Rank agreement with robust accuracy before and after each calibration: Table 2 of the paper.

    Parameters
    ----------
    calibrations : mapping of str to Calibration
        By objective.
    summary : DataFrame
        Rows of model_summary of the measure that is calibrated.
    name : str
        Name of that measure in config.yaml.
    """
    uncalibrated = _rows_at_calibration(summary, UNCALIBRATED)
    rows = []
    for objective, calibration in calibrations.items():
        if calibration.undefined:
            t_star = MISSING
        else:
            t_star = temperature(calibration.t_star) if calibration.t_star else "by model"
            t_star += EDGE_MARK if calibration.edge else ""
        agreement = calibration.agreement_with(ROBUST)
        row = {
            "Calibrated by": OBJECTIVE_PHRASES[objective],
            "T": t_star,
            "Uncalibrated": agreement.before,
            "Calibrated": agreement.after,
        }
        rows.append(row)
    frame = pd.DataFrame(rows).astype({"Uncalibrated": float, "Calibrated": float})

    first = next(iter(calibrations.values()))
    samples = f", {SPLIT_NOTE}" if first.split else ""
    clean = first.baseline[alone(ROBUST)]
    clean_accuracy = MISSING if clean is None else f"{clean:.{DECIMALS}f}"
    known = uncalibrated[uncalibrated["robust_accuracy"].notna()]
    compared = _models_and_dataset(uncalibrated if known.empty else known)
    notes = [
        f"Spearman correlation with robust accuracy of {name}{samples}, {compared}.",
        f"Clean accuracy alone: {clean_accuracy}.",
    ]
    if frame["T"].str.endswith(EDGE_MARK).any():
        notes.append(EDGE_NOTE)
    notes.append(_robust_accuracy_sources(uncalibrated))
    return latex_of(frame, caption=" ".join(notes), label=f"tab:{name}-calibration")


def _rows_at_calibration(table: pd.DataFrame, calibration: str) -> pd.DataFrame:
    # Labelled before the choice: a model has one label at every temperature, though some have rows at T = 1 alone.
    labelled = table.assign(label=model_labels(table))
    return labelled[labelled["calibration"] == calibration].reset_index(drop=True)


def _percentage(share: float) -> str:
    return MISSING if isnan(share) else f"{100 * share:.1f}"


def _models_and_dataset(rows: pd.DataFrame) -> str:
    models = counted(rows["label"].nunique(), "model")
    return f"{models} on {rows['dataset'].iloc[0]}"


def _robust_accuracy_sources(summary: pd.DataFrame) -> str:
    sources = sorted({str(source) for source in summary["robust_accuracy_source"].dropna()})
    if not sources:
        return "No robust accuracy is known."
    return f"Robust accuracy: {'; '.join(sources)}."


# ---- projections ----


def projection_table(models: pd.DataFrame) -> str:
    """Scores of every model over all sensitive attributes by task: Tables 1 and 3 of the paper.

    Parameters
    ----------
    models : DataFrame
        Rows of projection_models of one mapper. Numbers are printed with three significant digits, not as percentages.
    """
    attributes = models["group_attributes"].dropna()
    over_attributes = f", the last three averaged over {_span(attributes)} attributes" if len(attributes) else ""
    dimensions = _span(models["dimensions"])
    notes = [
        f"Scores over all sensitive attributes by task, {_models_and_mapper(models)}.",
        f"Acc, DP, EOpp, EOdd: of all samples{over_attributes}.",
        f"Tol, Dev: of {_span(models['n'])} samples, averaged over {dimensions} dimensions.",
        "The attribute that is the task itself is left out.",
        "Higher is better for Acc and Tol, lower for the others.",
        *_explanations_of_marks(models, MOVE_COLUMNS),
    ]
    return _by_task(models, {**SAMPLE_COLUMNS, **MOVE_COLUMNS}, caption=" ".join(notes), name="projection")


def coupling_table(models: pd.DataFrame) -> str:
    """Coupling of every model by task: Table 2 of the paper.

    Parameters
    ----------
    models : DataFrame
        Rows of projection_models of one mapper.
    """
    notes = [f"Coupling by task, {_models_and_mapper(models)}.", *_explanations_of_marks(models, COUPLING_COLUMNS)]
    return _by_task(models, COUPLING_COLUMNS, caption=" ".join(notes), name="coupling")


def _by_task(models: pd.DataFrame, columns: Mapping[str, str], *, caption: str, name: str) -> str:
    # A model has one name in every task.
    label = pd.Index(model_labels(models.assign(dataset="")))
    cells = pd.DataFrame(index=label)
    for title, column in columns.items():
        cells[title] = [_projected_cell(row, column) for _, row in models.iterrows()]

    tables = {}
    for task, rows in cells.groupby(models["dataset"].to_numpy(), sort=False):
        tables[task] = rows
    frame = pd.concat(tables, axis=1).reindex(label.unique())
    if len(columns) == 1:
        frame.columns = frame.columns.get_level_values(0)
        frame.insert(0, "Model", frame.index, allow_duplicates=True)
    else:
        frame.insert(0, ("", "Model"), frame.index)
    aligned = "l" + "r" * (frame.shape[1] - 1)
    return latex_of(frame, caption=caption, label=f"tab:{models['mapper'].iloc[0]}-{name}", aligned=aligned)


def _projected_cell(row: pd.Series, column: str) -> str:
    if row["constant"] and column not in SAMPLE_COLUMNS.values():
        return MISSING + CONSTANT_MARK
    if is_missing(row[column]):
        return MISSING
    return number(row[column]).replace(MINUS, "-")


def _models_and_mapper(models: pd.DataFrame) -> str:
    distinct = models[["threat", "model"]].drop_duplicates()
    return f"{counted(len(distinct), 'model')} on the mapper {models['mapper'].iloc[0]}"


def _span(counts: pd.Series) -> str:
    return count_range(counts.min(), counts.max())


def _explanations_of_marks(models: pd.DataFrame, columns: Mapping[str, str]) -> list[str]:
    # A sentence for each mark that the table uses.
    constant = models["constant"].astype(bool)
    explanations = []
    if constant.any():
        explanations.append(f"{MISSING}{CONSTANT_MARK}: constant, one class for all decoded images.")
    if models.loc[~constant, list(columns.values())].isna().any(axis=None):
        explanations.append(f"{MISSING}: undefined, such as Dev where moves have one side only.")
    return explanations


# ---- LaTeX ----


def latex_of(frame: pd.DataFrame, *, caption: str, label: str, long: bool = False, aligned: str = "") -> str:
    """A table for booktabs.

    Parameters
    ----------
    frame : DataFrame
        Two levels of columns are two lines at the top.
    caption, label : str
    long : bool
        Whether it is a longtable.
    aligned : str
        Alignment of the columns, "lrr"; without it text stands left and numbers right.
    """
    if not aligned:
        text = frame.select_dtypes(exclude="number").columns
        aligned = "".join("l" if column in text else "r" for column in frame.columns)
    frame = frame.map(lambda cell: escaped(cell) if isinstance(cell, str) else cell)
    # LaTeX takes a bracket or a star that follows the end of a line, or a rule, for an argument of these.
    frame = frame.map(lambda cell: f"{{}}{cell}" if isinstance(cell, str) and cell.startswith(("[", "*")) else cell)
    frame = frame.rename(columns=lambda name: name and escaped(name))
    identifier = re.sub("[^A-Za-z0-9:]", "-", label)
    return (
        frame.style.hide(axis="index")
        .format(precision=DECIMALS, na_rep=MISSING)
        .to_latex(
            hrules=True,
            caption=escaped(caption),
            label=identifier,
            position_float=None if long else "centering",
            environment="longtable" if long else None,
            column_format=aligned,
            multicol_align="c",
        )
    )


def escaped(text: object) -> str:
    """Text that LaTeX prints as it stands, on one line, without control characters."""
    return printable(text).translate(LATEX_SPECIAL)
