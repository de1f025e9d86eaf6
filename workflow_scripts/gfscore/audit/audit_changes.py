"""What changed between two audits of the same data: an earlier release and a later one, say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.calibration.comparable import require_comparable_audits
from gfscore.audit.metrics import BOUNDED
from gfscore.audit.metrics.declaration import Metric
from gfscore.audit.summary_tables import MODEL_SUMMARY
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.tables.parquet_tables import read_identity, read_table

WHAT = ["dataset", "threat", "model", "measure", "calibration"]
COST_ONLY = ("batch_size",)
"""Settings of a measure that change what it costs, not what it is."""

SAME = 1e-9
"""Largest relative difference of one number in two files of one audit."""


def audit_changes(first: Path | str, second: Path | str, *, calibration: str = UNCALIBRATED) -> pd.DataFrame:
    """Statistics of every model in two audits beside each other, and whether their intervals are disjoint.

    `first` and `second` are folders results/audits/<audit>. One row per model, measure and statistic that either audit
    has at this calibration: `first`, `second` and `change` = second - first in the measure's unit, null where one of
    the audits lacks the model or measure; `verdict` is better or worse where the intervals are disjoint, which is right
    with probability at least 1 - alpha_1 - alpha_2 (union bound), whether or not the samples are the same: of `value`
    by itself, of the others for all of a model together; else undecided; null without intervals; "not comparable" and
    the settings that differ, for a measure, or an FP, with other settings. Raises InputError for audits of other data,
    for rows calibrated on different models or at different temperatures, for audits without a model and measure in
    common, for folders that hold no audit, and for an audit whose verdict is of another run than its table.
    """
    if calibration != UNCALIBRATED:
        require_comparable_audits(first, second)
    tables = [_summary(folder, calibration) for folder in (first, second)]
    identities = _identities_on_the_same_data(first, second)
    if not set(tables[0].index) & set(tables[1].index):
        raise InputError(
            f"{first} and {second} have no model and measure of one dataset in common at calibration "
            f"{calibration!r}; compare audits of the same dataset"
        )
    changes = pd.concat([_of_metric(tables[0], tables[1], metric) for metric in BOUNDED], ignore_index=True)
    known = changes["verdict"].notna()
    if identities[0]["fp_lambda"] != identities[1]["fp_lambda"]:
        penalised = changes["statistic"].isin([metric.name for metric in BOUNDED if "lam" in metric.needs])
        changes.loc[known & penalised, "verdict"] = "not comparable: other fp_lambda"
    ours, theirs = (identity["measures"] for identity in identities)
    for name in set(ours) & set(theirs):
        keys = {**ours[name], **theirs[name]}
        other = [key for key in keys if key not in COST_ONLY and ours[name].get(key) != theirs[name].get(key)]
        if other:
            changes.loc[known & (changes["measure"] == name), "verdict"] = f"not comparable: other {', '.join(other)}"
    return changes


def _identities_on_the_same_data(first: Path | str, second: Path | str) -> list[dict[str, Any]]:
    # What both audits say of themselves: settings of their measures by name, and of FP.
    paths = [Path(folder) / "model_summary.parquet" for folder in (first, second)]
    identities = [read_identity(path) for path in paths]
    for path, identity in zip(paths, identities, strict=True):
        if not {"dataset_digest", "measures", "fp_lambda"} <= set(identity):
            raise InputError(f"{path} does not say which data and settings it is of; run its audit again")
    ours, theirs = (identity["dataset_digest"] for identity in identities)
    if ours != theirs:
        raise InputError(
            f"{first} and {second} are audits of other data: the digests of their datasets are {ours} and {theirs}; "
            "audit both models on the same data"
        )
    return identities


def _summary(folder: Path | str, calibration: str) -> pd.DataFrame:
    path = Path(folder) / "model_summary.parquet"
    table = read_table(path, MODEL_SUMMARY)
    require_one_run(folder, table)
    table = table[table["calibration"] == calibration]
    if table.empty:
        raise InputError(f"{path} holds no rows at calibration {calibration!r}; name one that it has")
    return table.set_index(WHAT)


def require_one_run(folder: Path | str, table: pd.DataFrame) -> None:
    """Raise InputError unless verdict.json, where there is one, judged the values of `table`, the model_summary.

    The targets `audit` and `gate` make a new verdict and leave the tables as they were.
    """
    path = Path(folder) / "verdict.json"
    if not path.is_file():
        return
    compared = {metric.name for metric in BOUNDED}
    at_one = table[table["calibration"] == UNCALIBRATED].set_index(["measure", "threat", "model"])
    for rule in read_json(path)["rules"]:
        for judged in rule["models"] if rule["statistic"] in compared else ():
            key = (rule["measure"], judged["threat"], judged["model"])
            # An undefined value is null in the one file and NaN in the other.
            pair = at_one[rule["statistic"]].get(key, np.inf), np.nan if judged["value"] is None else judged["value"]
            if not np.isclose(*pair, rtol=SAME, atol=SAME, equal_nan=True):
                raise InputError(
                    f"{folder}: verdict.json and model_summary.parquet are of two runs: {rule['statistic']} of "
                    f"{judged['model']} is {judged['value']} and {pair[0]}; run all of the audit, then compare"
                )


def _of_metric(first: pd.DataFrame, second: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    name = metric.name
    # The joint bounds of the mean pay for those of every class, which this one comparison does not look at.
    bounds = "value_alone" if name == "value" else name
    both = pd.concat([table[[name, f"{bounds}_low", f"{bounds}_high"]] for table in (first, second)], axis=1)
    both.columns = ["first", "first_low", "first_high", "second", "second_low", "second_high"]
    both = both.reset_index()
    both.insert(len(WHAT), "statistic", name)
    both["change"] = both["second"] - both["first"]
    risen, fallen = both["second_low"] > both["first_high"], both["second_high"] < both["first_low"]
    better, worse = (risen, fallen) if metric.direction > 0 else (fallen, risen)
    known = both[["first_low", "first_high", "second_low", "second_high"]].notna().all(axis=1)
    words: list[Any] = [None, "better", "worse"]
    both["verdict"] = np.select([~known, better, worse], words, "undecided")
    return both
