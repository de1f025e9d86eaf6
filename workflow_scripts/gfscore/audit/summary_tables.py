"""The tables model_summary and sensitivity, whose columns are derived from the metrics."""

import pyarrow as pa

from gfscore.audit.metrics import AGAINST_CHANCE, APPENDED, COMPANIONS, FIRST
from gfscore.audit.metrics.declaration import Metric
from gfscore.tables.keys import MEASURED, SUMMARISED
from gfscore.tables.table import Column, Table


def _numbers(metrics: tuple[Metric, ...], *, bounds: bool) -> list[Column]:
    ends = (("", ""), ("_low", ", lower bound"), ("_high", ", upper bound"))
    return [
        (f"{metric.name}{end}", pa.float64(), f"{metric.meaning}{words}")
        for metric in metrics
        for end, words in (ends if bounds and metric.bounded else ends[:1])
    ]


def _chance(metrics: tuple[Metric, ...]) -> list[Column]:
    named = [(metric.name, metric.title) for metric in metrics]
    tested = "of: classes have one distribution of values; null if undecided"
    return [
        *((f"{name}_permuted", pa.float64(), f"mean {title} under shuffled class membership") for name, title in named),
        *((f"{name}_p", pa.float64(), f"permutation p-value, by {title}, {tested}") for name, title in named),
    ]


def _appended(metric: Metric) -> list[Column]:
    return [*_numbers((metric,), bounds=True), *(_chance((metric,)) if metric.against_chance else ())]


MODEL_SUMMARY = Table(
    name="model_summary",
    version=1,
    columns=(
        *SUMMARISED,
        *_numbers(FIRST, bounds=True),
        ("value_alone_low", pa.float64(), "lower bound of value, not simultaneous with others"),
        ("value_alone_high", pa.float64(), "upper bound, likewise"),
        ("wcr_class", pa.string(), "worst class, the first of ties"),
        ("wcr_tied", pa.list_(pa.string()), "all classes that attain the minimum"),
        ("worst_class_set", pa.list_(pa.string()), "classes that may be the worst, given the intervals"),
        ("interval", pa.string(), "interval method"),
        ("confidence", pa.float64(), "simultaneous confidence of the bounds, except those of value_alone"),
        ("accuracy", pa.float64(), "clean accuracy on the same samples"),
        ("published_clean_accuracy", pa.float64(), "published clean accuracy, fraction"),
        ("published_robust_accuracy", pa.float64(), "published robust accuracy, fraction"),
        ("robust_accuracy", pa.float64(), "robust accuracy used for rank correlations"),
        ("robust_accuracy_source", pa.string(), "origin of robust_accuracy"),
        *_numbers(COMPANIONS, bounds=False),
        *_chance(tuple(metric for metric in AGAINST_CHANCE if metric not in APPENDED)),
        ("between_class_sd", pa.float64(), "estimated standard deviation of the true class values, without noise"),
        ("rdi_detectable", pa.float64(), "smallest true RDI that these intervals certainly distinguish from 0"),
        *(column for metric in APPENDED for column in _appended(metric)),
    ),
)
"""Metrics of every model, measure and calibration, with intervals and noise floor."""

SENSITIVITY = Table(
    name="sensitivity",
    version=2,
    columns=(
        *MEASURED,
        ("shift", pa.float64(), "constant added to every logit"),
        ("scale", pa.float64(), "factor of every logit: 1 / T for sigmoid and softmax"),
        *((metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in FIRST),
        ("place", pa.float64(), "rank by aggregate under the same change, 1 for the largest; ties get the mean rank"),
        *((metric.name, pa.float64(), f"{metric.meaning}, of the changed logits") for metric in APPENDED),
    ),
)
"""Metrics of every score after shifts and scales of the logits."""
