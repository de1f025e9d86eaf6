"""Rows of the tables measure_agreement, training_methods and masking_signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.attacks.registry import expand
from gfscore.audit.agreement.gradient_masking import Attacked, masking_warnings
from gfscore.audit.agreement.ranks import rank_agreement
from gfscore.core.identity import UNCALIBRATED, label_of
from gfscore.statistics.decisions import training_methods_table
from gfscore.statistics.error_rates import error_rate

if TYPE_CHECKING:
    import pandas as pd

    from gfscore.audit.inputs import AuditInputs


def agreement_tables(
    inputs: AuditInputs,
    class_scores: pd.DataFrame,
    class_names: Sequence[str],
    *,
    methods: Sequence[Mapping[str, Any]],
    ranking: Mapping[str, Any],
) -> dict[str, list[dict[str, Any]]]:
    """Rows of measure_agreement, training_methods and masking_signs that an audit has measures for.

    Takes AuditInputs, the table class_scores, K names, `methods` (mappings with threat, model and, None if unknown, the
    training method and the architecture), and confidence, permutations and seed of the rank correlations.
    """
    kinds, rows = {settings["kind"] for settings in inputs.measures.values()}, {}
    if len(inputs.measures) > 1:
        rows["measure_agreement"] = agreement_rows(class_scores, list(inputs.measures), **ranking)
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
        | asdict(rank_agreement(values[first], values[second], **settings))
        for first, second in combinations([name for name in measures if name in values], 2)
    ]


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
    inputs: AuditInputs, methods: Mapping[tuple[str, str], str | None], *, confidence: float
) -> list[dict[str, Any]]:
    """Rows of training_methods: Table 1 of the exact-binomial paper for every adversarial and probabilistic measure.

    Takes AuditInputs and `methods` from names_of_training; models with None are left out.
    """
    clean, *_ = _of_kind(inputs, "clean")
    rows = []
    for adversarial in _of_kind(inputs, "adversarial"):
        for probabilistic in _of_kind(inputs, "probabilistic"):
            names = {"clean": clean, "adversarial": adversarial, "probabilistic": probabilistic}
            tables, models = {}, {}
            for model, own in inputs.by_model():
                key = model["threat"], model["model"]
                if methods[key] is not None:
                    name = "/".join(key)
                    tables[name] = {kind: own[measure] for kind, measure in names.items()}
                    models[name] = {**model, "training": methods[key]}
            settings = inputs.measures[probabilistic]
            rate = error_rate(settings)
            found = training_methods_table(tables, alpha=settings["alpha"], alpha_test=rate, alpha_ci=1 - confidence)
            shared = {"adversarial": adversarial, "probabilistic": probabilistic}
            shared |= {"confidence": confidence, "error_rate": rate}
            rows += [{**row, **models[row["training"]], **shared} for row in found.to_dict("records")]
    return rows


def masking_rows(inputs: AuditInputs, classes: int) -> list[dict[str, Any]]:
    """Rows of masking_signs: signs of gradient masking in the attacks of an audit with K classes."""
    rows = []
    for model, own in inputs.by_model():
        measures = {
            name: _attacked(own[name], settings, classes)
            for name, settings in inputs.measures.items()
            if settings["kind"] in ("adversarial", "minimal")
        }
        rows += [{**model, **asdict(sign)} for sign in masking_warnings(measures)]
    return rows


def _attacked(samples, settings, classes):
    if settings["kind"] == "adversarial":
        distance, eps = samples["distance"].to_numpy(np.float64), settings["eps"]
        tried = tuple(entry["name"] for entry in expand(settings["attacks"], classes))
    else:
        distance = np.where(samples["censored"], np.nan, samples["value"])
        eps, tried = settings["largest_distance"], tuple(entry["name"] for entry in settings["attacks"])
    sample_id, labels = (samples[name].to_numpy() for name in ("sample_id", "label"))
    attack, passes = (samples[name].to_numpy() for name in ("attack", "steps"))
    return Attacked(sample_id, labels, settings["norm"], eps, distance, attack, tried, passes)


def _of_kind(inputs, kind):
    return [name for name, settings in inputs.measures.items() if settings["kind"] == kind]
