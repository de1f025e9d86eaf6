"""Changes of statistics between two audits of the same data, for example of an earlier and a later release."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.metrics import BOUNDED
from gfscore.audit.metrics.declaration import Metric
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.names import model_count
from gfscore.tables.parquet_tables import read_identity, read_table

IDENTITY = ["dataset", "threat", "model"]
WHAT = [*IDENTITY, "measure", "calibration"]
COST_ONLY = ("batch_size",)
"""Settings of a measure that do not change its meaning."""

REMEDY = "compare the rows whose calibration is none (T = 1), or calibrate all models in one audit"

_MUST_AGREE = {
    "measure": "the measure",
    "models_digest": "the digest of the model set",
    "split": "the split of the samples",
    "t_star": "T*",
    "t_star_by_model": "the T of each model",
}
"""Entries of calibration.json that must agree for calibrated scores to be comparable."""

SAME = 1e-9
"""Tolerance of one number in two files of the same audit."""


def audit_changes(first: Path | str, second: Path | str, *, calibration: str = UNCALIBRATED) -> pd.DataFrame:
    """Data frame of the statistics of all models in two audits, and whether their intervals are disjoint.

    `first` and `second` are folders results/audits/<audit>. Models are compared by their names, or, where each audit
    holds one model, whatever they are called ("first then second"). One row per model, measure and statistic of either
    audit at `calibration`: `first`, `second` and `change` = second - first in the unit of the measure, null if one
    audit lacks the model or measure; `verdict`: better or worse if the intervals are disjoint, else undecided; null
    without intervals; "not comparable" and the settings that differ. Better and worse are correct with probability at
    least 1 - alpha_1 - alpha_2 (union bound), for `value` alone and for the other statistics of a model simultaneously.
    Raises InputError for audits of different data, for scores calibrated on different models or at different
    temperatures, for audits without a common model and measure, for folders that hold no audit, and for an audit whose
    verdict is of another run than its table.
    """
    if calibration != UNCALIBRATED:
        require_comparable_audits(first, second)
    tables = [_summary(folder, calibration) for folder in (first, second)]
    if all(map(_holds_one_model, (first, second), tables)):
        for name in IDENTITY:
            both = " then ".join(dict.fromkeys(str(table[name].iloc[0]) for table in tables))
            for table in tables:
                table[name] = both
    tables = [table.set_index(WHAT) for table in tables]
    identities = _identities_on_the_same_data(first, second)
    if not set(tables[0].index) & set(tables[1].index):
        raise InputError(
            f"{first} and {second} have no model and measure of the same name in common at calibration "
            f"{calibration!r}; give models the same names in both, or audit one model in each"
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
    # Identities of both audits, with the settings of their measures and of FP.
    paths = [Path(folder) / "model_summary.parquet" for folder in (first, second)]
    identities = [read_identity(path) for path in paths]
    for path, identity in zip(paths, identities, strict=True):
        if not {"dataset_digest", "measures", "fp_lambda"} <= set(identity):
            raise InputError(f"{path} does not record its data and settings; run its audit again")
    ours, theirs = (identity["dataset_digest"] for identity in identities)
    if ours != theirs:
        raise InputError(
            f"{first} and {second} are audits of different data: their datasets have the digests {ours} and {theirs}; "
            "audit both models on the same data"
        )
    return identities


def _holds_one_model(folder, table):
    # An audit that left out models held several.
    selection = Path(folder) / "models.json"
    left_out = read_json(selection)["excluded"] if selection.is_file() else []
    return not left_out and model_count(table) == 1


def _summary(folder: Path | str, calibration: str) -> pd.DataFrame:
    path = Path(folder) / "model_summary.parquet"
    table = read_table(path, MODEL_SUMMARY)
    require_one_run(folder, table)
    table = table[table["calibration"] == calibration]
    if table.empty:
        raise InputError(f"{path} holds no rows at calibration {calibration!r}; choose another one")
    return table


def require_one_run(folder: Path | str, table: pd.DataFrame) -> None:
    """Raise InputError if verdict.json, if present, was made from other values than `table`, the model_summary."""
    path = Path(folder) / "verdict.json"
    if not path.is_file():
        return
    compared = {metric.name for metric in BOUNDED}
    at_one = table[table["calibration"] == UNCALIBRATED].set_index(["measure", "threat", "model"])
    for rule in read_json(path)["rules"]:
        for judged in rule["models"] if rule["statistic"] in compared else ():
            key = (rule["measure"], judged["threat"], judged["model"])
            # An undefined value is null in JSON and NaN in the table.
            pair = at_one[rule["statistic"]].get(key, np.inf), np.nan if judged["value"] is None else judged["value"]
            if not np.isclose(*pair, rtol=SAME, atol=SAME, equal_nan=True):
                raise InputError(
                    f"{folder}: verdict.json and model_summary.parquet are from different runs: {rule['statistic']} of "
                    f"{judged['model']} is {judged['value']} and {pair[0]}; run the whole audit again"
                )


def _of_metric(first: pd.DataFrame, second: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    name = metric.name
    # The simultaneous bounds of `value` also cover all classes, which are not compared here.
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


def require_comparable_audits(first: Path | str, second: Path | str) -> None:
    """Raise InputError unless the temperatures of two audits, given as folders, are comparable.

    For each common objective of their calibration.json the measure, the digest of the model set, the split of the
    samples and the chosen temperatures must agree, since a temperature depends on the models that it was chosen on.
    Raises InputError also if there is no common objective.
    """
    ours, theirs = (read_json(Path(folder) / "calibration.json") for folder in (first, second))
    shared = [objective for objective in ours if objective in theirs]
    if not shared:
        raise InputError(f"{first} and {second} share no calibration objective; {REMEDY}")
    for objective in shared:
        for key, words in _MUST_AGREE.items():
            own, other = ours[objective].get(key), theirs[objective].get(key)
            if own != other:
                raise InputError(
                    f"scores calibrated by {objective} are not comparable: {words} is {own!r} in {first}, but "
                    f"{other!r} in {second}; {REMEDY}"
                )
