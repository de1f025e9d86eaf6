"""Columns of the tables that compare the models of an audit, all at T = 1."""

import pyarrow as pa

from gfscore.tables.keys import MEASURED

_PAIR = (
    MEASURED[0],
    MEASURED[3],
    ("first_threat", pa.string(), "threat model of the first classifier"),
    ("first_model", pa.string(), "classifier of the larger aggregate"),
    ("second_threat", pa.string(), "threat model of the second classifier"),
    ("second_model", pa.string(), "classifier of the smaller aggregate"),
)

_CONFIDENCE = ("confidence", pa.float64(), "joint confidence of the family's bounds")

_TESTED = (
    ("difference", pa.float64(), "mean of first - second over the same samples"),
    ("low", pa.float64(), "lower bound, by betting, joint over the family"),
    ("high", pa.float64(), "upper bound, likewise"),
    _CONFIDENCE,
    ("p", pa.float64(), "two-sided p-value by betting, exact level, of this row alone"),
    ("p_holm", pa.float64(), "adjusted by Holm over both directions of the family"),
    ("p_bh", pa.float64(), "adjusted by Benjamini-Hochberg, likewise"),
    ("p_by", pa.float64(), "adjusted by Benjamini-Yekutieli, likewise"),
    (
        "p_sign_flip",
        pa.float64(),
        "studentised sign-flip test of this row alone; null where too few differ, or a fallible test decides",
    ),
    ("p_sign_flip_adjusted", pa.float64(), "the same, adjusted for the family"),
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
        ("wins_second", pa.int64(), "classes in which the second has"),
        ("sure_wins_first", pa.int64(), "those of wins_first that Holm's p-value supports"),
        ("sure_wins_second", pa.int64(), "those of wins_second"),
    ),
    "rank_intervals": (
        *MEASURED,
        ("value", pa.float64(), "aggregate"),
        ("rank", pa.float64(), "rank by aggregate, 1 for the largest; ties share the mean"),
        ("rank_best", pa.int64(), "smallest rank the model may truly have"),
        ("rank_worst", pa.int64(), "largest one"),
        ("confidence", pa.float64(), "joint confidence of all models' ranks"),
    ),
    "lambda_swaps": (
        *_PAIR[:2],
        ("fp_lambda", pa.float64(), "lambda of FP at which the two models are equal"),
        ("before_threat", pa.string(), "threat model of the classifier that is ahead below"),
        ("before_model", pa.string(), "classifier that is ahead below"),
        ("after_threat", pa.string(), "threat model of the classifier that is ahead above"),
        ("after_model", pa.string(), "classifier that is ahead above"),
    ),
    "metric_ranks": (
        *MEASURED,
        ("metric", pa.string(), "number that ranks the models"),
        ("value", pa.float64(), "its value"),
        ("place", pa.float64(), "place of the model by it, 1 for the best; ties share the mean"),
    ),
}
"""Columns by table. A family is every pair of models, times every class in `comparisons`; each table is its own."""
