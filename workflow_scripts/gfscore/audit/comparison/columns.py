"""Columns of the tables that compare the models of an audit, all at T = 1."""

import pyarrow as pa

from gfscore.tables.keys import MEASURED

_PAIR = (
    MEASURED[0],
    MEASURED[3],
    ("first_threat", pa.string(), "threat model of the first classifier"),
    ("first_model", pa.string(), "classifier with the larger aggregate"),
    ("second_threat", pa.string(), "threat model of the second classifier"),
    ("second_model", pa.string(), "classifier with the smaller aggregate"),
)

_CONFIDENCE = ("confidence", pa.float64(), "simultaneous confidence of the family's bounds")

_TESTED = (
    ("difference", pa.float64(), "mean of first - second over the same samples"),
    ("low", pa.float64(), "lower bound by betting, simultaneous over the family"),
    ("high", pa.float64(), "upper bound, likewise"),
    _CONFIDENCE,
    ("p", pa.float64(), "two-sided p-value by betting, valid for every n, of this row alone"),
    ("p_holm", pa.float64(), "adjusted by Holm over both directions of the family"),
    ("p_bh", pa.float64(), "adjusted by Benjamini-Hochberg, likewise"),
    ("p_by", pa.float64(), "adjusted by Benjamini-Yekutieli, likewise"),
    (
        "p_sign_flip",
        pa.float64(),
        "studentised sign-flip test of this row alone; null if too few samples differ or values are test decisions",
    ),
    ("p_sign_flip_adjusted", pa.float64(), "its p-value adjusted for the family"),
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
        ("wins_second", pa.int64(), "classes in which the second has the larger value"),
        ("sure_wins_first", pa.int64(), "classes of wins_first that are significant by Holm's p-value"),
        ("sure_wins_second", pa.int64(), "classes of wins_second, likewise"),
    ),
    "rank_intervals": (
        *MEASURED,
        ("value", pa.float64(), "aggregate"),
        ("rank", pa.float64(), "rank by aggregate, 1 for the largest; ties get the mean rank"),
        ("rank_best", pa.int64(), "lower end of the rank's confidence interval"),
        ("rank_worst", pa.int64(), "upper end"),
        ("confidence", pa.float64(), "simultaneous confidence of all models' ranks"),
    ),
    "lambda_swaps": (
        *_PAIR[:2],
        ("fp_lambda", pa.float64(), "lambda of FP at which the two models are equal"),
        ("before_threat", pa.string(), "threat model of the classifier that is better for smaller lambda"),
        ("before_model", pa.string(), "classifier that is better for smaller lambda"),
        ("after_threat", pa.string(), "threat model of the classifier that is better for larger lambda"),
        ("after_model", pa.string(), "classifier that is better for larger lambda"),
    ),
    "metric_ranks": (
        *MEASURED,
        ("metric", pa.string(), "metric that ranks the models"),
        ("value", pa.float64(), "its value"),
        ("place", pa.float64(), "rank of the model by the metric, 1 for the best; ties get the mean rank"),
    ),
}
"""Columns by table. Each table is a family: all pairs of models, and in `comparisons` also all classes."""
