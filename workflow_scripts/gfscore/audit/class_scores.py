"""Rows of the tables about classes: their values, their ranking, and the differences between them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.values import SampleValues
from gfscore.core.files import read_json
from gfscore.statistics.class_bounds import bootstrap_intervals
from gfscore.statistics.classes import class_values
from gfscore.statistics.ranking import vulnerability

CLASS_KEY = ["dataset", "threat", "model", "measure", "calibration", "temperature"]
"""Columns that name the class values of one model in class_scores."""

MOST_PAIRED = 40
"""Largest number of classes whose pairs are listed, 780 for each model, measure and calibration."""


def class_rows(
    measured: SampleValues,
    class_names: Sequence[str],
    *,
    intervals: Mapping[str, Any],
    label_error_rates: Sequence[float] | NDArray[np.floating] | None,
) -> list[dict[str, Any]]:
    """Rows of the table class_scores for one SampleValues.

    Takes K names, config's section `intervals`, and the rate of wrong labels to allow for: (K,) numbers, or None when
    the labels are assumed right. Rows at a temperature chosen on the same samples get no bounds: that voids the
    guarantee.
    """
    classes = len(class_names)
    values = class_values(measured.low, measured.labels, classes)
    accuracy = class_values(measured.correct[~measured.missing], measured.labels[~measured.missing], classes)
    counts = measured.counts(classes)
    known: dict[str, Any] = {}
    if measured.fresh:
        known = _bounds(measured, classes, intervals, label_error_rates)
    return [
        {
            **measured.columns(),
            "class_index": k,
            "class_name": class_names[k],
            "n": values.n[k],
            "n_missing": counts["expected"][k] - counts["measured"][k],
            "n_rows": counts["rows"][k],
            "value": values.mean[k],
            **{name: known[name][k] if known else None for name in ("low", "high", "bootstrap_low", "bootstrap_high")},
            "interval": known.get("interval"),
            "confidence": intervals["confidence"] if known else None,
            "accuracy": accuracy.mean[k],
            "variance": values.variance[k],
            "label_error_rate": None if label_error_rates is None else label_error_rates[k],
        }
        for k in range(classes)
    ]


def _bounds(measured, classes, intervals, label_error_rates):
    alpha = 1 - intervals["confidence"]
    bounds = measured.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
    low, high = bounds.interval(alpha)
    resampled = bootstrap_intervals(
        bounds.samples,
        alpha=alpha,
        resamples=intervals["bootstrap_resamples"],
        value_range=bounds.value_range,
        seed=intervals["seed"],
    )
    named = dict(zip(("bootstrap_low", "bootstrap_high"), resampled, strict=True))
    return {"interval": bounds.method, "low": low, "high": high, **named}


def vulnerability_rows(class_scores: pd.DataFrame) -> list[dict[str, Any]]:
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


def class_pair_rows(class_scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table class_pairs from class_scores: every pair of classes of a model, the stronger class first.

    Classes without samples are in no pair, and more than MOST_PAIRED classes have no rows: K = 1,000 would make half a
    million for each model. Bounds of a difference follow from those of its two classes, and hold jointly if those do.
    """
    groups = class_scores.groupby(CLASS_KEY, sort=False, dropna=False)
    numbered = class_scores.assign(group=groups.ngroup(), classes=groups["class_index"].transform("size"))
    found = numbered[numbered["value"].notna() & (numbered["classes"] <= MOST_PAIRED)]
    found = found.sort_values(["group", "value", "class_index"], ascending=[True, False, True])
    counts = found["group"].value_counts(sort=False).to_numpy()
    pairs = [
        start + np.stack(np.triu_indices(count, 1))
        for start, count in zip(np.cumsum(counts) - counts, counts, strict=True)
    ]
    stronger, weaker = (
        found.take(index).reset_index(drop=True)
        for index in (np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), dtype=int))
    )
    return stronger[CLASS_KEY].assign(
        **{f"stronger_{name}": stronger[f"class_{name}"] for name in ("index", "name")},
        **{f"weaker_{name}": weaker[f"class_{name}"] for name in ("index", "name")},
        difference=stronger["value"] - weaker["value"],
        low=stronger["low"] - weaker["high"],
        high=stronger["high"] - weaker["low"],
    )


def resolve_label_error_rates(setting: Any, path_to_manifest: Path | str, path_to_generator: Any) -> list[float] | None:
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
