"""Comparison of the models of an audit with each other, all at T = 1: columns and rows of its tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gfscore.audit.metrics import METRICS, metric_values
from gfscore.audit.sensitivity import lambda_swaps, places
from gfscore.audit.table_names import COMPARISONS
from gfscore.audit.values import SampleValues, row_generator
from gfscore.statistics.classes import TIE_TOLERANCE, class_values
from gfscore.statistics.paired import Comparison, compare
from gfscore.tables.table import MEASURED

_PAIR = (
    MEASURED[0],
    MEASURED[3],
    ("first_threat", pa.string(), "threat model of the first classifier"),
    ("first_model", pa.string(), "classifier with the larger aggregate"),
    ("second_threat", pa.string(), "threat model of the second classifier"),
    ("second_model", pa.string(), "classifier with the smaller aggregate"),
)

_CONFIDENCE = ("confidence", pa.float64(), "simultaneous confidence of the family's bounds")

_TESTED = (
    ("difference", pa.float64(), "mean of first - second over the same samples"),
    ("low", pa.float64(), "lower bound by betting, simultaneous over the family"),
    ("high", pa.float64(), "upper bound, likewise"),
    _CONFIDENCE,
    ("p", pa.float64(), "two-sided p-value by betting, valid for every n, of this row alone"),
    ("p_holm", pa.float64(), "adjusted by Holm over both directions of the family"),
    ("p_bh", pa.float64(), "adjusted by Benjamini-Hochberg, likewise"),
    ("p_by", pa.float64(), "adjusted by Benjamini-Yekutieli, likewise"),
    (
        "p_sign_flip",
        pa.float64(),
        "studentised sign-flip test of this row alone; null if too few samples differ or values are test decisions",
    ),
    ("p_sign_flip_adjusted", pa.float64(), "its p-value adjusted for the family"),
)

COMPARISON_COLUMNS = {
    "comparisons": (
        *_PAIR,
        ("class_index", pa.int32(), "class, 0..K-1"),
        ("class_name", pa.string(), "name of the class"),
        ("n", pa.int64(), "samples of the class"),
        *_TESTED,
    ),
    "model_comparisons": (
        *_PAIR,
        ("n", pa.int64(), "samples"),
        *_TESTED,
        ("classes", pa.int64(), "classes compared"),
        ("wins_first", pa.int64(), "classes in which the first has the larger value"),
        ("wins_second", pa.int64(), "classes in which the second has the larger value"),
        ("sure_wins_first", pa.int64(), "classes of wins_first that are significant by Holm's p-value"),
        ("sure_wins_second", pa.int64(), "classes of wins_second, likewise"),
    ),
    "rank_intervals": (
        *MEASURED,
        ("value", pa.float64(), "aggregate"),
        ("rank", pa.float64(), "rank by aggregate, 1 for the largest; ties get the mean rank"),
        ("rank_best", pa.int64(), "lower end of the rank's confidence interval"),
        ("rank_worst", pa.int64(), "upper end"),
        ("confidence", pa.float64(), "simultaneous confidence of all models' ranks"),
    ),
    "lambda_swaps": (
        *_PAIR[:2],
        ("fp_lambda", pa.float64(), "lambda of FP at which the two models are equal"),
        ("before_threat", pa.string(), "threat model of the classifier that is better for smaller lambda"),
        ("before_model", pa.string(), "classifier that is better for smaller lambda"),
        ("after_threat", pa.string(), "threat model of the classifier that is better for larger lambda"),
        ("after_model", pa.string(), "classifier that is better for larger lambda"),
    ),
    "metric_ranks": (
        *MEASURED,
        ("metric", pa.string(), "metric that ranks the models"),
        ("value", pa.float64(), "its value"),
        ("place", pa.float64(), "rank of the model by the metric, 1 for the best; ties get the mean rank"),
    ),
}
"""Columns by table. Each table is a family: all pairs of models, and in `comparisons` also all classes."""


def comparison_of(
    measured: Sequence[SampleValues], *, settings: Mapping[str, Any]
) -> tuple[Comparison | None, str | None]:
    """Comparison of the models for one measure: `(comparison, None)`, or `(None, reason)` if it is impossible.

    Takes a list of SampleValues of it, and `settings`: confidence, most, flips and seed.
    """
    if len(measured) < 2:
        return None, "only one model takes part"
    other = next((item for item in measured if not np.array_equal(item.sample_id, measured[0].sample_id)), None)
    if other:
        return None, f"{measured[0].model.label} and {other.model.label} were measured on different samples"
    values = np.stack([item.low for item in measured])
    largest = np.stack([item.high for item in measured])
    key = {"dataset": measured[0].model.dataset, "measure": measured[0].measure.name}
    return (
        compare(
            values,
            measured[0].labels,
            value_range=measured[0].measure.measure.value_range,
            alpha=1 - settings["confidence"],
            most=settings["most"],
            flips=settings["flips"],
            rng=row_generator(settings["seed"], key),
            upper_values=largest,
            error_rate=measured[0].measure.measure.error_rate,
        ),
        None,
    )


def comparison_tables(
    measured: Iterable[SampleValues], class_names: Sequence[str], *, settings: Mapping[str, Any], fp_lambda: float
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows of the tables of COMPARISONS by name, and the contents of comparison.json.

    Takes SampleValues, K names, the settings of the comparison and lambda of FP. Only values at T = 1 are compared,
    since a temperature chosen on these samples would invalidate the tests.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARISONS}
    about: dict[str, Any] = {}
    by_measure: dict[str, list[SampleValues]] = {}
    for item in measured:
        if not item.calibrated:
            by_measure.setdefault(item.measure.name, []).append(item)
    for name, items in by_measure.items():
        tables, about[name] = tables_of(items, class_names, settings=settings, fp_lambda=fp_lambda)
        for table in rows:
            rows[table] += tables[table]
    return rows, about


def tables_of(
    measured: Sequence[SampleValues], class_names: Sequence[str], *, settings: Mapping[str, Any], fp_lambda: float
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows by table name for one measure, and its entry of comparison.json.

    Takes a list of SampleValues of one measure at T = 1; the others are as comparison_tables takes them.
    """
    comparison, reason = comparison_of(measured, settings=settings)
    values = [class_values(item.low, item.labels, len(class_names)) for item in measured]
    statistics = [metric_values(item, lam=fp_lambda) for item in values]
    rows: dict[str, list[dict[str, Any]]] = {
        "comparisons": [],
        "model_comparisons": [],
        "rank_intervals": [],
        "lambda_swaps": _swap_rows(measured, statistics),
        "metric_ranks": _metric_rows(measured, statistics),
    }
    about: dict[str, Any] = {"models": len(measured), "compared": comparison is not None, "reason": reason}
    about["undecided"] = sum(int((item.high > item.low).sum()) for item in measured)
    if comparison is None:
        return rows, about
    rows["comparisons"] = _class_rows(comparison, measured, class_names, settings["confidence"])
    rows["model_comparisons"] = _pair_rows(comparison, measured, settings["confidence"])
    rows["rank_intervals"] = _rank_rows(comparison, measured, statistics, settings["confidence"])
    every = len(measured) * (len(measured) - 1) // 2
    return rows, about | {
        "every_pair": comparison.every_pair,
        "pairs_listed": len(comparison.pairs),
        "pairs_corrected_for": every,
        "classes": len(comparison.classes),
        "reference": None if comparison.every_pair else measured[comparison.order[0]].model.label,
        "confidence": settings["confidence"],
    }


def _key(measured, pair):
    named = {"dataset": measured[0].model.dataset, "measure": measured[0].measure.name}
    for which, place in zip(("first", "second"), pair, strict=True):
        named |= {f"{which}_threat": measured[place].model.threat, f"{which}_model": measured[place].model.model}
    return named


def _numbers(differences, index, confidence):
    return {"confidence": confidence} | {name: values[index] for name, values in differences.items()}


def _class_rows(comparison, measured, class_names, confidence):
    n = np.bincount(measured[0].labels, minlength=len(class_names))
    keys = [_key(measured, pair) for pair in comparison.pairs]
    return [
        {
            **keys[pair],
            "class_index": k,
            "class_name": class_names[k],
            "n": n[k],
            **_numbers(comparison.by_class, position * len(keys) + pair, confidence),
        }
        for pair in range(len(keys))
        for position, k in enumerate(comparison.classes)
    ]


def _pair_rows(comparison, measured, confidence):
    # One row per pair, with the number of classes in which each of the two is better.
    shape = len(comparison.classes), len(comparison.pairs)
    value, holm = (comparison.by_class[name].reshape(shape) for name in ("difference", "p_holm"))
    sure = holm <= 1 - confidence
    won, lost = value > TIE_TOLERANCE, value < -TIE_TOLERANCE
    return [
        {
            **_key(measured, pair),
            "n": len(measured[0].low),
            **_numbers(comparison.overall, place, confidence),
            "classes": shape[0],
            "wins_first": won[:, place].sum(),
            "wins_second": lost[:, place].sum(),
            "sure_wins_first": (won & sure)[:, place].sum(),
            "sure_wins_second": (lost & sure)[:, place].sum(),
        }
        for place, pair in enumerate(comparison.pairs)
    ]


def _rank_rows(comparison, measured, statistics, confidence):
    observed = places([numbers["value"] for numbers in statistics])
    return [
        {
            **_model(measured[index]),
            "value": statistics[index]["value"],
            "rank": observed[index],
            "rank_best": comparison.best[index],
            "rank_worst": comparison.worst[index],
            "confidence": confidence,
        }
        for index in comparison.order
    ]


def _model(measured):
    return {**measured.model.columns(), "measure": measured.measure.name}


def _swap_rows(measured, statistics):
    named = {"dataset": measured[0].model.dataset, "measure": measured[0].measure.name}
    return [
        named
        | {"fp_lambda": lam}
        | {"before_threat": measured[before].model.threat, "before_model": measured[before].model.model}
        | {"after_threat": measured[after].model.threat, "after_model": measured[after].model.model}
        for lam, before, after in lambda_swaps(*([of[name] for of in statistics] for name in ("class_mean", "rdi")))
    ]


def _metric_rows(measured, statistics):
    by_metric = {
        name: places([numbers[name] for numbers in statistics], better=metric.direction)
        for name, metric in METRICS.items()
        if metric.ranks_models
    }
    return [
        {**_model(item), "metric": metric, "value": statistics[index][metric], "place": by_metric[metric][index]}
        for metric in by_metric
        for index, item in enumerate(measured)
    ]
