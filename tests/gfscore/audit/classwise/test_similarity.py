import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from gfscore.audit.classwise.confusion import confusion_matrix
from gfscore.audit.classwise.similarity import similarities

K = 6


def noisy(labels, rng, *, share=0.3, shift=None):
    wrong = rng.random(len(labels)) < share
    other = (labels + (rng.integers(1, K, len(labels)) if shift is None else shift)) % K
    return np.where(wrong, other, labels)


def compared(first, second, labels, *, shuffles=99):
    return similarities(labels, first, second, K, shuffles=shuffles, rng=np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, K, 600)


def test_a_classifier_is_like_itself(labels):
    predicted = noisy(labels, np.random.default_rng(2))
    found = compared(predicted, predicted, labels)
    for name in ("confusion_cosine", "error_cosine", "recall_cosine", "agreement", "kappa", "error_overlap"):
        assert found[name].value == pytest.approx(1), name
    assert found["error_overlap"].p_value == 0.01


def test_independent_errors_have_a_high_cosine_that_the_baseline_explains(labels):
    first, second = noisy(labels, np.random.default_rng(3)), noisy(labels, np.random.default_rng(4))
    found = compared(first, second, labels)
    assert found["confusion_cosine"].value > 0.95, "cosines of non-negative vectors are inflated"
    assert found["confusion_cosine"].baseline > 0.95
    for name in ("agreement", "kappa", "error_overlap"):
        assert found[name].value == pytest.approx(found[name].baseline, abs=0.05)
        assert found[name].p_value > 0.01


def test_the_same_confusions_are_seen_in_the_errors_alone(labels):
    # Both take half of the classes 0, 1, 2 for the next class; the errors of other classes are spread.
    rng = np.random.default_rng(5)
    pair = []
    for _ in range(2):
        spread, towards = noisy(labels, rng, share=0.1), noisy(labels, rng, share=0.5, shift=1)
        pair.append(np.where(labels < 3, towards, spread))
    found = compared(*pair, labels)
    assert found["error_cosine"].value > 0.9
    assert found["error_cosine"].baseline < 0.6
    assert found["error_cosine"].p_value <= 0.05


def test_kappa_is_that_of_scikit_learn(labels):
    first, second = noisy(labels, np.random.default_rng(6)), noisy(labels, np.random.default_rng(7))
    assert compared(first, second, labels, shuffles=1)["kappa"].value == pytest.approx(cohen_kappa_score(first, second))


def test_without_errors_nothing_overlaps(labels):
    found = compared(labels, labels, labels)
    assert np.isnan(found["error_overlap"].value)
    assert np.isnan(found["error_overlap"].p_value)
    assert found["agreement"].value == 1


def test_chance_alone_is_rarely_significant(labels):
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        pair = noisy(labels[:120], rng), noisy(labels[:120], rng)
        found, _ = similarities(labels[:120], *pair, K, shuffles=39, rng=rng)
        p_values.append(found["error_overlap"].p_value)
    # 5% of 60 are 3; more than 8 has probability .4% at that level.
    assert np.sum(np.array(p_values) <= 0.05) <= 8


def test_classes_that_no_sample_is_of_do_not_make_models_alike():
    labels = np.repeat(np.arange(4), 30)
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        shares = rng.uniform(0.1, 0.6, size=(2, 4))
        pair = [np.where(rng.random(120) < own[labels], rng.integers(0, K, 120), labels) for own in shares]
        found, _ = similarities(labels, *pair, K, shuffles=39, rng=rng)
        p_values.append([found[name].p_value for name in ("confusion_cosine", "error_cosine", "recall_cosine")])
    assert (np.sum(np.array(p_values) <= 0.05, axis=0) <= 8).all()


@pytest.mark.parametrize(("classes", "smallest"), [(2, 1 / 2), (3, 1 / 6)])
def test_few_classes_cannot_make_cosines_significant(classes, smallest):
    """One renaming in K! changes nothing, so identical classifiers reach about 1/K!, and no less."""
    rng = np.random.default_rng(9)
    labels = np.repeat(np.arange(classes), 200)
    # Every class is recognised by another share, and every wrong call has another frequency.
    wrong = rng.random(len(labels)) < 0.1 + 0.2 * labels
    guesses = np.where(wrong, (labels + 1 + (rng.random(len(labels)) < 0.2)) % classes, labels)
    found, _ = similarities(labels, guesses, guesses, classes, shuffles=999, rng=rng)
    for name in ("confusion_cosine", "recall_cosine"):
        assert found[name].value == pytest.approx(1)
        # Four standard deviations of a share of 999.
        assert found[name].p_value == pytest.approx(smallest, abs=0.065)
    assert found["error_overlap"].p_value == 0.001


def test_cosines_of_recalls_count_abstentions():
    labels = np.repeat([0, 1], 10)
    first = np.where(np.arange(20) < 9, -1, labels)
    other = np.where(np.arange(20) > 10, -1, labels)
    found, _ = similarities(labels, first, other, 2, shuffles=9, rng=np.random.default_rng(0))
    # Recalls .1 and 1 of the first, 1 and .1 of the other.
    assert found["recall_cosine"].value == pytest.approx(0.2 / 1.01)
    assert found["confusion_cosine"].value == pytest.approx(0.2 / 1.01)


def test_agreement_by_class_by_hand():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 3, 3])
    first = np.array([0, 0, 1, 2, 1, 1, 0, 0, 3, -1])
    # Class 0: two right alike, one wrong alike; class 1: both wrong on other samples; class 3: abstentions are alike.
    other = np.array([0, 0, 1, 0, 0, 0, 1, 1, 3, -1])
    whole, by_class = similarities(labels, first, other, 4, shuffles=999, rng=np.random.default_rng(0))
    assert [item.value for item in by_class] == pytest.approx([3 / 4, 0, np.nan, 1], nan_ok=True)
    assert whole["agreement"].value == pytest.approx((3 + 0 + 2) / 10)
    # By chance sum_c P(first = c) P(other = c): 2/4 3/4 + 1/4 1/4 for class 0, 1/2 for the others.
    assert [item.baseline for item in by_class] == pytest.approx([7 / 16, 1 / 2, np.nan, 1 / 2], abs=0.04, nan_ok=True)
    # Class 0 reaches 3 of 4 when the one 1 of the other meets that of the first, in a quarter of the orders; class 1
    # reaches 0 in every order, class 3 reaches 1 in half of them.
    assert [item.p_value for item in by_class] == pytest.approx([1 / 4, 1, np.nan, 1 / 2], abs=0.06, nan_ok=True)


def test_a_class_on_which_classifiers_part_is_told_from_one_on_which_they_err_alike():
    labels = np.repeat([0, 1], 200)
    first = np.where(np.tile([True, False], 200), labels, 1 - labels)
    second = np.where(labels == 0, first, np.tile([0, 0, 1, 1], 100))
    _, (alike, apart) = similarities(labels, first, second, 2, shuffles=99, rng=np.random.default_rng(1))
    assert (alike.value, alike.p_value) == (1, 0.01)
    assert alike.baseline == pytest.approx(0.5, abs=0.05)
    assert apart.value == 0.5 and apart.p_value > 0.05


def test_chance_is_the_cosine_with_renamed_classes(labels):
    first, second = noisy(labels, np.random.default_rng(6)), noisy(labels, np.random.default_rng(7), share=0.6)
    found = compared(first, second, labels, shuffles=1)
    order = np.random.default_rng(0).permutation(np.arange(K))
    matrix, other = (confusion_matrix(labels, predicted, K) for predicted in (first, second))
    shares, other_shares = (counts / counts.sum(axis=1, keepdims=True) for counts in (matrix, other))
    renamed = other_shares[np.ix_(order, order)]
    errors = ~np.eye(K, dtype=bool)
    for name, cells in (("confusion_cosine", errors | True), ("error_cosine", errors), ("recall_cosine", ~errors)):
        a, b = shares[cells], renamed[cells]
        assert found[name].baseline == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), name
