"""Rows of the tables measure_agreement, training_methods, masking_signs and class_shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import combinations, product
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.attacks.registry import expand
from gfscore.audit.agreement.gradient_masking import Attacked, masking_warnings
from gfscore.audit.values import AuditValues
from gfscore.core.identity import UNCALIBRATED, label_of
from gfscore.measures import KINDS
from gfscore.statistics.error_rates import error_rate, threshold
from gfscore.statistics.proportions import class_shares, training_method
from gfscore.statistics.ranking import EXACT_UP_TO, ROUNDING, every_order, share_of_orders, spearman

EVERY_ORDER, RANDOM_ORDERS = "every order", "random orders"


def agreement_tables(
    inputs: AuditValues,
    class_scores: pd.DataFrame,
    class_names: Sequence[str],
    *,
    methods: Sequence[Mapping[str, Any]],
    ranking: Mapping[str, Any],
) -> dict[str, list[dict[str, Any]]]:
    """Rows of measure_agreement, training_methods and masking_signs that an audit has measures for.

    Takes AuditValues, the table class_scores, K names, `methods` (mappings with threat, model and, None if unknown, the
    training method and the architecture), and confidence, permutations and seed of the rank correlations.
    """
    kinds, rows = {measure.kind.name for measure in inputs.subject.measures.values()}, {}
    if len(inputs.subject.measures) > 1:
        rows["measure_agreement"] = agreement_rows(class_scores, list(inputs.subject.measures), **ranking)
    if {"clean", "adversarial", "probabilistic"} <= kinds and len({model["method"] for model in methods} - {None}) > 1:
        rows["training_methods"] = training_rows(inputs, names_of_training(methods), confidence=ranking["confidence"])
    if kinds & {"adversarial", "minimal"}:
        rows["masking_signs"] = masking_rows(inputs, len(class_names))
    return rows


def agreement_rows(
    class_scores: pd.DataFrame, measures: Sequence[str], *, confidence: float, permutations: int, seed: int
) -> list[dict[str, Any]]:
    """Rows of measure_agreement for all pairs of `measures` (names), over the classes of each model, then over models.

    Uses the rows of class_scores at T = 1.
    """
    scores = class_scores[class_scores["calibration"] == UNCALIBRATED]
    settings = {"confidence": confidence, "permutations": permutations, "seed": seed}
    rows = []
    for key, group in scores.groupby(["dataset", "threat", "model"], sort=False):
        values = group.pivot(index="class_index", columns="measure", values="value")
        rows += _pairs(
            dict(zip(("dataset", "threat", "model"), key, strict=True)), "classes", values, measures, settings
        )
    weighted = scores.assign(total=scores["value"].fillna(0) * scores["n"])
    for dataset, group in weighted.groupby("dataset", sort=False):
        sums = group.groupby(["threat", "model", "measure"], sort=False)[["total", "n"]].sum()
        values = (sums["total"] / sums["n"]).unstack("measure")
        if len(values) > 1:
            rows += _pairs({"dataset": dataset}, "models", values, measures, settings)
    return rows


def _pairs(key, over, values, measures, settings):
    return [
        {**key, "over": over, "first": first, "second": second, "confidence": settings["confidence"]}
        | rank_agreement(values[first], values[second], **settings)
        for first, second in combinations([name for name in measures if name in values], 2)
    ]


def rank_agreement(
    x: NDArray[np.float64], y: NDArray[np.float64], *, confidence: float, permutations: int, seed: int
) -> dict[str, Any]:
    """Spearman correlation of `x` and `y` (n,), pairs with a NaN left out: columns of measure_agreement.

    `n` pairs; `rho` in [-1, 1], NaN where a list is constant or shorter than 2; `low`, `high`, NaN below n = 4 and at
    rho = +-1; `p` in (0, 1], two-sided, NaN with rho; `p_method`: EVERY_ORDER, exact for up to EXACT_UP_TO pairs, ties
    included, or RANDOM_ORDERS: random `permutations` with `seed`, including the observed order. The interval is
    approximate: Fisher's z with variance (1 + rho^2 / 2) / (n - 3). Source: Bonett and Wright 2000; Phipson and Smyth
    2010 for the p-value.
    # ASSUME: for the interval, classes (or models) are independent draws from a larger population.
    """
    from scipy.special import ndtri

    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y, n = x[known], y[known], int(known.sum())
    rho = float(spearman(x, y))
    low = high = p = math.nan
    p_method = None
    if not math.isnan(rho):
        if n > 3 and abs(rho) < 1 - ROUNDING:
            half = -ndtri((1 - confidence) / 2) * math.sqrt((1 + rho**2 / 2) / (n - 3))
            low, high = (math.tanh(math.atanh(rho) + side * half) for side in (-1, 1))
        exact = n <= EXACT_UP_TO
        p = share_of_orders(x, y, every_order(n) if exact else _random_orders(n, permutations, seed), rho)
        if not exact:
            p = (1 + p * permutations) / (1 + permutations)
        p_method = EVERY_ORDER if exact else RANDOM_ORDERS
    return {"n": n, "rho": rho, "low": low, "high": high, "p": p, "p_method": p_method}


@cache
def _random_orders(n, permutations, seed):
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (permutations, 1)), axis=1)


def names_of_training(methods: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str | None]:
    """Training method of each model by (threat, model), None if unknown; as `agreement_tables` takes them.

    Where models share it, with what tells these apart: "PGD (patch_mixer)", the architecture, or else the model, or
    else threat and model.
    """

    def name(model: Mapping[str, Any]) -> str | None:
        alike = [other for other in methods if other["method"] == model["method"]]
        if model["method"] is None or len(alike) == 1:
            return model["method"]
        for told in (itemgetter("architecture"), itemgetter("model"), label_of):
            if len(set(map(told, alike))) == len(alike):
                break
        return f"{model['method']} ({told(model)})"

    return {(model["threat"], model["model"]): name(model) for model in methods}


def training_rows(
    inputs: AuditValues, methods: Mapping[tuple[str, str], str | None], *, confidence: float
) -> list[dict[str, Any]]:
    """Rows of training_methods: Table 1 of the exact-binomial paper for every adversarial and probabilistic measure.

    Takes AuditValues and `methods` from names_of_training; models with None are left out.
    """
    clean, *_ = _of_kind(inputs, "clean")
    rows = []
    for adversarial, probabilistic in product(_of_kind(inputs, "adversarial"), _of_kind(inputs, "probabilistic")):
        names = {"clean": clean, "adversarial": adversarial, "probabilistic": probabilistic}
        settings = inputs.subject.measures[probabilistic].entry()
        rate = error_rate(settings)
        levels = {"alpha": settings["alpha"], "alpha_test": rate, "alpha_ci": 1 - confidence}
        shared = {"adversarial": adversarial, "probabilistic": probabilistic}
        shared |= {"confidence": confidence, "error_rate": rate}
        for model in inputs.included:
            training = methods[model.threat, model.model]
            if training is not None:
                tables = {kind: inputs.table(model, measure) for kind, measure in names.items()}
                found = training_method(tables, name=model.label, **levels)
                rows.append({**found, **model.columns(), "training": training, **shared})
    return rows


def class_share_rows(
    inputs: AuditValues, class_names: Sequence[str], *, confidence: float
) -> dict[str, list[dict[str, Any]]]:
    """Rows of class_shares by that name, of every probabilistic measure; nothing without one."""
    chosen = _of_kind(inputs, "probabilistic")
    rows = [
        {**model.columns(), "measure": name, **row}
        for model in inputs.included
        for name in chosen
        for row in share_rows(
            inputs.table(model, name),
            class_names,
            settings=inputs.subject.measures[name].entry(),
            confidence=confidence,
        )
    ]
    return {"class_shares": rows} if chosen else {}


def share_rows(
    samples: pd.DataFrame, class_names: Sequence[str], *, settings: Mapping[str, Any], confidence: float
) -> list[dict[str, Any]]:
    """Rows of class_shares of one model and probabilistic measure: classes, then all samples.

    Takes the samples table, K names, the measure's settings and the confidence of the corrected bounds, which allow for
    the rate at which the test errs; the printed ones take it at its level, as the paper does.
    """
    alpha, rate = settings["alpha"], error_rate(settings)
    states, labels = (samples[name].to_numpy() for name in ("state", "label"))
    rows = class_shares(states, labels, class_names, alpha=alpha, alpha_test=rate, alpha_ci=1 - confidence)
    kappa = threshold(settings["kappa"])
    return rows.assign(confidence=confidence, kappa=kappa, alpha=alpha, error_rate=rate).to_dict("records")


def masking_rows(inputs: AuditValues, classes: int) -> list[dict[str, Any]]:
    """Rows of masking_signs: signs of gradient masking in the attacks of an audit with K classes."""
    rows = []
    for model in inputs.included:
        measures = {
            measure.name: _attacked(inputs.table(model, measure.name), measure.entry(), classes)
            for measure in inputs.subject.of_kind("adversarial", "minimal")
        }
        rows += [{**model.columns(), **asdict(sign)} for sign in masking_warnings(measures)]
    return rows


def _attacked(samples, settings, classes):
    if settings["kind"] == "adversarial":
        distance, eps = samples["distance"].to_numpy(np.float64), settings["eps"]
        tried = tuple(entry["name"] for entry in expand(KINDS["adversarial"].parse(settings).attacks, classes))
    else:
        distance = np.where(samples["censored"], np.nan, samples["value"])
        eps, tried = settings["largest_distance"], tuple(entry["name"] for entry in settings["attacks"])
    sample_id, labels = (samples[name].to_numpy() for name in ("sample_id", "label"))
    attack, passes = (samples[name].to_numpy() for name in ("attack", "steps"))
    return Attacked(sample_id, labels, settings["norm"], eps, distance, attack, tried, passes)


def _of_kind(inputs, kind):
    return [measure.name for measure in inputs.subject.of_kind(kind)]
