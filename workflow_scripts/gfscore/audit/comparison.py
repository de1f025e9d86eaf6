"""Comparison of the models of an audit with each other, all at T = 1.

Tables `comparisons`, `model_comparisons`, `rank_intervals`, `lambda_swaps` and `metric_ranks`. The first two are
families of tests: of all pairs of models, and in `comparisons` of all classes too.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics import METRICS, metric_values
from gfscore.audit.sensitivity import lambda_swaps, places
from gfscore.audit.settings import ComparisonSettings
from gfscore.audit.values import SampleValues
from gfscore.statistics.classes import class_values
from gfscore.statistics.intervals import wrong_shares
from gfscore.statistics.multiple_tests import is_significant
from gfscore.statistics.paired import Comparison, compare
from gfscore.statistics.tolerances import TIE_TOLERANCE
from gfscore.tables.parquet_tables import stacked_tables
from gfscore.tables.table import CLASS, EVALUATED_DATASET, MEASURE, MEASURED, Column, Table

_PAIR: tuple[Column, ...] = (
    EVALUATED_DATASET,
    MEASURE,
    Column("first_threat", pa.string(), "threat model of the first classifier"),
    Column("first_model", pa.string(), "classifier with the larger aggregate"),
    Column("second_threat", pa.string(), "threat model of the second classifier"),
    Column("second_model", pa.string(), "classifier with the smaller aggregate"),
)

_TESTED: tuple[Column, ...] = (
    Column(
        "difference",
        pa.float64(),
        "mean of first - second over the same samples, undecided ones at their smallest values",
    ),
    Column("low", pa.float64(), "lower bound by betting, simultaneous over the family"),
    Column("high", pa.float64(), "upper bound by betting, simultaneous over the family"),
    Column("confidence", pa.float64(), "simultaneous confidence of the family's bounds"),
    Column("p", pa.float64(), "two-sided p-value by betting, valid for every n, of this row alone"),
    Column("p_holm", pa.float64(), "adjusted by Holm over both directions of the family"),
    Column("p_bh", pa.float64(), "adjusted by Benjamini-Hochberg over both directions of the family"),
    Column("p_by", pa.float64(), "adjusted by Benjamini-Yekutieli over both directions of the family"),
)

COMPARISONS = Table(
    name="comparisons",
    version=2,
    columns=(
        *_PAIR,
        *CLASS,
        Column("n", pa.int64(), "samples of the class"),
        *_TESTED,
    ),
)

MODEL_COMPARISONS = Table(
    name="model_comparisons",
    version=2,
    columns=(
        *_PAIR,
        Column("n", pa.int64(), "samples"),
        *_TESTED,
        Column("classes", pa.int64(), "classes compared"),
        Column(
            "wins_first",
            pa.int64(),
            "classes in which the first has the larger value: difference above 0",
        ),
        Column("wins_second", pa.int64(), "classes in which the second has the larger value: difference below 0"),
        Column("sure_wins_first", pa.int64(), "classes of wins_first that are significant by Holm's p-value"),
        Column("sure_wins_second", pa.int64(), "classes of wins_second that are significant by Holm's p-value"),
    ),
)

RANK_INTERVALS = Table(
    name="rank_intervals",
    version=1,
    columns=(
        *MEASURED,
        Column("value", pa.float64(), "aggregate"),
        Column("rank", pa.float64(), "rank by aggregate, 1 for the largest; ties get the mean rank"),
        Column("rank_best", pa.int64(), "lower end of the rank's confidence interval"),
        Column("rank_worst", pa.int64(), "upper end"),
        Column("confidence", pa.float64(), "simultaneous confidence of all models' ranks"),
    ),
)

LAMBDA_SWAPS = Table(
    name="lambda_swaps",
    version=1,
    columns=(
        EVALUATED_DATASET,
        MEASURE,
        Column("fp_lambda", pa.float64(), "lambda of FP at which the two models are equal"),
        Column("before_threat", pa.string(), "threat model of the classifier that is better for smaller lambda"),
        Column("before_model", pa.string(), "classifier that is better for smaller lambda"),
        Column("after_threat", pa.string(), "threat model of the classifier that is better for larger lambda"),
        Column("after_model", pa.string(), "classifier that is better for larger lambda"),
    ),
)

METRIC_RANKS = Table(
    name="metric_ranks",
    version=1,
    columns=(
        *MEASURED,
        Column("metric", pa.string(), "metric that ranks the models"),
        Column("value", pa.float64(), "its value"),
        Column("place", pa.float64(), "rank of the model by the metric, 1 for the best; ties get the mean rank"),
    ),
)

COMPARISON_TABLES = (COMPARISONS, MODEL_COMPARISONS, RANK_INTERVALS, LAMBDA_SWAPS, METRIC_RANKS)


def comparison_tables(
    values: Iterable[SampleValues],
    class_names: Sequence[str],
    *,
    settings: ComparisonSettings,
    fp_lambda: float,
    family_models: int | None = None,
    label_error_rates: ArrayLike | None = None,
) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, object]]]:
    """Tables of COMPARISON_TABLES by name, and the contents of comparison.json.

    Parameters
    ----------
    values : iterable of SampleValues
        Values of the audit. Only those at T = 1 are compared, since a temperature chosen on these samples would
        invalidate the tests.
    class_names : sequence of str
        Names of the K classes.
    settings : ComparisonSettings
    fp_lambda : float
        Weight lambda of RDI in FP.
    family_models : int, optional
        Number of models that corrections for multiple tests count: those of `values` by default; more where models
        were left out (AuditValues.left_out).
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that bounds, p-values and rank intervals allow for.
    """
    by_measure: dict[str, list[SampleValues]] = {}
    for values_of_model in values:
        if not values_of_model.calibrated:
            by_measure.setdefault(values_of_model.measure.name, []).append(values_of_model)

    frames = defaultdict(list)
    summaries: dict[str, dict[str, object]] = {}
    for measure, models in by_measure.items():
        metrics = _metrics_of(models, len(class_names), fp_lambda)
        frames["lambda_swaps"].append(_swap_frame(models, metrics))
        frames["metric_ranks"].append(_metric_frame(models, metrics))
        reason = reason_against_tests(models)
        summaries[measure] = {
            "models": len(models),
            "compared": reason is None,
            "reason": reason,
            "undecided": sum(int((values_of_model.high > values_of_model.low).sum()) for values_of_model in models),
        }
        if reason is not None:
            continue

        family = family_models or len(models)
        comparison = _tested(models, settings, family, label_error_rates)
        best = models[comparison.order[0]].model
        frames["comparisons"].append(_class_frame(comparison, models, class_names, settings.confidence))
        frames["model_comparisons"].append(_pair_frame(comparison, models, settings.confidence))
        frames["rank_intervals"].append(_rank_frame(comparison, models, metrics["value"], settings.confidence))
        summaries[measure] |= {
            "every_pair": comparison.every_pair,
            "pairs_listed": len(comparison.pairs),
            "pairs_corrected_for": math.comb(family, 2),
            "classes": len(comparison.classes),
            "reference": None if comparison.every_pair else best.label,
            "confidence": settings.confidence,
        }
    return stacked_tables(COMPARISON_TABLES, frames), summaries


def reason_against_tests(models: Sequence[SampleValues]) -> str | None:
    """Why models cannot be tested against each other by their values of one measure; None where they can."""
    if len(models) < 2:
        return "only one model takes part"
    first = models[0]
    for values in models[1:]:
        if not np.array_equal(values.sample_id, first.sample_id):
            return f"{first.model.label} and {values.model.label} were measured on different samples"
    return None


def _tested(
    models: Sequence[SampleValues],
    settings: ComparisonSettings,
    family_models: int,
    label_error_rates: ArrayLike | None,
) -> Comparison:
    measure = models[0].measure.description
    error_rate: ArrayLike = measure.error_rate
    if label_error_rates is not None:
        error_rate = wrong_shares(label_error_rates, measure.error_rate)
    return compare(
        np.stack([values.low for values in models]),
        models[0].labels,
        value_range=measure.value_range,
        alpha=1 - settings.confidence,
        most=settings.most,
        family_models=family_models,
        upper_values=np.stack([values.high for values in models]),
        error_rate=error_rate,
    )


def _metrics_of(models: Sequence[SampleValues], classes: int, fp_lambda: float) -> pd.DataFrame:
    # One row for each model, one column for each metric.
    rows = []
    for values in models:
        rows.append(metric_values(class_values(values.low, values.labels, classes), lam=fp_lambda))
    return pd.DataFrame(rows)


def _model_columns(models: Sequence[SampleValues]) -> pd.DataFrame:
    return pd.DataFrame([{**values.model.columns(), "measure": values.measure.name} for values in models])


def _pair_columns(models: Sequence[SampleValues], pairs: NDArray[np.int64], roles: tuple[str, str]) -> pd.DataFrame:
    # Columns that name the two models of each pair, by their roles.
    names = _model_columns(models)
    columns = {"dataset": models[0].model.dataset, "measure": models[0].measure.name}
    frame = pd.DataFrame(columns, index=range(len(pairs)))
    for role, indices in zip(roles, pairs.T, strict=True):
        frame[f"{role}_threat"] = names["threat"].to_numpy()[indices]
        frame[f"{role}_model"] = names["model"].to_numpy()[indices]
    return frame


def _swap_frame(models: Sequence[SampleValues], metrics: pd.DataFrame) -> pd.DataFrame:
    swaps = pd.DataFrame(lambda_swaps(metrics["class_mean"], metrics["rdi"]), columns=["fp_lambda", "before", "after"])
    pairs = swaps[["before", "after"]].to_numpy(np.int64)
    return _pair_columns(models, pairs, ("before", "after")).assign(fp_lambda=swaps["fp_lambda"])


def _metric_frame(models: Sequence[SampleValues], metrics: pd.DataFrame) -> pd.DataFrame:
    # Metric after metric, the models in the order of the audit.
    frames = []
    for name, metric in METRICS.items():
        if metric.ranks_models:
            ranks = places(metrics[name], better=metric.direction)
            frames.append(_model_columns(models).assign(metric=name, value=metrics[name], place=ranks))
    return pd.concat(frames, ignore_index=True)


def _rank_frame(
    comparison: Comparison, models: Sequence[SampleValues], aggregates: pd.Series, confidence: float
) -> pd.DataFrame:
    frame = _model_columns(models).assign(
        value=aggregates,
        rank=places(aggregates),
        rank_best=comparison.best,
        rank_worst=comparison.worst,
        confidence=confidence,
    )
    # The best model first.
    return frame.iloc[comparison.order]


def _class_frame(
    comparison: Comparison, models: Sequence[SampleValues], class_names: Sequence[str], confidence: float
) -> pd.DataFrame:
    # One row for each pair and class, pair after pair.
    classes = len(comparison.classes)
    pairs = len(comparison.pairs)
    n = np.bincount(models[0].labels, minlength=len(class_names))
    # The comparison has all pairs for the first class, then for the next.
    pair_after_pair = np.arange(classes * pairs).reshape(classes, pairs).T.ravel()
    tested = comparison.by_class.iloc[pair_after_pair].reset_index(drop=True)
    names = _pair_columns(models, np.repeat(comparison.pairs, classes, axis=0), ("first", "second"))
    return pd.concat([names, tested], axis=1).assign(
        class_index=np.tile(comparison.classes, pairs),
        class_name=np.tile([class_names[k] for k in comparison.classes], pairs),
        n=np.tile(n[comparison.classes], pairs),
        confidence=confidence,
    )


def _pair_frame(comparison: Comparison, models: Sequence[SampleValues], confidence: float) -> pd.DataFrame:
    # One row for each pair, with the number of classes in which each of the two is better.
    shape = len(comparison.classes), len(comparison.pairs)
    difference = comparison.by_class["difference"].to_numpy().reshape(shape)
    sure = is_significant(comparison.by_class["p_holm"].to_numpy().reshape(shape), level=1 - confidence)
    won = difference > TIE_TOLERANCE
    lost = difference < -TIE_TOLERANCE
    names = _pair_columns(models, comparison.pairs, ("first", "second"))
    return pd.concat([names, comparison.overall], axis=1).assign(
        n=len(models[0].low),
        confidence=confidence,
        classes=len(comparison.classes),
        wins_first=won.sum(axis=0),
        wins_second=lost.sum(axis=0),
        sure_wins_first=(won & sure).sum(axis=0),
        sure_wins_second=(lost & sure).sum(axis=0),
    )
