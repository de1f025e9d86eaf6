"""Class values of an audit: the tables class_scores, class_pairs and vulnerability."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.statistics.classes import class_means, class_values
from gfscore.statistics.ranking import vulnerability
from gfscore.tables.parquet_tables import stacked, typed_frame
from gfscore.tables.table import CALIBRATION, CLASS, EVALUATED_DATASET, MEASURE, SUMMARISED, Column, Table

CLASS_SCORES = Table(
    name="class_scores",
    version=4,
    columns=(
        *SUMMARISED,
        *CLASS,
        Column("n", pa.int64(), "samples of the class, each image once"),
        Column(
            "n_missing",
            pa.int64(),
            "samples among n that should have a value and have none; they count as the worst value in value and low, "
            "as the best in high",
        ),
        Column("n_rows", pa.int64(), "rows of the dataset with their images: above n where images are repeated"),
        Column("value", pa.float64(), "class value, the smallest that undecided samples allow; null without samples"),
        Column("low", pa.float64(), "lower bound, simultaneous over classes; null at a T chosen on these samples"),
        Column("high", pa.float64(), "upper bound, simultaneous over classes; null where low is"),
        Column("interval", pa.string(), "interval method"),
        Column("confidence", pa.float64(), "joint confidence of the bounds"),
        Column("accuracy", pa.float64(), "clean accuracy on the samples that have a value (n - n_missing)"),
        Column("variance", pa.float64(), "unbiased variance of the samples' values"),
        Column("label_error_rate", pa.float64(), "share of wrong labels the bounds allow for; null: assumed right"),
        Column(
            "value_most",
            pa.float64(),
            "class value if every undecided sample has its largest possible value; the class value of these samples "
            "lies between value and value_most, which are equal where all are decided",
        ),
    ),
)

CLASS_PAIRS = Table(
    name="class_pairs",
    version=1,
    columns=(
        *SUMMARISED,
        Column("stronger_index", pa.int32(), "the class of the pair with the larger value, 0..K-1; the first of ties"),
        Column("stronger_name", pa.string(), "name of that class"),
        Column("weaker_index", pa.int32(), "the other class, 0..K-1"),
        Column("weaker_name", pa.string(), "name of that class"),
        Column("difference", pa.float64(), "stronger minus weaker class value, at least 0"),
        Column(
            "low", pa.float64(), "its lower bound, for all pairs of a model together: above 0, they differ; may be null"
        ),
        Column("high", pa.float64(), "its upper bound, for all pairs of a model together; may be null"),
    ),
)

VULNERABILITY = Table(
    name="vulnerability",
    version=1,
    columns=(
        EVALUATED_DATASET,
        MEASURE,
        CALIBRATION,
        *CLASS,
        Column("mean_rank", pa.float64(), "mean rank over models, 1 = weakest; null where some model lacks samples"),
        Column("times_worst", pa.int64(), "models in which it is a weakest class"),
        Column("times_best", pa.int64(), "models in which it is a strongest class"),
        Column("models", pa.int64(), "models compared"),
    ),
)

CLASS_KEY = ["dataset", "threat", "model", "measure", "calibration", "temperature"]
"""Columns that name the class values of one model in class_scores."""

MOST_PAIRED = 40
"""Largest number of classes whose pairs are listed, 780 for each model, measure and calibration."""


def class_score_table(
    values: Iterable[SampleValues],
    class_names: Sequence[str],
    *,
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
) -> pd.DataFrame:
    """The table class_scores: class values with simultaneous bounds.

    Values at a temperature get no bounds where T was chosen on the same samples, which voids their guarantee.

    Parameters
    ----------
    values : iterable of SampleValues
        One or more models and measures.
    class_names : sequence of K str
    intervals : IntervalSettings
    label_error_rates : array-like (K,) or None
        Share of wrong labels of each class that the bounds allow for; None if labels are assumed right.

    Returns
    -------
    DataFrame
        With the columns of CLASS_SCORES, K rows for each of `values`.
    """
    classes = len(class_names)
    frames = []
    for sample_values in values:
        measured = ~sample_values.missing
        lowest = class_values(sample_values.low, sample_values.labels, classes)
        counts = sample_values.counts(classes)
        frame = pd.DataFrame(
            {
                **sample_values.columns(),
                "class_index": np.arange(classes),
                "class_name": list(class_names),
                "n": lowest.n,
                "n_missing": counts["expected"] - counts["measured"],
                "n_rows": counts["rows"],
                "value": lowest.mean,
                "accuracy": class_means(sample_values.correct[measured], sample_values.labels[measured], classes),
                "variance": lowest.variance,
                "value_most": class_means(sample_values.high, sample_values.labels, classes),
            }
        )
        if sample_values.fresh:
            bounds = sample_values.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
            frame["low"], frame["high"] = bounds.interval(1 - intervals.confidence)
            frame["interval"] = bounds.method
            frame["confidence"] = intervals.confidence
        if label_error_rates is not None:
            frame["label_error_rate"] = np.asarray(label_error_rates, dtype=np.float64)
        frames.append(frame)
    return stacked(CLASS_SCORES, frames)


def vulnerability_table(scores: pd.DataFrame) -> pd.DataFrame:
    """The table vulnerability: one ranking of the classes per measure and calibration, over all models.

    Parameters
    ----------
    scores : DataFrame
        The table class_scores.
    """
    frames = []
    for (dataset, measure, calibration), group in scores.groupby(["dataset", "measure", "calibration"], sort=False):
        by_model = group.pivot(index=["threat", "model"], columns="class_index", values="value")
        classes = group.drop_duplicates("class_index").sort_values("class_index")
        ranked = vulnerability(by_model.to_numpy(), classes["class_name"])
        frames.append(ranked.assign(dataset=dataset, measure=measure, calibration=calibration))
    return stacked(VULNERABILITY, frames)


def class_pair_table(scores: pd.DataFrame) -> pd.DataFrame:
    """The table class_pairs: every pair of classes of a model, the stronger class first.

    Classes without samples are in no pair. With more than MOST_PAIRED classes no pairs are listed. Bounds of a
    difference follow from the bounds of its two classes, and hold jointly if the class bounds do.

    Parameters
    ----------
    scores : DataFrame
        The table class_scores.
    """
    groups = scores.groupby(CLASS_KEY, sort=False, dropna=False)
    numbered = scores.assign(group=groups.ngroup(), classes=groups["class_index"].transform("size"))
    paired = numbered[numbered["value"].notna() & (numbered["classes"] <= MOST_PAIRED)]
    paired = paired.sort_values(["group", "value", "class_index"], ascending=[True, False, True])

    # Positions of the two classes of each pair, group after group.
    stronger_rows = [np.empty(0, dtype=np.int64)]
    weaker_rows = [np.empty(0, dtype=np.int64)]
    start = 0
    for count in paired.groupby("group").size():
        first, second = np.triu_indices(count, 1)
        stronger_rows.append(start + first)
        weaker_rows.append(start + second)
        start += count
    stronger = paired.take(np.concatenate(stronger_rows)).reset_index(drop=True)
    weaker = paired.take(np.concatenate(weaker_rows)).reset_index(drop=True)

    pairs = stronger[CLASS_KEY].assign(
        stronger_index=stronger["class_index"],
        stronger_name=stronger["class_name"],
        weaker_index=weaker["class_index"],
        weaker_name=weaker["class_name"],
        difference=stronger["value"] - weaker["value"],
        low=stronger["low"] - weaker["high"],
        high=stronger["high"] - weaker["low"],
    )
    return typed_frame(CLASS_PAIRS, pairs)
