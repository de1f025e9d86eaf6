"""Rows of class_scores and model_summary from the measured values of one model."""

import numpy as np

from gfscore import disparity
from gfscore.audit import summarise
from gfscore.classes import class_values
from gfscore.files import read_json
from gfscore.intervals import class_intervals, correct_for_label_errors
from gfscore.measured import UNCALIBRATED
from gfscore.measures import SUMMARY, measure_of
from gfscore.noise import noise_floor
from gfscore.ranking import vulnerability


def class_rows(measured, class_names, *, settings, method, alpha, label_error_rates):
    """Rows of the table class_scores for one Measured.

    Takes K names, the measure's settings, interval method and alpha, and the rate of wrong labels to allow for: (K,)
    numbers, or None when the labels are assumed right. Rows at a calibrated temperature get no bounds: it was chosen
    on the same samples, which voids the guarantee (methods 1.3).
    """
    value_range = measure_of(settings).value_range
    classes = len(class_names)
    values = class_values(measured.values, measured.labels, classes)
    accuracy = class_values(measured.correct, measured.labels, classes)
    bounded = measured.key["calibration"] == UNCALIBRATED
    low = high = np.full(classes, np.nan)
    if bounded:
        low, high = class_intervals(values, method=method, alpha=alpha, value_range=value_range)
        if label_error_rates is not None:
            low, high = correct_for_label_errors(low, high, label_error_rates, value_range=value_range)
    return [
        {
            **measured.key,
            "class_index": k,
            "class_name": class_names[k],
            "n": values.n[k],
            "value": values.mean[k],
            "low": low[k],
            "high": high[k],
            "interval": method if bounded else None,
            "confidence": 1 - alpha if bounded else None,
            "accuracy": accuracy.mean[k],
            "variance": values.variance[k],
            "label_error_rate": None if label_error_rates is None else label_error_rates[k],
        }
        for k in range(classes)
    ]


def model_rows(inputs, class_scores, accuracies, settings):
    """Rows of the table model_summary.

    Takes AuditInputs, the table class_scores made from them, `accuracies` (per model a mapping of the published and
    robust accuracy columns) and `settings`: fp_lambda, and permutations and seed of the noise floor.
    """
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
        rows.append(_model_row(measured, classes, of_model[threat, model], settings))
    return rows


def _model_row(measured, class_frame, accuracies, settings):
    names = class_frame["class_name"].tolist()
    bounds = class_frame["low"].to_numpy(), class_frame["high"].to_numpy()
    if measured.key["calibration"] != UNCALIBRATED:
        bounds = None, None
    values = class_values(measured.values, measured.labels, len(names))
    summary = summarise(values, *bounds, class_names=names, lam=settings["fp_lambda"])
    row = dict(measured.key)
    for name in SUMMARY:
        row[name] = summary[name]
        row[f"{name}_low"], row[f"{name}_high"] = summary[f"{name}_interval"]
    noise = noise_floor(
        measured.values,
        measured.labels,
        len(names),
        permutations=settings["permutations"],
        rng=measured.generator(settings["seed"]),
    )
    return row | {
        "wcr_class": summary["wcr_class"],
        "wcr_tied": summary["wcr_tied"],
        "worst_class_set": [] if bounds[0] is None else [names[k] for k in disparity.worst_class_set(*bounds)],
        "interval": class_frame["interval"].iloc[0],
        "confidence": class_frame["confidence"].iloc[0],
        "accuracy": float(np.mean(measured.correct)),
        **accuracies,
        "rdi_over_mean": disparity.rdi_over_mean(values.mean),
        "gini_unbiased": disparity.gini_unbiased(values.mean),
        "ihdi": disparity.ihdi(values.mean),
        **{f"{name}_permuted": value for name, value in noise.permuted.items()},
        **{f"{name}_p": value for name, value in noise.p_value.items()},
        "between_class_sd": noise.between_class_sd,
    }


def vulnerability_rows(class_scores):
    """Rows of the table vulnerability from class_scores: one ranking of the classes per measure and calibration."""
    rows = []
    for (dataset, measure, calibration), group in class_scores.groupby(
        ["dataset", "measure", "calibration"], sort=False
    ):
        by_model = group.pivot(index=["threat", "model"], columns="class_index", values="value")
        names = group.drop_duplicates("class_index").sort_values("class_index")["class_name"]
        ranked = vulnerability(by_model.to_numpy(), names)
        key = {"dataset": dataset, "measure": measure, "calibration": calibration}
        rows += [{**key, **row} for row in ranked.to_dict("records")]
    return rows


def resolve_label_error_rates(setting, path_to_manifest, path_to_generator):
    """Share of wrong labels of each class as a list, or None when the labels are assumed right.

    `setting` is what config says: None, one number, one per class, or "from_generator", which takes the rates that
    train_generator measured.
    """
    if setting is None:
        return None
    if setting == "from_generator":
        return read_json(path_to_generator)["label_error_rate"]
    classes = len(read_json(path_to_manifest)["classes"])
    return setting if isinstance(setting, list) else [setting] * classes
