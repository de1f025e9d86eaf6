"""Rows of the tables on projections, from the samples of all models on one mapper."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gfscore.audit.projections.columns import GROUP_METRICS, PROJECTION_COLUMNS, SCALED
from gfscore.audit.projections.tasks import Projections, group_means
from gfscore.core.identity import label_of
from gfscore.projection.scores import (
    coupling,
    coupling_entropy,
    deviation,
    effective_dimensions,
    is_constant,
    tolerance,
)
from gfscore.statistics.betting import mean_bounds
from gfscore.statistics.ranking import spearman
from gfscore.tables.table import ALL, ALL_NAME

RANKED = {
    "accuracy": True,
    "agreement": True,
    "censored": True,
    "tolerance": True,
    "deviation": False,
    "coupling": False,
    "coupling_entropy": False,
    **dict.fromkeys(GROUP_METRICS, False),
}
"""Whether higher is better, for the columns that rank models; a convention for censoring and coupling."""

LEAST_SAMPLES = 20
"""Number of samples below which Coupling and its entropy are unreliable."""


AVERAGED = ("tolerance", "deviation", "censored")
"""Numbers of a dimension that are averaged over the dimensions of an attribute."""


class Projected:
    """Boundaries of one model on n samples and D dimensions, as arrays (n, D), from its samples table.

    `own` (D,) bool: dimensions of the attribute that is the task itself, which means over dimensions leave out.
    """

    def __init__(self, samples: pd.DataFrame, dimensions: Sequence[str], own: Sequence[bool] | None = None) -> None:
        """`samples` is a samples table of kind projection, with the dimensions of each sample in this order."""
        self.own = np.zeros(len(dimensions), dtype=bool) if own is None else np.array(own)
        shape = (len(samples) // len(dimensions), len(dimensions))
        self.up, self.down, up_censored, down_censored = (
            samples[name].to_numpy().reshape(shape) for name in ("up", "down", "up_censored", "down_censored")
        )
        sides = 2.0 - np.isnan(self.up) - np.isnan(self.down)
        self.censored = (up_censored.astype(np.float64) + down_censored) / sides
        first = samples.iloc[:: len(dimensions)]
        self.label, self.clean, self.decoded = (
            first[name].to_numpy() for name in ("label", "clean_prediction", "prediction")
        )
        self.tolerance, self.deviation = tolerance(self.up, self.down), deviation(self.up, self.down)

    @property
    def constant(self) -> bool:
        """Whether the classifier predicted the same class for all decoded images."""
        return is_constant(self.decoded, self.censored)


def projection_tables(
    projections: Sequence[Projections], differences: Mapping[str, pd.DataFrame], *, confidence: float
) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table of PROJECTION_COLUMNS by name, mapper after mapper and task after task.

    Takes Projections, `differences_between_groups` by task, of audits that compare groups, and the confidence of the
    bounds. Effects have the Tolerance of the first task alone, the audit's own dataset.
    """
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in PROJECTION_COLUMNS}
    for of_task in projections:
        manifest, task = of_task.manifest, of_task.task
        dimensions, mapper, scores = manifest["dimensions"], {"mapper": manifest["mapper"]}, []
        own = [attribute == task.own_attribute for attribute in of_task.attributes]
        for model, samples in of_task.samples:
            key, projected = {**model, **mapper}, Projected(samples, dimensions, own)
            scores += score_rows(key, projected, dimensions, task.class_names, confidence=confidence)
        groups = differences.get(task.name)
        means = {}
        if groups is not None:
            means = group_means(groups, moved=manifest["categories"], own=task.own_attribute)
        summary = [
            row | {"resized": of_task.resized, "task_accuracy": task.accuracies.get(label_of(row))}
            for row in model_rows(scores, means)
        ]
        shared = {"dataset": task.name, **mapper}
        tables["projection_scores"] += scores
        tables["projection_models"] += summary
        tables["projection_ranks"] += [shared | row for row in rank_rows(summary)]
        tables["projection_attributes"] += attribute_rows(of_task, scores, groups)
        if task.name == projections[0].task.name:
            tables["projection_effects"] += effect_rows(manifest, scores)
    return tables


def attribute_rows(
    projections: Projections, scores: Sequence[Mapping[str, Any]], groups: pd.DataFrame | None
) -> list[dict[str, Any]]:
    """Rows of projection_attributes of one mapper and task, from rows of projection_scores and differences of groups.

    What the mapper moves comes first, then attributes of the groups that it does not move.
    """
    attributes, task = projections.attributes, projections.task
    whole = [row for row in scores if row["class_index"] == ALL and row["dimension_index"] != ALL]
    known = {} if groups is None else groups.set_index(["threat", "model", "attribute"])[[*GROUP_METRICS]].T.to_dict()
    compared = [] if groups is None else groups["attribute"]
    rows = []
    for model, _ in projections.samples:
        own = [row for row in whole if (row["threat"], row["model"]) == (model["threat"], model["model"])]
        for name in dict.fromkeys([*attributes, *compared]):
            moves = [row for row, attribute in zip(own, attributes, strict=True) if attribute == name]
            row = {**model, "mapper": projections.manifest["mapper"], "attribute": name, "dimensions": len(moves)}
            row |= {"own": name == task.own_attribute, "constant": own[0]["constant"], "n": own[0]["n"]}
            row |= {of: float(np.mean([move[of] for move in moves])) if moves else None for of in AVERAGED}
            rows.append(row | dict(known.get((model["threat"], model["model"], name), {})))
    return rows


def score_rows(
    key: Mapping[str, str],
    projected: Projected,
    dimensions: Sequence[str],
    class_names: Sequence[str],
    *,
    confidence: float,
) -> list[dict[str, Any]]:
    """Rows of projection_scores of one model: all dimensions and their mean, by class and for all samples.

    Takes the model's key with `mapper`, Projected, D names of dimensions and K of classes. Bounds are by betting, for
    each row alone. A class without samples has n = 0 and nulls.
    """
    groups = [(ALL, ALL_NAME, np.ones(len(projected.label), dtype=bool))]
    groups += [(index, name, projected.label == index) for index, name in enumerate(class_names)]
    places = [{"dimension_index": ALL, "dimension": ALL_NAME, "own": False}]
    places += [
        {"dimension_index": place, "dimension": name, "own": bool(own)}
        for place, (name, own) in enumerate(zip(dimensions, projected.own, strict=True))
    ]
    rows, constant = [], projected.constant
    for index, name, inside in groups:
        n = int(inside.sum())
        shared = {**key, "class_index": index, "class_name": name, "n": n, "small": n < LEAST_SAMPLES}
        found = _rows(projected, inside, confidence) if n else [{}] * len(places)
        rows += [{**shared, "constant": constant, **row, **place} for row, place in zip(found, places, strict=True)]
    return rows


def model_rows(
    scores: Sequence[Mapping[str, Any]], groups: Mapping[tuple[str, str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of projection_models from rows of projection_scores and `groups`, the result of group_means.

    Scaled values are min-max scaled over the models to 0..100, reversed if lower is better; None if all models are
    equal. This is our interpretation of the paper, which does not state over what it normalises (sections 3.1 and 6).
    Constant classifiers, whose values are meaningless, are excluded from the scaling.
    """
    kept = (
        *("dataset", "threat", "model", "mapper", "n", "constant", "censored", "agreement", "accuracy"),
        *("decoded_accuracy", "tolerance", "deviation", "coupling", "coupling_entropy", "effective_dimensions"),
    )
    whole = [row for row in scores if row["class_index"] == ALL and row["dimension_index"] == ALL]
    dimensions = len({row["dimension_index"] for row in scores if not row["own"]}) - 1
    rows = [
        {name: row[name] for name in kept}
        | {"dimensions": dimensions, **dict.fromkeys(GROUP_METRICS), **groups.get((row["threat"], row["model"]), {})}
        for row in whole
    ]
    for name, higher_is_better in SCALED.items():
        values = [None if row["constant"] else row[name] for row in rows]
        for row, value in zip(rows, scaled(values, higher_is_better), strict=True):
            row[f"{name}_scaled"] = value
    return rows


def scaled(values: Sequence[float | None], higher_is_better: bool) -> list[float | None]:
    """Min-max scaling to 0..100, 100 for the best; None for NaN, and for all if the values are equal."""
    numbers = np.array(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    if len(known) == 0 or np.ptp(known) == 0:
        return [None] * len(numbers)
    share = (numbers - known.min()) / np.ptp(known)
    share = share if higher_is_better else 1 - share
    return [None if np.isnan(value) else 100 * float(value) for value in share]


def rank_rows(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of projection_ranks for all pairs of available RANKED columns, over the non-constant models."""
    frame = pd.DataFrame([row for row in models if not row["constant"]]).reindex(columns=list(RANKED)).astype(float)
    frame *= [1 if higher_is_better else -1 for higher_is_better in RANKED.values()]
    rows = []
    for first, second in combinations([name for name in RANKED if frame[name].notna().any()], 2):
        both = frame[[first, second]].dropna()
        rho = float(spearman(both[first], both[second]))
        rows.append({"first": first, "second": second, "n": len(both), "rho": rho})
    return rows


def effect_rows(manifest: Mapping[str, Any], scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of projection_effects from the manifest of the mapper and rows of projection_scores."""
    names, divergence = manifest["dimensions"], manifest["divergence"]
    rows = []
    for effect in manifest["effects"]:
        index = names.index(effect["dimension"])
        tolerated = [
            row
            for row in scores
            if row["dimension_index"] == index and row["class_index"] == ALL and not row["constant"]
        ]
        shared = {"mapper": manifest["mapper"], "dimension_index": index, "sigma": manifest["sigma"][index]}
        shared |= {"divergence": divergence and divergence[index]}
        means = {
            name: float(np.mean([row[name] for row in tolerated])) if tolerated else None
            for name in ("tolerance", "censored", "accuracy")
        }
        rows.append({**shared, **effect, **means, "models": len(tolerated)})
    return rows


def _rows(projected, inside, confidence):
    # Rows of one class: the mean over dimensions, then each dimension.
    sensitive = ~projected.own
    agreeing = projected.clean == projected.decoded
    own = {
        "agreement": float(agreeing[inside].mean()),
        "accuracy": float((projected.clean == projected.label)[inside].mean()),
        "decoded_accuracy": float((projected.decoded == projected.label)[inside].mean()),
        "confidence": confidence,
    }
    columns = {
        name: np.column_stack([values[inside].compress(sensitive, axis=1).mean(axis=1), values[inside]])
        for name in ("tolerance", "deviation", "censored")
        for values in [getattr(projected, name)]
    }
    # Values in 0..1 are rescaled to -1..1 for the bounds.
    low, high = mean_bounds(2 * columns["tolerance"] - 1, bound=1.0, alpha=1 - confidence)
    both = columns["tolerance"][agreeing[inside]]
    found = []
    for place in range(1 + len(sensitive)):
        # NaN if the Deviation of one sample is undefined.
        row: dict[str, Any] = {**own} | {name: float(values[:, place].mean()) for name, values in columns.items()}
        for side in ("up", "down"):
            moves = getattr(projected, side)[inside]
            row[side] = _mean_of_known(moves[:, sensitive] if place == 0 else moves[:, place - 1])
        row |= {"tolerance_low": float(low[place] + 1) / 2, "tolerance_high": float(high[place] + 1) / 2}
        row["tolerance_agreeing"] = float(both[:, place].mean()) if len(both) else None
        found.append(row)
    tolerances = np.array([row["tolerance"] for row in found[1:]])[sensitive]
    found[0] |= {
        "coupling": coupling(tolerances),
        "coupling_entropy": coupling_entropy(tolerances),
        "effective_dimensions": effective_dimensions(tolerances),
    }
    return found


def _mean_of_known(values):
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
