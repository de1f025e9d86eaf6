"""Tables of an audit as LaTeX, and its results as model cards of the Hugging Face Hub.

LaTeX is laid out like Tables 2 to 5 of the GF-Score paper, and, of projections, like Tables 1 to 3 of the
projection-fairness paper. A card holds the block `model-index`.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
import yaml

from gfscore.audit.calibration.evidence import ROBUST, alone
from gfscore.audit.findings.templates import OBJECTIVES
from gfscore.audit.metrics import MAIN, highest_values
from gfscore.audit.metrics.declaration import Metric
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import classes_of, readable_classes
from gfscore.core.names import model_labels, printable
from gfscore.core.numbers import MINUS, count, interval, is_missing, model_count, number, percent, setting, temperature
from gfscore.measures import measure_of
from gfscore.measures.declaration import Measure

DECIMALS = 3
MOST_COLUMNS = 12
"""Classes beyond which they stand in rows, on as many pages as they need."""

OF_THE_PAPER = "within_model_class_accuracy"
MISSING = "--"
EDGE = "*"
AT_EDGE = f"{EDGE}: optimum at the edge of the search, a wider one may choose another T"
SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    }
)
"""What LaTeX would read as a command."""

OF_SAMPLES = {"Acc": "task_accuracy", "DP": "dp", "EOpp": "eopp", "EOdd": "eodd"}
"""Columns of all samples of the task, by title."""

OF_MOVES = {"Tol": "tolerance", "Dev": "deviation"}
"""Columns of the moves, which say nothing of a constant classifier."""

OF_COUPLING = {"Coupling": "coupling"}

CONSTANT = "*"


def model_table(
    summary: pd.DataFrame,
    measure: Measure,
    *,
    name: str,
    fp_lambda: float,
    calibrations: Mapping[str, Mapping[str, Any]],
) -> str:
    """Scores and disparity of every model, best robust accuracy first: Tables 3 and 4 of the paper, a str.

    Takes model_summary rows of one measure with every calibration, that measure, its `name` in config.yaml and lambda
    of FP. Disparity is of the values at T = 1, as in the paper. Calibrated scores are those of the objective that the
    paper's numbers follow, or of the first one where an audit does not have it; `calibrations`, the contents of
    calibration.json, say whether its optimum reaches the edge of the search.
    """
    plain = _of(summary, UNCALIBRATED)
    columns = {
        "Model": plain["label"],
        "Robust acc. (%)": [MISSING if isnan(share) else f"{100 * share:.1f}" for share in plain["robust_accuracy"]],
        "Score": plain["value"],
    }
    title, chosen, calibrated = _calibrated(summary, calibrations)
    if title:
        columns[title] = plain["label"].map(calibrated)
    for metric in (metric for metric in MAIN if metric.kind != "level"):
        columns[metric.title] = plain[metric.name]
        if metric.name == "wcr":
            columns["Worst class"] = readable_classes(plain["wcr_class"])
    order = plain.sort_values(["robust_accuracy", "value"], ascending=False, kind="stable", na_position="last").index
    caption = (
        f"{measure.title} ({name}) of {model_count(len(plain))} on {plain['dataset'].iloc[0]}, sorted by robust "
        f"accuracy. FP: class mean minus {setting(fp_lambda)} times RDI. {chosen}{_sources(plain)}"
    )
    return latex_of(pd.DataFrame(columns).loc[order], caption=caption, label=f"tab:{name}-models")


def class_table(scores: pd.DataFrame, measure: Measure, *, name: str) -> str:
    """Class values of every model at T = 1 with their mean over samples: Table 5 of the paper, a str.

    Takes class_scores rows of one measure, that measure and its `name` in config.yaml. Models stand in rows; beyond 12
    classes classes do, in a longtable.
    """
    plain = _of(scores, UNCALIBRATED)
    sums = plain.assign(weighted=plain["value"] * plain["n"])[plain["n"] > 0].groupby("label", sort=False)
    total = sums["weighted"].sum() / sums["n"].sum()
    order = total.sort_values(ascending=False, kind="stable").index
    table = plain.pivot(index="label", columns="class_index", values="value").loc[order]
    table.columns = classes_of(plain)
    table["All"] = total
    many = table.shape[1] - 1 > MOST_COLUMNS
    caption = (
        f"{measure.title} ({name}) by class of {model_count(len(table))} on {plain['dataset'].iloc[0]}. All: mean "
        f"over all samples. The simultaneous {percent(plain['confidence'].iloc[0])} intervals stand in "
        "class_scores.csv."
    )
    frame = (table.T if many else table).rename_axis(index="Class" if many else "Model", columns=None).reset_index()
    return latex_of(frame, caption=caption, label=f"tab:{name}-classes", long=many)


def _of(summary, calibration):
    own = summary[summary["calibration"] == calibration].reset_index(drop=True)
    return own.assign(label=model_labels(own))


def _calibrated(summary, calibrations):
    # Title of the column of calibrated scores, its part of the caption, and the scores by model; "", "", None without.
    objectives = [name for name in dict.fromkeys(summary["calibration"]) if name != UNCALIBRATED]
    if not objectives:
        return "", "", None
    objective = OF_THE_PAPER if OF_THE_PAPER in objectives else objectives[0]
    own = _of(summary, objective)
    chosen = own["temperature"].unique()
    at = f"T = {temperature(chosen[0])}" if len(chosen) == 1 else "each model's own T"
    edge = calibrations[objective]["edge"]
    title = f"Cal. score{EDGE}" if edge else "Cal. score"
    caption = f"{title}: at {at}, chosen by {OBJECTIVES[objective]}{f' ({AT_EDGE})' if edge else ''}. "
    return title, caption, own.set_index("label")["value"]


def calibration_table(calibrations: Mapping[str, Mapping[str, Any]], summary: pd.DataFrame, *, name: str) -> str:
    """Rank agreement with robust accuracy before and after each calibration: Table 2 of the paper, a str.

    Takes the contents of calibration.json, and the model_summary rows and the `name` of the measure that is calibrated.
    """
    plain = _of(summary, UNCALIBRATED)
    rows = [
        {
            "Calibrated by": OBJECTIVES[objective],
            "T": _temperature(result),
            "Uncalibrated": result["agreement"][ROBUST]["before"],
            "Calibrated": result["agreement"][ROBUST]["after"],
        }
        for objective, result in calibrations.items()
    ]
    clean = next(iter(calibrations.values()))["baseline"][alone(ROBUST)]
    caption = (
        f"Spearman correlation with robust accuracy of {name}, {model_count(len(plain))} on {plain['dataset'].iloc[0]}"
        f". Clean accuracy alone: {MISSING if clean is None else f'{clean:.{DECIMALS}f}'}. "
        f"{AT_EDGE}. {_sources(plain)}"
    )
    frame = pd.DataFrame(rows).astype({"Uncalibrated": float, "Calibrated": float})
    return latex_of(frame, caption=caption, label=f"tab:{name}-calibration")


def _temperature(result):
    if result["undefined"]:
        return MISSING
    return (temperature(result["t_star"]) if result["t_star"] else "by model") + (EDGE if result["edge"] else "")


def _sources(plain):
    sources = sorted({str(source) for source in plain["robust_accuracy_source"].dropna()})
    return f"Robust accuracy: {'; '.join(sources)}." if sources else "No robust accuracy is known."


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
    return _by_task(models, OF_SAMPLES | OF_MOVES, caption=caption, name="projection")


def coupling_table(models: pd.DataFrame) -> str:
    """Coupling of every model by task: Table 2 of the paper, a str. Takes projection_models rows of one mapper."""
    caption = f"Coupling by task, {_about(models)} {_marks(models, OF_COUPLING)}"
    return _by_task(models, OF_COUPLING, caption=caption, name="coupling")


def _by_task(models, columns, *, caption, name):
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
    # Explanations of the marks that the table uses.
    constant = models["constant"].astype(bool)
    found = [f"{MISSING}{CONSTANT}: constant, one class for all decoded images."] if constant.any() else []
    if models.loc[~constant, list(columns.values())].isna().any(axis=None):
        found.append(f"{MISSING}: undefined, as Dev where moves have one side.")
    return " ".join(found)


def latex_of(frame: pd.DataFrame, *, caption: str, label: str, long: bool = False, aligned: str | None = None) -> str:
    """A table for booktabs, a longtable if `long`; its columns are `aligned`, or text left and numbers right.

    Two levels of columns are two lines at the top.
    """
    if aligned is None:
        text = frame.select_dtypes(exclude="number").columns
        aligned = "".join("l" if column in text else "r" for column in frame.columns)
    frame = frame.map(lambda cell: escaped(cell) if isinstance(cell, str) else cell)
    frame = frame.rename(columns=lambda name: name and escaped(name))
    return (
        frame.style.hide(axis="index")
        .format(precision=DECIMALS, na_rep=MISSING)
        .to_latex(
            hrules=True,
            caption=escaped(caption),
            label="".join(c if c.isalnum() and c.isascii() else "-" for c in label).replace("tab-", "tab:", 1),
            position_float=None if long else "centering",
            environment="longtable" if long else None,
            column_format=aligned,
            multicol_align="c",
        )
    )


def escaped(text: object) -> str:
    """Text that LaTeX prints as it stands, on one line, without control characters."""
    return printable(text).translate(SPECIAL)


# ---- model cards ----


def model_cards(
    summary: pd.DataFrame,
    measures: Mapping[str, Mapping[str, Any]],
    *,
    audit: str,
    title: str,
    digest: str,
    classes: int,
    findings: Sequence[str] = (),
) -> dict[str, str]:
    """Model cards of an audit, a mapping from "threat__model" to a str: YAML block, then the same numbers as a table.

    Takes model_summary rows, the settings of each measure, name and `title` of the audit, the digest of the data set,
    its number of `classes`, and the sentences of the audit's findings. Scores at T = 1 alone: a temperature chosen
    among these models says nothing about a model by itself.
    """
    plain = summary[summary["calibration"] == UNCALIBRATED]
    cards = {}
    for (threat, model), rows in plain.groupby(["threat", "model"], sort=False):
        by_measure = rows.set_index("measure").reindex(list(measures)).dropna(subset="model")
        index = {"model-index": [_entry(model, by_measure, measures, audit=audit, digest=digest)]}
        block = yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=10_000)
        page = _page(model, by_measure, measures, title=title, classes=classes, findings=findings)
        cards[f"{threat}__{model}"] = f"---\n{block}---\n\n{page}"
    return cards


def _entry(model, rows, measures, *, audit, digest):
    return {
        "name": printable(model),
        "results": [
            {
                "task": {"type": "image-classification", "name": "Image Classification"},
                "dataset": {
                    "name": printable(row["dataset"]),
                    "type": printable(row["dataset"]),
                    "args": {"sha256": digest, "audit": printable(audit)},
                },
                "metrics": _metrics(name, row, measures[name]),
            }
            for name, row in rows.iterrows()
        ],
    }


def _metrics(measure, row, settings):
    kind, meaning = settings["kind"], measure_of(settings)
    return [
        {
            # The one number that the hub has a name for.
            "type": "accuracy" if (kind, metric.name) == ("clean", "value") else f"{measure}-{metric.name}",
            "name": f"{meaning.title}: {metric.meaning}{_worst(metric, row, printable)}",
            "value": float(row[metric.name]),
            "args": {
                **_interval(metric, row),
                "unit": "none" if metric.unitless else meaning.unit,
                "direction": f"{'higher' if metric.direction > 0 else 'lower'} is better",
            },
        }
        for metric in MAIN
        if not np.isnan(row[metric.name])
    ]


def _worst(metric: Metric, row: Mapping[str, Any], written: Callable[[object], str]) -> str:
    return f" ({written(row['wcr_class'])})" if metric.name == "wcr" else ""


def _interval(metric: Metric, row: Mapping[str, Any]) -> dict[str, Any]:
    if not metric.bounded:
        return {}
    low, high = _ends(metric, row)
    confidence = float(row["confidence"])
    return {"low": _or_none(low), "high": _or_none(high), "confidence": confidence, "interval": row["interval"]}


def _ends(metric: Metric, row: Mapping[str, Any]) -> tuple[float, float]:
    # The aggregate has an interval of its own, beside the one that holds together with the others.
    own = "value_alone" if metric.name == "value" else metric.name
    return row[f"{own}_low"], row[f"{own}_high"]


def _page(model, rows, measures, *, title, classes, findings):
    lines = [
        f"# {_plain(model)}",
        "",
        f"Audit: {_plain(title)}. The interval of the aggregate holds for it alone, the others for all classes "
        "of the model together.",
        "",
    ]
    lines += ["| measure | number | value | interval |", "|---|---|---|---|"]
    for name, row in rows.iterrows():
        meaning = measure_of(measures[name])
        highest = highest_values(meaning.value_range, classes=classes)
        for metric in MAIN:
            bounds = "none"
            if metric.bounded:
                bounds = f"{interval(*_ends(metric, row), highest[metric.name])} ({percent(row['confidence'])})"
            number_of = f"{metric.meaning}{_worst(metric, row, _plain)}"
            lines.append(f"| {_plain(meaning.title)} | {number_of} | {number(row[metric.name])} | {bounds} |")
    lines += ["", *(f"- {measure_of(measures[name]).explanation}" for name in rows.index), ""]
    if findings:
        lines += ["What the audit found, of all its models:", "", *(f"- {_plain(words)}." for words in findings), ""]
    return "\n".join(lines)


def _plain(text):
    # Markdown and HTML would read these.
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#~&" else c for c in printable(text))


def _or_none(value):
    return None if np.isnan(value) else float(value)
