"""Rows of the table corruption_errors: errors by corruption and severity, and the mean corruption error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.model_samples import one_row_per_sample
from gfscore.core.identity import label_of
from gfscore.measures import measure_of
from gfscore.statistics.class_bounds import bounds_of

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.inputs import AuditInputs


def corruption_tables(
    inputs: AuditInputs,
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
    chosen = [name for name, settings in inputs.measures.items() if settings["kind"] == "corruption"]
    how = {"intervals": intervals, "label_error_rates": label_error_rates}
    rows = [
        {**model, "measure": measure, **row}
        for measure in chosen
        for model, own in inputs.by_model()
        for row in error_rows(own[measure], inputs.measures[measure], classes, **how)
    ]
    return {"corruption_errors": relative_to(rows, baseline)} if chosen else {}


def error_rows(
    samples: pd.DataFrame, settings: Mapping[str, Any], classes: int, **how: Any
) -> Iterator[dict[str, Any]]:
    """Yield the errors of all copies of a samples table, of each corruption, and of each of its severities.

    `error` is a mean over samples of each sample's mean over its copies, so that the bounds, of each row alone, rest on
    as many samples as there are images. `how` holds intervals and label_error_rates, as corruption_tables takes them.
    """
    measure, alpha = measure_of(settings), 1 - how["intervals"]["confidence"]
    for condition, part in conditions_of(samples, ["corruption"], ["corruption", "severity"]):
        whole = one_row_per_sample(part)
        # One copy of each is right or wrong.
        described = replace(measure, binary=len(whole) == len(part))
        bounds = bounds_of(whole["value"], whole["label"], classes, measure=described, **how)
        yield {
            **condition,
            "n": len(whole),
            "error": 1 - float(whole["value"].mean()),
            "low": 1 - bounds.upper_aggregate(alpha / 2),
            "high": 1 - bounds.lower_aggregate(alpha / 2),
            "confidence": how["intervals"]["confidence"],
        }


def conditions_of(samples: pd.DataFrame, *keys: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield a samples table whole, without a condition, and its rows by the values of each of some lists of columns."""
    yield {}, samples
    for columns in keys:
        for values, part in samples.groupby(columns, sort=False):
            yield dict(zip(columns, values, strict=True)), part


def relative_to(rows: Sequence[Mapping[str, Any]], baseline: str | None) -> list[dict[str, Any]]:
    """Rows with `corruption_error`, the error of a corruption over that of the model `baseline`; null without one.

    That of all corruptions is the mean of theirs (mCE), null where the baseline makes no error under one of them.
    Source: Hendrycks and Dietterich 2019, section 4; as a fraction, where they give percent.
    """
    kinds = [row for row in rows if "corruption" in row and "severity" not in row]
    base = {(row["measure"], row["corruption"]): row["error"] for row in kinds if label_of(row) == baseline}

    def ratio(row: Mapping[str, Any]) -> float:
        whole = base.get((row["measure"], row["corruption"]), 0)
        return row["error"] / whole if whole > 0 else np.nan

    def relative(row: Mapping[str, Any]) -> float:
        if "severity" in row:
            return np.nan
        if "corruption" in row:
            return ratio(row)
        same = (row["measure"], label_of(row))
        return float(np.mean([ratio(kind) for kind in kinds if (kind["measure"], label_of(kind)) == same]))

    return [{**row, "baseline": baseline, "corruption_error": relative(row)} for row in rows]
