import numpy as np
import pytest

from gfscore import InputError
from gfscore.statistics.logits import require_logits

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 1.0, 3.0]])
LABELS = np.array([0, 2])


def test_canonical_form_keeps_the_values():
    logits, labels = require_logits(LOGITS, LABELS)
    assert logits.dtype == np.float64
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(logits, LOGITS)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int8, np.float32),
        (np.int64, np.float64),
        (">f4", np.float64),
    ],
)
def test_real_dtypes_are_widened_without_loss(given, expected):
    numbers = np.array([[3, -2], [0, 7]]).astype(given)
    logits, _ = require_logits(numbers, [0, 1])
    assert logits.dtype == expected
    np.testing.assert_array_equal(logits, numbers.astype(np.float64))


def test_whole_float_labels_are_labels():
    _, labels = require_logits(LOGITS, [0.0, 2.0])
    assert labels.tolist() == [0, 2]


def test_lists_are_taken():
    logits, labels = require_logits(LOGITS.tolist(), LABELS.tolist())
    assert logits.shape == (2, 3)
    assert labels.tolist() == [0, 2]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_is_an_error_naming_file_row_class_and_value(bad):
    logits = LOGITS.copy()
    logits[1, 2] = bad
    with pytest.raises(InputError, match=rf"^cifar10.npz: row 1, class 2 is {bad}; 1 rows are not finite") as caught:
        require_logits(logits, LABELS, source="cifar10.npz")
    assert "extract the logits again" in str(caught.value)


def test_of_many_rows_that_are_not_finite_the_first_ones_are_named_and_all_counted():
    logits = np.full((10, 3), np.nan)
    with pytest.raises(InputError, match=r"10 rows are not finite \(0, 1, 2, \.\.\.\)"):
        require_logits(logits, np.zeros(10, int))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 3], "row 1 has label 3, outside 0..2"),
        ([-1, 2], "row 0 has label -1, outside 0..2"),
        ([0, 1, 2], "2 rows of logits but 3 labels"),
        ([[0, 1]], r"labels have shape \(1, 2\)"),
        ([0.5, 1.0], "labels have dtype float64, row 0 is 0.5; give whole"),
        ([1.0, np.nan], r"labels have dtype float64, row 1 is nan \(an empty cell\?\)"),
        (["cat", "dog"], "labels have dtype <U3, row 0 is 'cat'; .* in `classes`"),
        (np.array(["1", "dog"], dtype=object), "labels have dtype object, row 1 is 'dog'"),
        (["1", "2"], "labels have dtype <U1, row 0 is '1'"),
        ([True, False], "labels have dtype bool"),
    ],
)
def test_wrong_labels_are_an_error(labels, message):
    with pytest.raises(InputError, match=message):
        require_logits(LOGITS, labels)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros(4), [0] * 4, r"logits have shape \(4,\)"),
        (np.zeros((2, 2, 2)), [0, 1], r"logits have shape \(2, 2, 2\)"),
        (np.zeros((4, 1)), [0] * 4, "at least 2 classes"),
        (np.zeros((0, 3)), [], "no samples"),
        (np.array([["a", "b"]]), [0], "give real numbers"),
        (np.array([[1j, 2]]), [0], "give real numbers"),
        (np.array([[True, False]]), [0], "give real numbers"),
        (np.array([[None, 1.0]]), [0], "give real numbers"),
    ],
)
def test_wrong_logits_are_an_error(logits, labels, message):
    with pytest.raises(InputError, match=message):
        require_logits(logits, labels)


def test_bfloat16_becomes_float32_exactly():
    import ml_dtypes

    stored = (np.array(LOGITS) + 0.1).astype(ml_dtypes.bfloat16)
    logits, _ = require_logits(stored, LABELS)
    assert logits.dtype == np.float32
    assert [float(value) for value in stored.ravel()] == logits.ravel().tolist()


def test_tensors_that_numpy_cannot_show_are_refused_with_the_remedy():
    import torch

    with pytest.raises(InputError, match=r"no array of numbers .*tensor\.detach\(\)"):
        require_logits(torch.zeros(2, 3, requires_grad=True), LABELS)


def test_the_number_of_classes_must_be_the_declared_one():
    with pytest.raises(InputError, match="3 logits per row, but 4 classes are declared"):
        require_logits(LOGITS, LABELS, classes=4)
    assert require_logits(LOGITS, LABELS, classes=3)[0].shape == (2, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_are_refused_unless_the_caller_says_so(dtype):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(10), size=50).astype(dtype)
    labels = rng.integers(0, 10, 50)
    with pytest.raises(InputError, match="these are probabilities, not logits"):
        require_logits(probabilities, labels)
    logits, _ = require_logits(probabilities, labels, allow_probabilities=True)
    np.testing.assert_array_equal(logits, probabilities)


PROBABILITIES = np.random.default_rng(0).dirichlet(np.ones(10), size=50)


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        (100 * PROBABILITIES, "sums to 100, so these are probabilities in percent"),
        (np.round(100 * PROBABILITIES), "probabilities in percent"),
        ((255 * PROBABILITIES).astype(np.uint8), "sums to 255, so these are probabilities as bytes"),
        (1 / (1 + np.exp(-np.random.default_rng(1).normal(size=(50, 10)))), r"every value lies in \[0, 1\]"),
    ],
)
def test_scaled_and_independent_probabilities_are_refused_too(outputs, kind):
    labels = np.arange(50) % 10
    with pytest.raises(InputError, match=kind + ".*allow_probabilities"):
        require_logits(outputs, labels)
    assert require_logits(outputs, labels, allow_probabilities=True)[0].shape == (50, 10)


@pytest.mark.parametrize(
    "logits", [np.zeros((4, 3)), np.full((4, 3), 0.5), [[0.0, 0.2, 1.2], [0.3, 0.1, 0.4]], [[0.1, 0.4]]]
)
def test_logits_without_negative_values_pass(logits):
    require_logits(logits, np.zeros(len(logits), dtype=int))


def test_logarithms_of_probabilities_are_logits_of_the_same_softmax():
    labels = np.arange(50) % 10
    logits, _ = require_logits(PROBABILITIES, labels, allow_probabilities="logarithms")
    np.testing.assert_allclose(np.exp(logits), PROBABILITIES, rtol=1e-12)
    certain, _ = require_logits([[1.0, 0.0], [0.25, 0.75]], [0, 1], allow_probabilities="logarithms")
    np.testing.assert_allclose(certain, [[0, np.log(1.1754943508222875e-38)], np.log([0.25, 0.75])])


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], "row 1 sums to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], "row 1 holds -0.5"),
        ([[50.0, 50.0]], "row 0 sums to 100"),
    ],
)
def test_logarithms_are_taken_of_distributions_alone(values, fault):
    with pytest.raises(InputError, match=f"file: {fault}.*before the softmax or the sigmoid"):
        require_logits(values, [0] * len(values), source="file", allow_probabilities="logarithms")


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_column_is_the_logit_or_the_probability_of_the_second_of_two_classes(shape):
    z, labels = np.array([-2.0, 0.5, 3.0]), [0, 1, 1]
    logits, _ = require_logits(z.reshape(shape), labels, classes=2)
    np.testing.assert_array_equal(logits, np.column_stack([np.zeros(3), z]))
    p = 1 / (1 + np.exp(-z))
    logits, _ = require_logits(p.reshape(shape), labels, classes=2, allow_probabilities="logarithms")
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], z, rtol=1e-9)
    with pytest.raises(InputError, match=r"output of a sigmoid.*allow_probabilities: logarithms"):
        require_logits(p.reshape(shape), labels, classes=2)
    for classes in (None, 3):
        with pytest.raises(InputError):
            require_logits(z.reshape(shape), labels, classes=classes)


def test_half_precision_probabilities_of_many_classes_are_recognised():
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.full(1000, 0.1), size=200).astype(np.float16)
    with pytest.raises(InputError, match="these are probabilities"):
        require_logits(probabilities, rng.integers(0, 1000, 200))


@pytest.mark.parametrize(
    "logits",
    [
        [[0.5, 0.5], [0.5, 1.6]],  # one row does not sum to 1
        [[1.5, -0.5], [0.2, 0.8]],  # rows sum to 1, but a negative number is no probability
        [[-0.2, 0.6, 0.6], [0.2, 0.4, 0.4]],  # likewise, with nothing above 1
        [[0.0, 0.0], [0.0, 0.0]],  # constant logits
    ],
)
def test_logits_that_only_look_a_little_like_probabilities_are_accepted(logits):
    np.testing.assert_array_equal(require_logits(logits, [0, 1])[0], logits)


def test_label_errors_come_before_value_errors_and_name_how_many():
    with pytest.raises(InputError, match="2 such rows"):
        require_logits(np.full((3, 2), np.nan), [5, 0, 7])


@pytest.mark.parametrize("masked", ["logits", "labels"])
def test_what_is_masked_is_refused(masked):
    arrays = {"logits": np.ma.array(np.eye(3) * 3), "labels": np.ma.array([0, 1, 2])}
    require_logits(arrays["logits"], arrays["labels"])
    arrays[masked][1] = np.ma.masked
    with pytest.raises(InputError, match="row 1 is masked"):
        require_logits(arrays["logits"], arrays["labels"])
