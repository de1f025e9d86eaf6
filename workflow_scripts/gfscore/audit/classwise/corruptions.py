"""Rows of the table corruption_errors: errors by corruption and severity, and the mean corruption error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gfscore.audit.values import one_row_per_sample
from gfscore.core.identity import label_of
from gfscore.measures import measure_of
from gfscore.statistics.class_bounds import bounds_of

if TYPE_CHECKING:
    from gfscore.audit.values import AuditValues


def corruption_tables(
    inputs: AuditValues,
    classes: int,
    *,
    intervals: Mapping[str, Any],
    label_error_rates: Sequence[float] | None,
    baseline: str | None,
) -> dict[str, list[dict[str, Any]]]:
    """Rows of corruption_errors by that name, of every measure of kind corruption; nothing without one.

    Takes config's section `intervals`, the shares of wrong labels (K,) to allow for, and the label of the model that
    corruption errors are relative to, None for none.
    """
    chosen = [measure.name for measure in inputs.subject.of_kind("corruption")]
    how = {"intervals": intervals, "label_error_rates": label_error_rates}
    models = [
        ModelErrors(
            {**model.columns(), "measure": measure},
            inputs.table(model, measure),
            inputs.subject.measures[measure].entry(),
            classes,
            how,
        )
        for measure in chosen
        for model in inputs.included
    ]
    base = {model.key["measure"]: model.by_corruption for model in models if label_of(model.key) == baseline}
    rows = [
        {**model.key, **row, "baseline": baseline, **model.relative(row, base.get(model.key["measure"], {}))}
        for model in models
        for row in model.rows
    ]
    return {"corruption_errors": rows} if chosen else {}


class ModelErrors:
    """Errors of one model by corruption and severity, and relative to those of another."""

    def __init__(
        self,
        key: Mapping[str, str],
        samples: pd.DataFrame,
        settings: Mapping[str, Any],
        classes: int,
        how: Mapping[str, Any],
    ) -> None:
        """Takes the model and its measure, a samples table, and what corruption_tables takes."""
        self.key, self._how, self._classes = key, how, classes
        self._measure = measure_of(settings)
        self.rows: list[dict[str, Any]] = []
        """Errors of all copies, of each corruption, and of each of its severities.

        `error` is a mean over samples of each sample's mean over its copies, so that the bounds, of each row alone,
        rest on as many samples as there are images.
        """
        self._of_corruption: dict[str, pd.DataFrame] = {}
        for condition, part in conditions_of(samples, ["corruption"], ["corruption", "severity"]):
            whole = one_row_per_sample(part)
            if [*condition] == ["corruption"]:
                self._of_corruption[condition["corruption"]] = whole
            # One copy of each is right or wrong.
            low, high = self._error_bounds(whole["value"], whole["label"], binary=len(whole) == len(part))
            bounds = {"low": low, "high": high, "confidence": how["intervals"]["confidence"]}
            self.rows.append({**condition, "n": len(whole), "error": 1 - float(whole["value"].mean()), **bounds})

    def _error_bounds(self, values, labels, *, binary):
        described, alpha = replace(self._measure, binary=binary), 1 - self._how["intervals"]["confidence"]
        bounds = bounds_of(values, labels, self._classes, measure=described, **self._how)
        return 1 - bounds.upper_aggregate(alpha / 2), 1 - bounds.lower_aggregate(alpha / 2)

    @property
    def by_corruption(self) -> dict[str, float]:
        """Error of each corruption."""
        return {row["corruption"]: row["error"] for row in self.rows if "corruption" in row and "severity" not in row}

    def relative(self, row: Mapping[str, Any], base: Mapping[str, float]) -> dict[str, float]:
        """`corruption_error` of a row and its bounds, relative to the errors `base` of a baseline by corruption.

        Of a corruption its error over the baseline's (CE), of all the mean of these (mCE); NaN of single severities,
        and where the baseline makes no error. Bounds take the baseline's errors as they are, as published ones would
        be. Source: Hendrycks and Dietterich 2019, section 4; as a fraction, where they give percent.
        """
        names = [row["corruption"]] if "corruption" in row else [*self._of_corruption]
        if "severity" in row or not names or not all(base.get(name, 0) > 0 for name in names):
            ends = (np.nan, np.nan, np.nan)
        elif "corruption" in row:
            ends = tuple(row[end] / base[names[0]] for end in ("error", "low", "high"))
        else:
            ends = self._mean_ratio({name: 1 / (len(names) * base[name]) for name in names})
        return dict(zip(("corruption_error", "corruption_error_low", "corruption_error_high"), ends, strict=True))

    def _mean_ratio(self, weights):
        # A weighted mean of a sample's errors is one number of the sample, and so is the share that is right.
        total = sum(weights.values())
        right = pd.DataFrame(
            {
                name: whole.set_index("sample_id")["value"] * weights[name] / total
                for name, whole in self._of_corruption.items()
            }
        ).dropna()
        labels = next(iter(self._of_corruption.values())).set_index("sample_id")["label"].loc[right.index]
        low, high = self._error_bounds(right.sum(axis=1).clip(upper=1.0), labels, binary=False)
        mean = sum(weights[name] * error for name, error in self.by_corruption.items())
        return mean, total * low, total * high


def conditions_of(samples: pd.DataFrame, *keys: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield a samples table whole, without a condition, and its rows by the values of each of some lists of columns."""
    yield {}, samples
    for columns in keys:
        for values, part in samples.groupby(columns, sort=False):
            yield dict(zip(columns, values, strict=True)), part
