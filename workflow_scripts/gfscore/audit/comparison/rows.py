"""Rows of the tables that compare the models of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.comparison.sensitivity import lambda_swaps, places, statistics_of
from gfscore.audit.measured import row_generator
from gfscore.audit.metrics import METRICS
from gfscore.audit.table_names import COMPARISONS
from gfscore.core.identity import label_of
from gfscore.statistics.classes import class_values
from gfscore.statistics.disparity import TIE_TOLERANCE
from gfscore.statistics.paired import compare

if TYPE_CHECKING:
    from gfscore.audit.measured import Measured
    from gfscore.statistics.paired import Comparison

ADJUSTED = {"p": "p", "p_holm": "holm", "p_bh": "bh", "p_by": "by"}
ADJUSTED |= {"p_sign_flip": "sign_flip_p", "p_sign_flip_adjusted": "sign_flip_adjusted"}


def comparison_of(measured: Sequence[Measured], *, settings: Mapping[str, Any]) -> tuple[Comparison | None, str | None]:
    """Comparison of the models for one measure: `(comparison, None)`, or `(None, reason)` if it is impossible.

    Takes a list of Measured of it, and `settings`: confidence, most, flips and seed.
    """
    if len(measured) < 2:
        return None, "only one model takes part"
    other = next((item for item in measured if not np.array_equal(item.sample_id, measured[0].sample_id)), None)
    if other:
        return None, f"{label_of(measured[0].key)} and {label_of(other.key)} were measured on different samples"
    values = np.stack([item.values for item in measured])
    largest = np.stack([item.values if item.upper_values is None else item.upper_values for item in measured])
    key = {name: measured[0].key[name] for name in ("dataset", "measure")}
    return (
        compare(
            values,
            measured[0].labels,
            value_range=measured[0].measure.value_range,
            alpha=1 - settings["confidence"],
            most=settings["most"],
            flips=settings["flips"],
            rng=row_generator(settings["seed"], key),
            upper_values=largest,
            error_rate=measured[0].measure.error_rate,
        ),
        None,
    )


def comparison_tables(
    measured: Iterable[Measured], class_names: Sequence[str], *, settings: Mapping[str, Any], fp_lambda: float
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows of the tables of COMPARISONS by name, and the contents of comparison.json.

    Takes Measured values, K names, the settings of the comparison and lambda of FP. Only values at T = 1 are compared,
    since a temperature chosen on these samples would invalidate the tests.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARISONS}
    about: dict[str, Any] = {}
    by_measure: dict[str, list[Measured]] = {}
    for item in measured:
        if not item.calibrated:
            by_measure.setdefault(item.key["measure"], []).append(item)
    for name, items in by_measure.items():
        tables, about[name] = tables_of(items, class_names, settings=settings, fp_lambda=fp_lambda)
        for table in rows:
            rows[table] += tables[table]
    return rows, about


def tables_of(
    measured: Sequence[Measured], class_names: Sequence[str], *, settings: Mapping[str, Any], fp_lambda: float
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Rows by table name for one measure, and its entry of comparison.json.

    Takes a list of Measured of one measure at T = 1; the others are as comparison_tables takes them.
    """
    comparison, reason = comparison_of(measured, settings=settings)
    values = [class_values(item.values, item.labels, len(class_names)) for item in measured]
    statistics = [statistics_of(item, lam=fp_lambda) for item in values]
    rows: dict[str, list[dict[str, Any]]] = {
        "comparisons": [],
        "model_comparisons": [],
        "rank_intervals": [],
        "lambda_swaps": _swap_rows(measured, statistics),
        "metric_ranks": _metric_rows(measured, statistics),
    }
    about: dict[str, Any] = {"models": len(measured), "compared": comparison is not None, "reason": reason}
    about["undecided"] = sum(
        int((np.asarray(item.upper_values) > item.values).sum()) for item in measured if item.bounded
    )
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
        "reference": None if comparison.every_pair else label_of(measured[comparison.order[0]].key),
        "confidence": settings["confidence"],
    }


def _key(first, second):
    return {
        "dataset": first.key["dataset"],
        "measure": first.key["measure"],
        "first_threat": first.key["threat"],
        "first_model": first.key["model"],
        "second_threat": second.key["threat"],
        "second_model": second.key["model"],
    }


def _numbers(differences, index, confidence):
    return {
        "difference": differences.value[index],
        "low": differences.low[index],
        "high": differences.high[index],
        "confidence": confidence,
        **{column: getattr(differences, name)[index] for column, name in ADJUSTED.items()},
    }


def _class_rows(comparison, measured, class_names, confidence):
    n = np.bincount(measured[0].labels, minlength=len(class_names))
    keys = [_key(measured[first], measured[second]) for first, second in comparison.pairs]
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
    value, holm = (getattr(comparison.by_class, name).reshape(shape) for name in ("value", "holm"))
    sure = holm <= 1 - confidence
    won, lost = value > TIE_TOLERANCE, value < -TIE_TOLERANCE
    return [
        {
            **_key(measured[first], measured[second]),
            "n": len(measured[first].values),
            **_numbers(comparison.overall, pair, confidence),
            "classes": shape[0],
            "wins_first": won[:, pair].sum(),
            "wins_second": lost[:, pair].sum(),
            "sure_wins_first": (won & sure)[:, pair].sum(),
            "sure_wins_second": (lost & sure)[:, pair].sum(),
        }
        for pair, (first, second) in enumerate(comparison.pairs)
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
    return {name: measured.key[name] for name in ("dataset", "threat", "model", "measure")}


def _swap_rows(measured, statistics):
    swaps = lambda_swaps(*([numbers[name] for numbers in statistics] for name in ("class_mean", "rdi")))
    return [
        {
            "dataset": measured[0].key["dataset"],
            "measure": measured[0].key["measure"],
            "fp_lambda": lam,
            "before_threat": measured[before].key["threat"],
            "before_model": measured[before].key["model"],
            "after_threat": measured[after].key["threat"],
            "after_model": measured[after].key["model"],
        }
        for lam, before, after in swaps
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
