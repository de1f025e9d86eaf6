from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics

from gfscore.audit.classwise.confusion import (
    class_errors,
    confusion_matrix,
    row_shares,
)

LABELS = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
PREDICTED = np.array([0, 0, 1, 2, 1, 1, 1, 1, 2, 0])


def errors_of(labels, predicted, k):
    """Errors of each class, an array for each column."""
    errors = class_errors(confusion_matrix(labels, predicted, k), np.bincount(labels, minlength=k))
    return SimpleNamespace(**{name: errors[name].to_numpy() for name in errors})


def test_by_hand():
    matrix = confusion_matrix(LABELS, PREDICTED, 3)
    assert matrix.tolist() == [[2, 1, 1], [0, 2, 0], [1, 2, 1]]
    errors = errors_of(LABELS, PREDICTED, 3)
    assert errors.recall.tolist() == [0.5, 1.0, 0.25]
    # 5 errors: one lands on class 0, three on class 1, one on class 2
    assert errors.cfps.tolist() == [0.2, 0.6, 0.2]
    assert errors.cfps_relative == pytest.approx([0.6, 1.8, 0.6])
    assert errors.false_positives.tolist() == [1, 3, 1]
    assert errors.one_vs_rest_accuracy == pytest.approx([0.7, 0.7, 0.6])
    assert errors.false_positive_rate == pytest.approx([1 / 6, 3 / 8, 1 / 6])


@pytest.mark.parametrize("k", [2, 3, 12])
def test_precision_recall_and_f1_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(k)
    labels, predicted = rng.integers(0, k, 300), rng.integers(0, k, 300)
    errors = errors_of(labels, predicted, k)
    expected = metrics.precision_recall_fscore_support(labels, predicted, labels=range(k))
    assert errors.precision == pytest.approx(expected[0])
    assert errors.recall == pytest.approx(expected[1])
    assert errors.f1 == pytest.approx(expected[2])
    assert errors.cfps.sum() == pytest.approx(1)
    # The mean of the printed class-wise accuracy says nothing about classes
    share_wrong = np.mean(labels != predicted)
    assert errors.one_vs_rest_accuracy.mean() == pytest.approx(1 - 2 * share_wrong / k)


def test_a_class_that_is_never_recognised_still_gets_nine_tenths_of_the_printed_accuracy():
    labels = np.repeat(np.arange(10), 10)
    predicted = np.where(labels == 3, 4, labels)
    errors = errors_of(labels, predicted, 10)
    assert errors.recall[3] == 0
    assert errors.one_vs_rest_accuracy[3] == 0.9


def test_without_errors_the_false_positive_score_is_undefined():
    errors = errors_of(LABELS, LABELS, 3)
    assert np.isnan(errors.cfps).all()
    assert errors.false_positive_rate.tolist() == [0, 0, 0]


def test_classes_without_samples_and_abstentions():
    labels, predicted = np.array([0, 0, 2, 2]), np.array([0, -1, 0, 2])
    matrix = confusion_matrix(labels, predicted, 3)
    assert matrix.sum() == 3
    errors = class_errors(matrix, [2, 0, 2])
    assert errors.recall[[0, 2]].tolist() == [0.5, 0.5]
    assert np.isnan(errors.recall[1])
    assert np.isnan(errors.precision[1])
    # two errors, of which one fell on a class
    assert errors.cfps.tolist() == [0.5, 0, 0]
    shares = row_shares(matrix, [2, 0, 2])
    assert np.isnan(shares[1]).all()
    # The diagonal is the recall: an abstention is in no column, and lowers the sum of its row.
    assert shares[[0, 2]].tolist() == [[0.5, 0, 0], [0.5, 0, 0.5]]
