"""Errors by corruption and severity, and the mean corruption error: table `corruption_errors`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from gfscore.audit.classwise.confusion import CONDITION, by_condition
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import AuditValues, one_row_per_sample
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import bounds_of
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import MEASURED, Column, Table

CORRUPTION_ERRORS = Table(
    name="corruption_errors",
    version=2,
    columns=(
        *MEASURED,
        *CONDITION,
        Column("n", pa.int64(), "samples"),
        Column("error", pa.float64(), "share of their corrupted copies that are misclassified"),
        Column("low", pa.float64(), "lower bound by sample: copies of one image count once; of this row alone"),
        Column("high", pa.float64(), "upper bound by sample: copies of one image count once; of this row alone"),
        Column("confidence", pa.float64(), "confidence of the bounds"),
        Column("baseline", pa.string(), "threat/model that corruption errors are relative to; null for none"),
        Column(
            "corruption_error",
            pa.float64(),
            "error of the corruption over the baseline's (CE); where corruption is null their mean (mCE); null for "
            "single severities, without a baseline, and where that makes no error",
        ),
        Column("corruption_error_low", pa.float64(), "its lower bound by sample, given the baseline's errors"),
        Column("corruption_error_high", pa.float64(), "its upper bound by sample, given the baseline's errors"),
    ),
)


def corruption_errors(
    audit_values: AuditValues,
    classes: int,
    *,
    intervals: IntervalSettings,
    label_error_rates: Sequence[float] | None,
    baseline: str | None,
) -> pd.DataFrame:
    """Table `corruption_errors` of every measure of kind corruption.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    classes : int
        Number of classes K.
    intervals : IntervalSettings
    label_error_rates : sequence of float, length K, or None
        Shares of wrong labels to allow for; None where labels are assumed right.
    baseline : str or None
        Label of the model that corruption errors are relative to; None for none.
    """
    frames = []
    for measure in audit_values.subject.of_kind("corruption"):
        errors = {}
        for model in audit_values.included:
            errors[model] = ModelErrors(
                audit_values.table(model, measure.name),
                measure.description,
                classes,
                intervals=intervals,
                label_error_rates=label_error_rates,
            )
        baseline_errors: Mapping[str, float] = {}
        for model, errors_of_model in errors.items():
            if model.label == baseline:
                baseline_errors = errors_of_model.by_corruption
        for model, errors_of_model in errors.items():
            frame = errors_of_model.table(baseline_errors)
            frames.append(frame.assign(baseline=baseline, measure=measure.name, **model.columns()))
    return stacked(CORRUPTION_ERRORS, frames)


class ModelErrors:
    """Errors of one model by corruption and severity, and relative to a baseline's.

    An error is a mean over images, of each image's mean over its corrupted copies: bounds count images, not copies.

    Parameters
    ----------
    samples : DataFrame
        Samples table of a measure of kind corruption.
    measure : Measure
        Describes its values.
    classes : int
        Number of classes K.
    intervals : IntervalSettings
    label_error_rates : array of float, shape (K,), or None
        Shares of wrong labels to allow for.
    """

    def __init__(
        self,
        samples: pd.DataFrame,
        measure: Measure,
        classes: int,
        *,
        intervals: IntervalSettings,
        label_error_rates: ArrayLike | None,
    ) -> None:
        """Compute the error and its bounds of every corruption and severity."""
        self._measure = measure
        self._classes = classes
        self._intervals = intervals
        self._label_error_rates = label_error_rates
        self._rows: list[dict[str, Any]] = []
        self._samples_by_corruption: dict[str, pd.DataFrame] = {}
        self.by_corruption: dict[str, float] = {}
        """Error of each corruption."""

        for condition, copies in by_condition(samples, ["corruption"], ["corruption", "severity"]):
            images = one_row_per_sample(copies)
            error = 1 - float(images["value"].mean())
            if list(condition) == ["corruption"]:
                corruption = str(condition["corruption"])
                self._samples_by_corruption[corruption] = images
                self.by_corruption[corruption] = error
            # One copy of each image is right or wrong.
            binary = len(images) == len(copies)
            low, high = self._error_bounds(images["value"], images["label"], binary=binary)
            row = {"n": len(images), "error": error, "low": low, "high": high, "confidence": intervals.confidence}
            self._rows.append({**condition, **row})

    def _error_bounds(self, values: ArrayLike, labels: ArrayLike, *, binary: bool) -> tuple[float, float]:
        alpha = 1 - self._intervals.confidence
        bounds = bounds_of(
            values,
            labels,
            self._classes,
            measure=replace(self._measure, binary=binary),
            intervals=self._intervals,
            label_error_rates=self._label_error_rates,
        )
        return 1 - bounds.upper_aggregate(alpha / 2), 1 - bounds.lower_aggregate(alpha / 2)

    def table(self, baseline_errors: Mapping[str, float]) -> pd.DataFrame:
        """Errors of all copies, of each corruption and of each of its severities, and the corruption errors.

        Parameters
        ----------
        baseline_errors : mapping
            Error of the baseline by corruption; empty without one.
        """
        rows = []
        for row in self._rows:
            ratios = (np.nan, np.nan, np.nan)
            if "corruption" in row:
                baseline_error = baseline_errors.get(row["corruption"], 0.0)
                if "severity" not in row and baseline_error > 0:
                    ratios = (row["error"] / baseline_error, row["low"] / baseline_error, row["high"] / baseline_error)
            else:
                ratios = self.mean_corruption_error(baseline_errors)
            ce, low, high = ratios
            rows.append({**row, "corruption_error": ce, "corruption_error_low": low, "corruption_error_high": high})
        return pd.DataFrame(rows)

    def mean_corruption_error(self, baseline_errors: Mapping[str, float]) -> tuple[float, float, float]:
        """Mean over corruptions of the error over the baseline's (mCE), as a fraction, with bounds.

        Parameters
        ----------
        baseline_errors : mapping
            Error of the baseline by corruption, which is taken as a known number, like a published one.

        Returns
        -------
        mean, low, high : float
            NaN where the baseline makes no error under some corruption.

        References
        ----------
        Hendrycks and Dietterich 2019, section 4, in percent.
        """
        corruptions = list(self._samples_by_corruption)
        if not corruptions or min(baseline_errors.get(name, 0.0) for name in corruptions) <= 0:
            return np.nan, np.nan, np.nan
        weights = {name: 1 / (len(corruptions) * baseline_errors[name]) for name in corruptions}
        total = sum(weights.values())

        # A weighted mean of a sample's errors is one number of the sample, and so is the share that is right.
        weighted = {}
        for name, images in self._samples_by_corruption.items():
            weighted[name] = images.set_index("sample_id")["value"] * weights[name] / total
        right = pd.DataFrame(weighted).dropna()
        first = self._samples_by_corruption[corruptions[0]].set_index("sample_id")
        labels = first["label"].loc[right.index]
        low, high = self._error_bounds(right.sum(axis=1).clip(upper=1.0), labels, binary=False)

        mean = sum(weights[name] * error for name, error in self.by_corruption.items())
        return mean, total * low, total * high
