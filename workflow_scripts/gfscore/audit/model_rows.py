"""Rows of the table model_summary: every metric of a model with its interval and what chance alone gives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.metrics import BOUNDED, MAIN, METRICS
from gfscore.audit.noise import noise_floor
from gfscore.audit.verdicts.planner import detectable_rdi
from gfscore.measures import measure_of
from gfscore.statistics.class_bounds import bounds_of
from gfscore.statistics.classes import ClassValues, class_values
from gfscore.statistics.disparity import worst_class_set, worst_classes


def summarise(
    values: ClassValues,
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
    *,
    class_names: Sequence[str],
    lam: float,
) -> dict[str, Any]:
    """Every metric of class values, with intervals, as a mapping (see gfscore.audit.one_classifier.Audit.summary).

    Takes simultaneous class bounds `low`, `high` (K,) or None when there are none, K names and `lam` of FP. Without
    class bounds every interval is (NaN, NaN).
    """
    summary: dict[str, Any] = {
        name: metric.of(values.mean, counts=values.n, lam=lam) for name, metric in METRICS.items()
    }
    for metric in BOUNDED:
        interval = np.nan, np.nan
        if low is not None and high is not None:
            interval = metric.interval(low, high, counts=values.n, lam=lam)
        summary[f"{metric.name}_interval"] = interval
    tied = worst_classes(values.mean)
    return summary | {"wcr_class": class_names[tied[0]], "wcr_tied": [class_names[index] for index in tied]}


def model_rows(inputs, class_scores, accuracies, settings):
    """Rows of the table model_summary.

    Takes AuditInputs, the table class_scores made from them, `accuracies` (per model a mapping of the published and
    robust accuracy columns) and `settings`: fp_lambda, and permutations and seed of the noise floor. Shuffles at least
    so often that Holm's adjustment for the number of models can leave a p-value of 5%.
    """
    settings = settings | {"permutations": max(settings["permutations"], 20 * len(inputs.models) - 1)}
    by_key = dict(list(class_scores.groupby(["threat", "model", "measure", "calibration"], sort=False)))
    of_model = {
        (model["threat"], model["model"]): known for model, known in zip(inputs.models, accuracies, strict=True)
    }
    rows = []
    for measured in inputs.measured():
        threat, model, measure, calibration = (
            measured.key[name] for name in ("threat", "model", "measure", "calibration")
        )
        classes = by_key[threat, model, measure, calibration].sort_values("class_index")
        accuracies_of_model = of_model[threat, model]
        rows.append(_model_row(measured, classes, measure_of(inputs.measures[measure]), accuracies_of_model, settings))
    return rows


def _model_row(measured, class_frame, measure, accuracies, settings):
    names, lam = class_frame["class_name"].tolist(), settings["fp_lambda"]
    bounds = class_frame["low"].to_numpy(), class_frame["high"].to_numpy()
    detectable = detectable_rdi(*bounds)
    if not measured.fresh:
        bounds = None, None
    values = class_values(measured.values, measured.labels, len(names))
    summary = summarise(values, *bounds, class_names=names, lam=lam)
    row = measured.key | {name: summary[name] for name in METRICS}
    for metric in MAIN:
        if metric.bounded:
            row[f"{metric.name}_low"], row[f"{metric.name}_high"] = summary[f"{metric.name}_interval"]
    row["value_alone_low"], row["value_alone_high"] = _aggregate_alone(measured, class_frame, measure)
    noise = noise_floor(
        measured.values,
        measured.labels,
        len(names),
        permutations=settings["permutations"],
        rng=measured.generator(settings["seed"]),
        lam=lam,
    )
    return row | {
        "wcr_class": summary["wcr_class"],
        "wcr_tied": summary["wcr_tied"],
        "worst_class_set": [] if bounds[0] is None else [names[k] for k in worst_class_set(*bounds)],
        "interval": class_frame["interval"].iloc[0],
        "confidence": class_frame["confidence"].iloc[0],
        "accuracy": float(np.mean(measured.correct)),
        **accuracies,
        **{f"{name}_permuted": value for name, value in noise.permuted.items()},
        # Undecided values are not known, so that shuffling them tests nothing.
        **{f"{name}_p": None if measured.bounded else value for name, value in noise.p_value.items()},
        "between_class_sd": noise.between_class_sd,
        "rdi_detectable": detectable,
    }


def _aggregate_alone(measured, class_frame, measure):
    # Interval of the aggregate itself, by the method, confidence and label-error rates of the class bounds.
    if not measured.fresh:
        return None, None
    method, rates = class_frame["interval"].iloc[0], class_frame["label_error_rate"]
    bounds = bounds_of(
        measured.values,
        measured.labels,
        len(class_frame),
        measure=measure,
        # The order of the samples, which the seed draws, is of no account here.
        intervals={"method": method, "binary": method, "seed": 0},
        label_error_rates=None if rates.isna().all() else rates.to_numpy(dtype=np.float64),
        upper_values=measured.upper_values,
    )
    side = (1 - class_frame["confidence"].iloc[0]) / 2
    return bounds.lower_aggregate(side), bounds.upper_aggregate(side)
