"""What changed between two audits of the same data: an earlier release and a later one, say."""

from pathlib import Path

import numpy as np
import pandas as pd

from gfscore.calibration.comparable import require_comparable_audits
from gfscore.errors import InputError
from gfscore.tables import read_table

WHAT = ["dataset", "threat", "model", "measure", "calibration"]
BOUNDED = {"value": 1, "wcr": 1, "fp": 1, "rdi": -1, "nrgc": -1}
"""Statistic that carries bounds -> 1 if higher is better, -1 if lower is better."""


def audit_changes(first, second, *, calibration="none"):
    """Statistics of every model in two audits beside each other, and whether their intervals are disjoint.

    `first` and `second` are folders results/audits/<audit>. One row per model, measure and statistic that either audit
    has at this calibration: `first`, `second` and `change` = second - first in the measure's unit, null where one of
    the audits lacks the model or measure; `verdict` is better or worse where the intervals are disjoint, which is right
    with probability at least 1 - alpha_1 - alpha_2 for all classes of a model together (union bound), whether or not
    the samples are the same; else undecided; null without intervals. Raises InputError for rows calibrated on
    different models or at different temperatures, for audits without a model and measure in common, and for folders
    that hold no audit.
    """
    if calibration != "none":
        require_comparable_audits(first, second)
    tables = [_summary(folder, calibration) for folder in (first, second)]
    if not set(tables[0].index) & set(tables[1].index):
        raise InputError(
            f"{first} and {second} have no model and measure of one dataset in common at calibration "
            f"{calibration!r}; compare audits of the same dataset"
        )
    return pd.concat([_of_statistic(*tables, name) for name in BOUNDED], ignore_index=True)


def _summary(folder, calibration):
    path = Path(folder) / "model_summary.parquet"
    table = read_table(path, "model_summary")
    table = table[table["calibration"] == calibration]
    if table.empty:
        raise InputError(f"{path} holds no rows at calibration {calibration!r}; name one that it has")
    return table.set_index(WHAT)


def _of_statistic(first, second, name):
    both = pd.concat([table[[name, f"{name}_low", f"{name}_high"]] for table in (first, second)], axis=1)
    both.columns = ["first", "first_low", "first_high", "second", "second_low", "second_high"]
    both = both.reset_index()
    both.insert(len(WHAT), "statistic", name)
    both["change"] = both["second"] - both["first"]
    risen, fallen = both["second_low"] > both["first_high"], both["second_high"] < both["first_low"]
    better, worse = (risen, fallen) if BOUNDED[name] > 0 else (fallen, risen)
    known = both[["first_low", "first_high", "second_low", "second_high"]].notna().all(axis=1)
    both["verdict"] = np.select([~known, better, worse], [None, "better", "worse"], "undecided")
    return both
