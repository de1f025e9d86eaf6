"""Summaries of projections: models, attributes, ranks of models, effects of dimensions.

Tables `projection_models`, `projection_attributes`, `projection_ranks` and `projection_effects`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.projections.scores import (
    CONSTANT,
    CONTEXT,
    COUPLING,
    MAPPER,
    OWN,
    PROJECTION_KEY,
    PROJECTION_SCORES,
    TASK,
    ModelBoundaries,
    score_frame,
)
from gfscore.audit.projections.tasks import DIFFERENCES, Projections, group_means
from gfscore.core.identity import ALL
from gfscore.statistics.ranking import spearman
from gfscore.statistics.tolerances import TIE_TOLERANCE
from gfscore.tables.parquet_tables import stacked, stacked_tables
from gfscore.tables.table import Column, Table

SCALED = {"tolerance": True, "deviation": False, "coupling": False, **dict.fromkeys(DIFFERENCES, False)}
"""Whether higher is better, for the metrics that the paper scales to 0..100."""

RANKED = {
    "accuracy": True,
    "agreement": True,
    "censored": True,
    "tolerance": True,
    "deviation": False,
    "coupling": False,
    "coupling_entropy": False,
    **dict.fromkeys(DIFFERENCES, False),
}
"""Whether higher is better, for the columns that rank models; a convention for censoring and coupling."""

AVERAGED = ("tolerance", "deviation", "censored")
"""Numbers of a dimension that are averaged over the dimensions of an attribute."""


def _difference_columns(words: str) -> list[Column]:
    columns: list[Column] = []
    for name, meaning in DIFFERENCES.items():
        columns.append(Column(name, pa.float64(), f"{meaning} {words}"))
    return columns


_SCALE = "scaled from 0 (worst) to 100 (best) of these models without constant ones; not comparable across runs"

_GROUPS: tuple[Column, ...] = (
    *_difference_columns("between groups, mean over classes and attributes; 0 is equal; null without"),
    Column("group_measure", pa.string(), "measure whose predictions they are computed from"),
    Column(
        "group_attributes", pa.int64(), "number of attributes they are averaged over: those defined for every model"
    ),
)

PROJECTION_MODELS = Table(
    name="projection_models",
    version=4,
    columns=(
        *PROJECTION_KEY,
        Column("n", pa.int64(), "samples projected"),
        Column("dimensions", pa.int64(), "latent dimensions moved, D, without those of the task itself"),
        Column(
            "resized", pa.string(), "sizes of images: for the mapper, and back for the classifier; null where equal"
        ),
        CONSTANT,
        Column("tolerance", pa.float64(), "mean over dimensions and samples"),
        Column("deviation", pa.float64(), "mean over dimensions and samples; null if moves have one side only"),
        *CONTEXT,
        Column("task_accuracy", pa.float64(), "clean accuracy on all samples of the task, those of dp, eopp and eodd"),
        *COUPLING,
        *_GROUPS,
        *(Column(f"{name}_scaled", pa.float64(), f"{name}, {_SCALE}") for name in SCALED),
    ),
)

PROJECTION_ATTRIBUTES = Table(
    name="projection_attributes",
    version=4,
    columns=(
        *PROJECTION_KEY,
        Column("attribute", pa.string(), "attribute, or latent dimension that is none"),
        OWN,
        Column(
            "dimensions", pa.int64(), "latent dimensions of it that the mapper moves; 0: none, so groups alone differ"
        ),
        Column("n", pa.int64(), "samples projected"),
        CONSTANT,
        Column("tolerance", pa.float64(), "mean over its dimensions and samples; null where it is not moved"),
        Column(
            "deviation",
            pa.float64(),
            "mean over its dimensions and samples; null where moves have one side only, as those of attributes",
        ),
        Column("censored", pa.float64(), "share of its moves that change no prediction"),
        *_difference_columns("between its groups; 0 is equal; null without groups, or if a cell is empty"),
    ),
)

PROJECTION_RANKS = Table(
    name="projection_ranks",
    version=4,
    columns=(
        TASK,
        MAPPER,
        Column("first", pa.string(), "column that ranks the models"),
        Column("second", pa.string(), "other column that ranks the models"),
        Column("n", pa.int64(), "models ranked by both"),
        Column(
            "rho", pa.float64(), "Spearman rank correlation, both oriented so that higher is better; null: undefined"
        ),
    ),
)

PROJECTION_EFFECTS = Table(
    name="projection_effects",
    version=4,
    columns=(
        MAPPER,
        Column("dimension_index", pa.int32(), "latent dimension, 0..D-1"),
        Column("dimension", pa.string(), "its name"),
        Column("sigma", pa.float64(), "its unit: standard deviation of the aggregated latent, or range of a condition"),
        Column(
            "divergence", pa.float64(), "from the prior, nats; near 0: not used by the decoder; null without a prior"
        ),
        Column("trait", pa.string(), "trait of decoded images, or an attribute"),
        Column("how", pa.string(), "measured on the image, or by a classifier of the attribute"),
        Column(
            "shift", pa.float64(), "mean change from -sigma to +sigma, in standard deviations or of the probability"
        ),
        Column("strength", pa.float64(), "mean absolute change, in standard deviations or of the probability"),
        Column(
            "tolerance", pa.float64(), "Tolerance of the dimension, mean over the non-constant models of the dataset"
        ),
        Column("censored", pa.float64(), "share of its moves that change no prediction, mean over the same models"),
        Column("accuracy", pa.float64(), "clean accuracy of the same samples, mean over the same models"),
        Column("models", pa.int64(), "number of non-constant models"),
    ),
)

PROJECTION_TABLES = (
    PROJECTION_SCORES,
    PROJECTION_MODELS,
    PROJECTION_ATTRIBUTES,
    PROJECTION_RANKS,
    PROJECTION_EFFECTS,
)


def projection_tables(
    projections: Sequence[Projections], differences: Mapping[str, pd.DataFrame], *, confidence: float
) -> dict[str, pd.DataFrame]:
    """Tables of PROJECTION_TABLES by name, mapper after mapper and task after task.

    Effects have the Tolerance of the first task alone, the audit's own dataset.

    Parameters
    ----------
    projections : sequence of Projections
        Projections of the models of each task on each mapper.
    differences : mapping
        differences_between_groups by task, of audits that compare groups.
    confidence : float
        Confidence of the bounds.
    """
    frames = defaultdict(list)
    for projection in projections:
        task = projection.task
        manifest = projection.manifest
        is_task_attribute = [attribute == task.label_attribute for attribute in projection.attributes]
        scores_of_models = []
        for model, samples in projection.samples:
            boundaries = ModelBoundaries(samples, manifest["dimensions"], is_task_attribute)
            frame = score_frame(boundaries, task.class_names, confidence=confidence)
            scores_of_models.append(frame.assign(**model.columns(), mapper=manifest["mapper"]))
        scores = stacked(PROJECTION_SCORES, scores_of_models)

        groups = differences.get(task.name)
        means = None
        if groups is not None:
            means = group_means(groups, moved=manifest["categories"], task_attribute=task.label_attribute)
        models = model_frame(scores, means)
        labels = models["threat"] + "/" + models["model"]
        models["resized"] = projection.resized
        models["task_accuracy"] = labels.map(dict(task.accuracies))
        ranks = rank_frame(models).assign(dataset=task.name, mapper=manifest["mapper"])

        frames["projection_scores"].append(scores)
        frames["projection_models"].append(models)
        frames["projection_attributes"].append(attribute_frame(projection, scores, groups))
        frames["projection_ranks"].append(ranks)
        if task.name == projections[0].task.name:
            frames["projection_effects"].append(effect_frame(manifest, scores))
    return stacked_tables(PROJECTION_TABLES, frames)


def model_frame(scores: pd.DataFrame, groups: pd.DataFrame | None) -> pd.DataFrame:
    """Columns of `projection_models` for one mapper and task, without the columns of the task.

    Scaled values are min-max scaled over the models to 0..100, reversed if lower is better; NaN if all models are
    equal. This is our interpretation of the paper, which does not state over what it normalises (sections 3.1 and 6).
    Constant classifiers, whose values are meaningless, are excluded from the scaling.

    Parameters
    ----------
    scores : DataFrame
        Rows of `projection_scores` of all models.
    groups : DataFrame or None
        Result of group_means; None where no groups are compared.
    """
    models = scores[(scores["class_index"] == ALL) & (scores["dimension_index"] == ALL)]
    models = models.reindex(columns=PROJECTION_MODELS.column_names).reset_index(drop=True)
    sensitive = scores.loc[~scores["own"].astype(bool), "dimension_index"]
    models["dimensions"] = sensitive[sensitive != ALL].nunique()
    if groups is not None:
        keys = pd.MultiIndex.from_frame(models[["threat", "model"]])
        for name in groups:
            models[name] = groups[name].reindex(keys).to_numpy()
    constant = models["constant"].astype(bool)
    for name, higher_is_better in SCALED.items():
        values = models[name].astype(np.float64).where(~constant)
        models[f"{name}_scaled"] = scaled(values, higher_is_better=higher_is_better)
    return models


def scaled(values: ArrayLike, *, higher_is_better: bool) -> NDArray[np.float64]:
    """Min-max scaling to 0..100, 100 for the best; NaN remains NaN, and all are NaN if the values are tied."""
    numbers = np.array(values, dtype=np.float64)
    defined = numbers[~np.isnan(numbers)]
    if len(defined) == 0 or np.ptp(defined) <= TIE_TOLERANCE:
        return np.full(len(numbers), np.nan)
    share = (numbers - defined.min()) / np.ptp(defined)
    return 100 * share if higher_is_better else 100 * (1 - share)


def rank_frame(models: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations of all pairs of available RANKED columns over the models that are not constant."""
    ranked = models.loc[~models["constant"].astype(bool), list(RANKED)].astype(np.float64)
    ranked *= [1 if higher_is_better else -1 for higher_is_better in RANKED.values()]
    available = [name for name in RANKED if ranked[name].notna().any()]
    rows = []
    for first, second in combinations(available, 2):
        pair = ranked[[first, second]].dropna()
        rho = float(spearman(pair[first], pair[second]))
        rows.append({"first": first, "second": second, "n": len(pair), "rho": rho})
    return pd.DataFrame(rows, columns=["first", "second", "n", "rho"])


def attribute_frame(projection: Projections, scores: pd.DataFrame, groups: pd.DataFrame | None) -> pd.DataFrame:
    """Table `projection_attributes` of one mapper and task.

    What the mapper moves comes first, then attributes of the groups that it does not move.

    Parameters
    ----------
    projection : Projections
    scores : DataFrame
        Rows of `projection_scores` of all models.
    groups : DataFrame or None
        Result of differences_between_groups; None where no groups are compared.
    """
    moved = np.array(projection.attributes)
    attributes = list(projection.attributes)
    differences = {}
    if groups is not None:
        attributes += list(groups["attribute"])
        for group in groups.to_dict("records"):
            key = (group["threat"], group["model"], group["attribute"])
            differences[key] = {name: group[name] for name in DIFFERENCES}
    dimensions = scores[(scores["class_index"] == ALL) & (scores["dimension_index"] != ALL)]
    rows = []
    for model, _ in projection.samples:
        of_model = dimensions[(dimensions["threat"] == model.threat) & (dimensions["model"] == model.classifier)]
        for attribute in dict.fromkeys(attributes):
            moves = of_model[moved == attribute]
            row = {
                **model.columns(),
                "mapper": projection.manifest["mapper"],
                "attribute": attribute,
                "own": attribute == projection.task.label_attribute,
                "dimensions": len(moves),
                "n": of_model["n"].iloc[0],
                "constant": of_model["constant"].iloc[0],
            }
            for name in AVERAGED:
                row[name] = float(np.mean(moves[name].to_numpy())) if len(moves) else np.nan
            row |= differences.get((model.threat, model.classifier, attribute), {})
            rows.append(row)
    return pd.DataFrame(rows, columns=PROJECTION_ATTRIBUTES.column_names)


def effect_frame(manifest: Mapping[str, Any], scores: pd.DataFrame) -> pd.DataFrame:
    """Table `projection_effects` of one mapper.

    Parameters
    ----------
    manifest : mapping
        Manifest of the mapper: dimensions, sigma, divergence and effects.
    scores : DataFrame
        Rows of `projection_scores` of all models of the audit's own dataset.
    """
    varying = scores[(scores["class_index"] == ALL) & ~scores["constant"].astype(bool)]
    divergence = manifest["divergence"]
    rows = []
    for effect in manifest["effects"]:
        index = manifest["dimensions"].index(effect["dimension"])
        of_dimension = varying[varying["dimension_index"] == index]
        row = {
            **effect,
            "mapper": manifest["mapper"],
            "dimension_index": index,
            "sigma": manifest["sigma"][index],
            "divergence": divergence[index] if divergence else np.nan,
            "models": len(of_dimension),
        }
        for name in ("tolerance", "censored", "accuracy"):
            row[name] = float(np.mean(of_dimension[name].to_numpy())) if len(of_dimension) else np.nan
        rows.append(row)
    return pd.DataFrame(rows, columns=PROJECTION_EFFECTS.column_names)
