"""Changes of statistics between two audits of the same data, for example of an earlier and a later release."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from gfscore.audit.audit_files import ModelSelection
from gfscore.audit.calibration_results import read_calibrations
from gfscore.audit.metrics import BOUNDED
from gfscore.audit.metrics.declaration import Metric
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.mappings import only
from gfscore.core.names import model_count
from gfscore.core.settings import PlainSettings, Record, first_fault
from gfscore.tables.parquet_tables import read_identity, read_table

IDENTITY = ["dataset", "threat", "model"]
"""Columns that name a model."""

COMPARED = [*IDENTITY, "measure", "calibration"]
"""Columns that name a row of model_summary."""

COST_ONLY = ("batch_size",)
"""Settings of a measure that do not change its meaning."""

REMEDY = "compare the rows whose calibration is none (T = 1), or calibrate all models in one audit"
"""Remedy for calibrated scores that are not comparable."""

_MUST_AGREE = {
    "measure": "the measure",
    "models_digest": "the digest of the model set",
    "split": "the split of the samples",
    "t_star": "T*",
    "t_star_by_model": "the T of each model",
}
"""Entries of calibration.json that must agree for calibrated scores to be comparable."""

SAME = 1e-9
"""Largest difference, absolute or relative, between one number in two files of the same audit."""


def audit_changes(first: Path | str, second: Path | str, *, calibration: str = UNCALIBRATED) -> pd.DataFrame:
    """Changes of the statistics of all models between two audits, and whether their intervals are disjoint.

    Models of the same name are compared. Where each audit holds a single model, these two are compared whatever their
    names are, under the name "first then second".

    Parameters
    ----------
    first, second : path
        Folders results/audits/<audit>.
    calibration : str
        Calibration whose rows are compared.

    Returns
    -------
    DataFrame
        One row per model, measure and statistic of either audit. `first`, `second` and `change` = second - first are in
        the unit of the measure, and null if one audit lacks the model or measure. `verdict` is better or worse if the
        intervals are disjoint, else undecided; null without intervals; "not comparable: ..." where settings differ,
        with their names. Better and worse are correct with probability at least 1 - alpha_1 - alpha_2 (union bound),
        for `value` alone and for the other statistics of a model simultaneously.

    Raises
    ------
    InputError
        For audits of different data, for scores calibrated on different models or at different temperatures, for audits
        without a common model and measure, for folders that hold no audit, and for an audit whose verdict.json comes
        from another run than its table.
    """
    if calibration != UNCALIBRATED:
        require_comparable_audits(first, second)
    first_summary = _summary(first, calibration)
    second_summary = _summary(second, calibration)
    if _holds_one_model(first, first_summary) and _holds_one_model(second, second_summary):
        # The one model of each audit gets the same name in both.
        for name in IDENTITY:
            names = dict.fromkeys([str(first_summary[name].iloc[0]), str(second_summary[name].iloc[0])])
            joined = " then ".join(names)
            first_summary[name] = joined
            second_summary[name] = joined
    first_summary = first_summary.set_index(COMPARED)
    second_summary = second_summary.set_index(COMPARED)
    first_source = _Source.of(first)
    second_source = _Source.of(second)
    if first_source.dataset_digest != second_source.dataset_digest:
        raise InputError(
            f"{first} and {second} are audits of different data: their datasets have the digests "
            f"{first_source.dataset_digest} and {second_source.dataset_digest}; audit both models on the same data"
        )
    if not set(first_summary.index) & set(second_summary.index):
        raise InputError(
            f"{first} and {second} have no model and measure of the same name in common at calibration "
            f"{calibration!r}; give models the same names in both, or audit one model in each"
        )

    by_metric = [_changes_of_metric(first_summary, second_summary, metric) for metric in BOUNDED]
    changes = pd.concat(by_metric, ignore_index=True)
    # No verdict on numbers that the two audits computed with different settings.
    judged = changes["verdict"].notna()
    if first_source.fp_lambda != second_source.fp_lambda:
        metrics_with_lambda = [metric.name for metric in BOUNDED if "lam" in metric.needs]
        penalised = changes["statistic"].isin(metrics_with_lambda)
        changes.loc[judged & penalised, "verdict"] = "not comparable: other fp_lambda"
    for measure, settings in first_source.measures.items():
        if measure in second_source.measures:
            different = different_settings(settings, second_source.measures[measure], irrelevant=COST_ONLY)
            if different:
                verdict = f"not comparable: other {', '.join(different)}"
                changes.loc[judged & (changes["measure"] == measure), "verdict"] = verdict
    return changes


class _JudgedModel(Record):
    threat: str
    model: str
    value: float | None


class _JudgedRule(Record):
    measure: str
    statistic: str
    models: list[_JudgedModel]


class _JudgedAudit(Record):
    # What is read of verdict.json, which an earlier version may have written.
    rules: list[_JudgedRule]


@dataclass(frozen=True)
class _Source:
    # Data and settings that a table model_summary is made from.
    dataset_digest: str
    measures: Mapping[str, PlainSettings]
    fp_lambda: float

    @classmethod
    def of(cls, folder: Path | str) -> _Source:
        path = Path(folder) / "model_summary.parquet"
        identity = read_identity(path)
        names = [field.name for field in fields(cls)]
        if not set(names) <= set(identity):
            raise InputError(f"{path} does not record its data and settings; run its audit again")
        return cls(**only(identity, names))


def different_settings(before: PlainSettings, after: PlainSettings, *, irrelevant: Collection[str]) -> list[str]:
    """Names of the settings in which two entries of a measure differ, but for those that are irrelevant."""
    different = []
    for key in {**before, **after}:
        if key not in irrelevant and before.get(key) != after.get(key):
            different.append(key)
    return different


def _holds_one_model(folder: Path | str, table: pd.DataFrame) -> bool:
    # An audit with excluded models had several, though its table shows one.
    selection = Path(folder) / "models.json"
    if selection.is_file() and ModelSelection.read(selection).excluded:
        return False
    return model_count(table) == 1


def _summary(folder: Path | str, calibration: str) -> pd.DataFrame:
    path = Path(folder) / "model_summary.parquet"
    table = read_table(path, MODEL_SUMMARY)
    require_one_run(folder, table)
    table = table[table["calibration"] == calibration]
    if table.empty:
        raise InputError(f"{path} holds no rows at calibration {calibration!r}; choose another one")
    return table.copy()


def require_one_run(folder: Path | str, table: pd.DataFrame) -> None:
    """Refuse an audit whose verdict.json, if present, disagrees with its table.

    Parameters
    ----------
    folder : path
        results/audits/<audit>.
    table : DataFrame
        Its table model_summary.

    Raises
    ------
    InputError
        With the first number that differs.
    """
    path = Path(folder) / "verdict.json"
    if not path.is_file():
        return
    tabulated_statistics = {metric.name for metric in BOUNDED}
    uncalibrated = table[table["calibration"] == UNCALIBRATED].set_index(["measure", "threat", "model"])
    try:
        verdict = _JudgedAudit.model_validate(read_json(path))
    except ValidationError as error:
        raise InputError(f"{path}: not the verdict of an audit ({first_fault(error)}); run its audit again") from error
    for rule in verdict.rules:
        if rule.statistic not in tabulated_statistics:
            continue
        for judged in rule.models:
            key = (rule.measure, judged.threat, judged.model)
            tabulated = uncalibrated[rule.statistic].get(key, np.inf)
            # An undefined value is null in JSON and NaN in the table.
            value = np.nan if judged.value is None else judged.value
            if not np.isclose(tabulated, value, rtol=SAME, atol=SAME, equal_nan=True):
                raise InputError(
                    f"{folder}: verdict.json and model_summary.parquet are from different runs: {rule.statistic} of "
                    f"{judged.model} is {judged.value} and {tabulated}; run the whole audit again"
                )


def _changes_of_metric(first: pd.DataFrame, second: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    name = metric.name
    # The simultaneous bounds of `value` also cover all classes, which are not compared here.
    bounds = "value_alone" if name == "value" else name
    columns = [name, f"{bounds}_low", f"{bounds}_high"]
    paired = pd.concat([first[columns], second[columns]], axis=1)
    paired.columns = ["first", "first_low", "first_high", "second", "second_low", "second_high"]
    paired = paired.reset_index()
    paired.insert(len(COMPARED), "statistic", name)
    paired["change"] = paired["second"] - paired["first"]

    better = paired["second_low"] > paired["first_high"]
    worse = paired["second_high"] < paired["first_low"]
    if metric.direction < 0:
        better, worse = worse, better
    with_intervals = paired[["first_low", "first_high", "second_low", "second_high"]].notna().all(axis=1)
    verdicts: list[Any] = [None, "better", "worse"]
    paired["verdict"] = np.select([~with_intervals, better, worse], verdicts, "undecided")
    return paired


def require_comparable_audits(first: Path | str, second: Path | str) -> None:
    """Refuse two audits whose temperatures are not comparable.

    For each common objective of their calibration.json the measure, the digest of the model set, the split of the
    samples and the chosen temperatures must agree, since a temperature depends on the models that it was chosen on.

    Parameters
    ----------
    first, second : path
        Folders results/audits/<audit>.

    Raises
    ------
    InputError
        With the entry that differs, and if there is no common objective.
    """
    first_calibrations = read_calibrations(Path(first) / "calibration.json")
    second_calibrations = read_calibrations(Path(second) / "calibration.json")
    objectives = [objective for objective in first_calibrations if objective in second_calibrations]
    if not objectives:
        raise InputError(f"{first} and {second} share no calibration objective; {REMEDY}")
    for objective in objectives:
        for entry, words in _MUST_AGREE.items():
            before = getattr(first_calibrations[objective], entry)
            after = getattr(second_calibrations[objective], entry)
            if before != after:
                raise InputError(
                    f"scores calibrated by {objective} are not comparable: {words} is {before!r} in {first}, but "
                    f"{after!r} in {second}; {REMEDY}"
                )
