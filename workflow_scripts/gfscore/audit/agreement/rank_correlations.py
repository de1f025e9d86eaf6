"""Rank correlations of measures with each other, over classes and over models: table `measure_agreement`."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gfscore.core.identity import UNCALIBRATED
from gfscore.statistics.ranking import EXACT_UP_TO, every_order, share_of_orders, spearman
from gfscore.statistics.tolerances import FEW_MODELS, SIGNIFICANT, STATISTIC_TOLERANCE
from gfscore.tables.parquet_tables import typed_frame
from gfscore.tables.table import EVALUATED_DATASET, Column, Table

MEASURE_AGREEMENT = Table(
    name="measure_agreement",
    version=1,
    columns=(
        EVALUATED_DATASET,
        Column("over", pa.string(), "classes (of one model) or models (by aggregate)"),
        Column("threat", pa.string(), "threat model of the classifier; null over models"),
        Column("model", pa.string(), "classifier; null over models"),
        Column("first", pa.string(), "measure"),
        Column("second", pa.string(), "measure"),
        Column("n", pa.int64(), "classes or models with values of both measures"),
        Column("rho", pa.float64(), "Spearman rank correlation; null where undefined"),
        Column(
            "low", pa.float64(), "lower bound, approximate (Bonett and Wright 2000); null below n = 4 and at rho = +-1"
        ),
        Column("high", pa.float64(), "upper bound, approximate; null where low is"),
        Column("confidence", pa.float64(), "confidence of the bounds"),
        Column("p", pa.float64(), "two-sided permutation p-value of no association, of this row alone"),
        Column("p_method", pa.string(), "every order (exact), or random orders"),
    ),
)

EVERY_ORDER = "every order"
RANDOM_ORDERS = "random orders"

ORDERS_OVER_MODELS = 9999
"""Random orders that decide whether a relation over models is clear."""


def measure_agreement(
    class_scores: pd.DataFrame, measures: Sequence[str], *, confidence: float, permutations: int, seed: int
) -> pd.DataFrame:
    """Table `measure_agreement` of all pairs of measures: over the classes of each model, then over models.

    Parameters
    ----------
    class_scores : DataFrame
        Table `class_scores`, of which the rows at T = 1 are used.
    measures : sequence of str
        Names of the measures.
    confidence, permutations, seed
        See rank_correlation.
    """
    scores = class_scores[class_scores["calibration"] == UNCALIBRATED]
    # Values of classes or models, with a column for each measure, and what names them.
    compared = []
    for (dataset, threat, model), group in scores.groupby(["dataset", "threat", "model"], sort=False):
        key = {"dataset": dataset, "threat": threat, "model": model, "over": "classes"}
        compared.append((key, group.pivot(index="class_index", columns="measure", values="value")))

    totals = scores.assign(total=scores["value"].fillna(0) * scores["n"])
    for dataset, group in totals.groupby("dataset", sort=False):
        sums = group.groupby(["threat", "model", "measure"], sort=False)[["total", "n"]].sum()
        aggregates = (sums["total"] / sums["n"]).unstack("measure")
        if len(aggregates) > 1:
            compared.append(({"dataset": dataset, "over": "models"}, aggregates))

    rows = []
    for key, values in compared:
        present = [name for name in measures if name in values]
        for first, second in combinations(present, 2):
            agreement = rank_correlation(
                values[first].to_numpy(),
                values[second].to_numpy(),
                confidence=confidence,
                permutations=permutations,
                seed=seed,
            )
            rows.append({**key, "first": first, "second": second, "confidence": confidence, **agreement})
    return typed_frame(MEASURE_AGREEMENT, rows)


def rank_correlation(x: ArrayLike, y: ArrayLike, *, confidence: float, permutations: int, seed: int) -> dict[str, Any]:
    """Spearman correlation of two lists, with interval and p-value.

    Parameters
    ----------
    x, y : array of float, shape (n,)
        Pairs with a NaN are left out.
    confidence : float
        Confidence of the interval.
    permutations : int
        Number of random orders, where there are more than EXACT_UP_TO pairs.
    seed : int
        Seed of the random orders.

    Returns
    -------
    dict
        Columns of `measure_agreement`: ``n`` pairs; ``rho`` in [-1, 1], NaN where a list is constant or shorter than 2;
        ``low``, ``high``, NaN below n = 4 and at rho = +-1; ``p`` in (0, 1], two-sided, NaN with rho; ``p_method``,
        EVERY_ORDER, exact, ties included, or RANDOM_ORDERS, the observed order included.

    Notes
    -----
    The interval is approximate: Fisher's z with variance (1 + rho^2 / 2) / (n - 3).

    # ASSUME: for the interval, classes (or models) are independent draws from a larger population.

    References
    ----------
    Bonett and Wright 2000; Phipson and Smyth 2010 for the p-value.
    """
    pairs = np.array([x, y], dtype=np.float64)
    defined = ~np.isnan(pairs).any(axis=0)
    first, second = pairs[:, defined]
    n = int(defined.sum())
    rho = float(spearman(first, second))
    if math.isnan(rho):
        return {"n": n, "rho": rho, "low": math.nan, "high": math.nan, "p": math.nan, "p_method": None}

    low = high = math.nan
    if n > 3 and abs(rho) < 1 - STATISTIC_TOLERANCE:
        half_width = -ndtri((1 - confidence) / 2) * math.sqrt((1 + rho**2 / 2) / (n - 3))
        low = math.tanh(math.atanh(rho) - half_width)
        high = math.tanh(math.atanh(rho) + half_width)

    if n <= EXACT_UP_TO:
        p = share_of_orders(first, second, every_order(n), rho)
        p_method = EVERY_ORDER
    else:
        share = share_of_orders(first, second, _random_orders(n, permutations, seed), rho)
        p = (1 + share * permutations) / (1 + permutations)
        p_method = RANDOM_ORDERS
    return {"n": n, "rho": rho, "low": low, "high": high, "p": p, "p_method": p_method}


@cache
def _random_orders(n: int, permutations: int, seed: int) -> NDArray[np.integer]:
    orders = np.tile(np.arange(n), (permutations, 1))
    return np.random.default_rng(seed).permuted(orders, axis=1)


def correlation_over_models(x: ArrayLike, y: ArrayLike) -> tuple[float, bool]:
    """Spearman rank correlation over models, and whether it is clear.

    Descriptive, since models share the samples.

    Parameters
    ----------
    x, y : array of float, shape (M,)
        Numbers of the models; pairs with a NaN are left out.

    Returns
    -------
    rho : float
    clear : bool
        Whether the two-sided p of rank_correlation is at most SIGNIFICANT; never for fewer than FEW_MODELS.
    """
    agreement = rank_correlation(x, y, confidence=1 - SIGNIFICANT, permutations=ORDERS_OVER_MODELS, seed=0)
    return agreement["rho"], agreement["n"] >= FEW_MODELS and agreement["p"] <= SIGNIFICANT
