"""Rows of the tables that compare the models of an audit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gfscore.audit.comparison.sensitivity import lambda_swaps, places, statistics_of
from gfscore.audit.measured import Measured, row_generator
from gfscore.audit.metrics import METRICS
from gfscore.audit.table_names import COMPARISONS
from gfscore.core.identity import label_of
from gfscore.statistics.classes import class_values
from gfscore.statistics.disparity import TIE_TOLERANCE
from gfscore.statistics.paired import Comparison, compare


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


def _key(measured, pair):
    named = {"dataset": measured[0].key["dataset"], "measure": measured[0].key["measure"]}
    for which, place in zip(("first", "second"), pair, strict=True):
        named |= {f"{which}_{name}": measured[place].key[name] for name in ("threat", "model")}
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
            "n": len(measured[0].values),
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
    return {name: measured.key[name] for name in ("dataset", "threat", "model", "measure")}


def _swap_rows(measured, statistics):
    named = {name: measured[0].key[name] for name in ("dataset", "measure")}
    return [
        named
        | {"fp_lambda": lam}
        | {f"before_{name}": measured[before].key[name] for name in ("threat", "model")}
        | {f"after_{name}": measured[after].key[name] for name in ("threat", "model")}
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
