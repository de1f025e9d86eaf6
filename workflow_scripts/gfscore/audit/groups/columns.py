"""Columns of the tables on groups of samples."""

import pyarrow as pa

from gfscore.tables.table import MODEL

_KEY = (
    *MODEL,
    ("measure", pa.string(), "key of config.yaml's measures, a score at T = 1"),
    ("attribute", pa.string(), "attribute that defines the groups"),
)

_SMALL = ("small", pa.bool_(), "fewer samples than the audit's minimum_cell")

GROUP_COLUMNS = {
    "group_scores": (
        *_KEY,
        ("group_index", pa.int32(), "group, 0..G-1"),
        ("group", pa.string(), "name of the group"),
        ("class_index", pa.int32(), "class, 0..K-1; -1 for all samples of the group"),
        ("class_name", pa.string(), "name of the class; all for all samples of the group"),
        ("n", pa.int64(), "samples of the group, or of the class within it"),
        ("value", pa.float64(), "mean of the measure over them; null without samples"),
        ("low", pa.float64(), "lower bound, simultaneous over the groups of the attribute, or over all its cells"),
        ("high", pa.float64(), "upper bound, likewise"),
        ("interval", pa.string(), "interval method"),
        ("confidence", pa.float64(), "simultaneous confidence of the bounds"),
        _SMALL,
        ("left_out", pa.int64(), "samples of the audit without a value of the attribute"),
        ("balanced_n", pa.int64(), "samples in the balanced part; null without one"),
        ("balanced_value", pa.float64(), "mean of the measure over them"),
    ),
    "group_metrics": (
        *_KEY,
        ("class_index", pa.int32(), "positive class, 0..K-1; -1 for macro and worst"),
        ("class_name", pa.string(), "its name; macro for the mean, worst for the largest over classes with a value"),
        ("metric", pa.string(), "dp, eopp, eodd or aodd"),
        ("n", pa.int64(), "samples with a group"),
        ("value", pa.float64(), "difference between groups, 0 if all are treated equally; null if a cell is empty"),
        ("as_printed", pa.float64(), "as the projection paper prints it: its EOdd and AOdd are no differences"),
        ("wilson_low", pa.float64(), "lower end from Wilson intervals of the cells, approximate"),
        ("wilson_high", pa.float64(), "upper end, likewise"),
        ("confidence", pa.float64(), "nominal confidence of the interval of each row alone"),
        ("smallest_cell", pa.int64(), "smallest number of samples among the denominators of its rates"),
        _SMALL,
        ("balanced_n", pa.int64(), "samples of the balanced part with a group; null without a balanced part"),
        ("balanced_value", pa.float64(), "value on the balanced part"),
        ("balanced_as_printed", pa.float64(), "as_printed on the balanced part"),
    ),
}
"""Columns by table."""
