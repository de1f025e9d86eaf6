"""What every registered metric must do, whoever adds it."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gfscore.audit.metrics
from gfscore import InputError
from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.audit.model_summary import MODEL_SUMMARY
from gfscore.audit.sensitivity import SENSITIVITY
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples
from gfscore.statistics.margins import SCALE

pytestmark = pytest.mark.seconds(10)

FOLDER = Path(gfscore.audit.metrics.__file__).parent
PACKAGE = Path(gfscore.__file__).parent
LAM = 0.5
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
bounded_metrics = pytest.mark.parametrize("metric", BOUNDED, ids=[metric.name for metric in BOUNDED])
class_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, SCALE))
positive_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(1e-3, SCALE))


def of(metric, values, counts=None):
    counts = np.arange(1, len(values) + 1) if counts is None else counts
    return metric.compute(values, counts=counts, lam=LAM)


def same(value):
    return pytest.approx(value, rel=1e-11, abs=1e-13, nan_ok=True)


def box_of(metric, low, high):
    return metric.interval(low, high, counts=np.arange(1, len(low) + 1), lam=LAM)


# What it declares


@every_metric
def test_it_says_what_it_is(metric):
    assert (FOLDER / f"{metric.name}.py").is_file()
    for text in (metric.title, metric.meaning, metric.explanation, metric.source):
        assert text.strip() == text != ""
    assert metric.direction in (1, -1)
    assert metric.kind in ("level", "disparity", "penalised")
    assert metric.bounded or not (metric.gate_bounds or metric.columns == "first")


def test_no_two_metrics_share_a_title_or_a_column():
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    for table in (MODEL_SUMMARY, SENSITIVITY):
        names = table.column_names
        assert len(set(names)) == len(names)


def test_no_metric_is_named_in_a_list_elsewhere():
    """Three names of metrics beside each other would be a list that a new metric has to be added to."""
    for path in PACKAGE.rglob("*.py"):
        if path.parent == FOLDER or "reproduction" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                items = node.keys if isinstance(node, ast.Dict) else node.elts
                named = {item.value for item in items if isinstance(item, ast.Constant)} & set(METRICS) - {"value"}
                assert len(named) < 4, (path, node.lineno)


# What it computes


@every_metric
def test_its_hand_computed_case(metric):
    case = metric.case
    assert metric.compute(case.values, counts=case.counts, lam=case.lam) == pytest.approx(case.expected, rel=1e-15)


@every_metric
@given(class_scores, st.randoms(use_true_random=False))
def test_the_order_of_classes_does_not_matter(metric, values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    counts = np.arange(1, len(values) + 1)
    assert of(metric, values[order], counts[order]) == same(of(metric, values))


@every_metric
@pytest.mark.parametrize("k", [2, 3, 7, 10, 49, 1000])
@pytest.mark.parametrize("common", [0.1, 1 / 3, 0.7, SCALE])
def test_its_value_at_perfect_equality(metric, k, common):
    found = of(metric, np.full(k, common))
    assert found == pytest.approx(common if metric.at_equality is None else metric.at_equality, rel=1e-12, abs=1e-12)


@every_metric
@given(positive_scores)
def test_its_direction_equality_at_the_mean_and_at_the_best_class_is_no_worse(metric, values):
    counts = np.ones(len(values))
    found = of(metric, values, counts)
    for level in (values.mean(), values.max()):
        better = of(metric, np.full(len(values), level), counts)
        assert metric.direction * better >= metric.direction * found - 1e-11


@every_metric
@given(positive_scores)
def test_its_direction_a_weaker_worst_class_is_no_better(metric, values):
    weaker = np.where(np.arange(len(values)) == values.argmin(), values / 2, values)
    assert metric.direction * of(metric, weaker) <= metric.direction * of(metric, values) + 1e-11


@every_metric
@given(class_scores)
def test_its_range(metric, values):
    low, high = metric.value_range(0.0, SCALE, classes=len(values), lam=LAM)
    found = of(metric, values)
    assert np.isnan(found) or low - 1e-12 <= found <= high + 1e-12
    widest = metric.value_range(0.0, SCALE, classes=np.inf, lam=LAM)
    assert widest[0] <= low + 1e-12 and high <= widest[1] + 1e-12


@every_metric
@given(positive_scores, st.floats(1e-2, 1e2))
def test_it_follows_the_scale_of_the_measure_unless_it_has_no_unit(metric, values, factor):
    assert of(metric, factor * values) == same(of(metric, values) * (1 if metric.unitless else factor))


@every_metric
@given(class_scores, st.integers(1, 5))
def test_classes_without_samples_are_left_out(metric, values, missing):
    counts = np.arange(1, len(values) + 1)
    with_missing = np.insert(values, 1, np.full(missing, np.nan))
    found = of(metric, with_missing, np.insert(counts, 1, np.zeros(missing)))
    np.testing.assert_equal(found, of(metric, values, counts))


@every_metric
@pytest.mark.parametrize("values", [[0.5], [], [0.5, np.nan], [np.nan, np.nan]])
def test_disparity_needs_two_classes_with_samples_and_a_level_one(metric, values):
    if metric.kind == "level" and np.sum(~np.isnan(values)) == 1:
        assert of(metric, values) == 0.5
        return
    fewest = "1 class" if metric.kind == "level" else "2 classes"
    with pytest.raises(InputError, match=f"at least {fewest} with samples, got"):
        of(metric, values)


# How sure it is


@st.composite
def boxes(draw, most=4):
    # Rounded, so that ends coincide now and then.
    pairs = [
        sorted(draw(st.tuples(st.floats(0, SCALE), st.floats(0, SCALE)))) for _ in range(draw(st.integers(2, most)))
    ]
    return np.round([low for low, _ in pairs], 2), np.round([high for _, high in pairs], 2)


def points_of(low, high):
    """Points of a box at all ends of intervals that lie in it, class by class: extremes are among them."""
    ends = np.unique([*low, *high])
    return itertools.product(*(ends[(ends >= a) & (ends <= b)] for a, b in zip(low, high, strict=True)))


@bounded_metrics
@given(boxes())
def test_its_interval_holds_what_class_values_in_the_box_give(metric, box):
    found = [of(metric, np.array(point)) for point in points_of(*box)]
    found = [value for value in found if not np.isnan(value)]
    low, high = box_of(metric, *box)
    if not found:
        assert np.isnan([low, high]).all()
        return
    assert low - 1e-12 <= min(found) and max(found) <= high + 1e-12


@bounded_metrics
@given(class_scores)
def test_its_interval_is_the_value_where_the_class_values_are_known(metric, values):
    assert box_of(metric, values, values) == same((of(metric, values),) * 2)


@bounded_metrics
@pytest.mark.parametrize("n", [[30, 30, 30], [50, 9, 20]])
def test_its_bounds_at_a_gate_are_on_both_sides_of_the_value_and_widen_with_confidence(metric, n):
    rng = np.random.default_rng(0)
    samples = class_samples(rng.random(sum(n)), np.repeat([0, 1, 2], n), 3, seed=0)
    classes = ClassBounds(samples, (0.0, 1.0), "hoeffding")
    value = metric.compute(samples.summary.mean, counts=samples.n, lam=LAM)
    (low, high), (lower, higher) = (metric.bounds_at(classes, alpha, lam=LAM) for alpha in (0.2, 0.01))
    assert lower <= low <= value <= high <= higher


@every_metric
def test_without_bounds_it_is_refused(metric):
    if metric.bounded:
        assert metric.refusal is None
    else:
        assert metric.name in metric.refusal
        with pytest.raises(InputError, match="no bounds"):
            box_of(metric, np.zeros(2), np.ones(2))
