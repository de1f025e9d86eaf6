"""Classes of the data among the outputs of a model."""

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.class_order import check_logits, check_order, match_classes

WNIDS = ["n01440764", "n01443537", "n01484850"]


def matched(labels, classes, *, outputs=None, option=None):
    return match_classes(labels, classes, outputs or len(labels or classes), option=option, where="net")


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["cat", "dog"], ["dog", "cat"], [1, 0]),
        (["Great White_shark", "tench, Tinca tinca", "x"], ["tench", "great-white shark"], [1, 0]),
        (["tench", "goldfish", "great white shark"], WNIDS, [0, 1, 2]),
        (["a", "b", "c"], ["0", "2"], [0, 2]),
        (None, ["x", "y"], [0, 1]),
    ],
)
def test_classes_are_found_by_their_names(labels, classes, expected):
    assert matched(labels, classes)[0] == expected


@pytest.mark.parametrize("classes", [WNIDS[::-1], ["great white shark", "goldfish", "tench"]])
def test_wnids_and_names_have_the_order_of_imagenet_where_a_model_has_all_its_outputs(classes):
    indices, said = matched(None, classes, outputs=1000)
    assert indices == [2, 1, 0] and "ImageNet" in said


@pytest.mark.parametrize(("labels", "option"), [(["a", "b", "c"], None), (None, "a,b,c")])
def test_classes_that_are_numbers_are_said_to_be_taken_by_position(labels, option):
    assert matched(labels, ["0", "2"], outputs=3, option=option) == (
        [0, 2],
        "by position: the classes of the data are numbers",
    )


def test_the_user_says_the_order(tmp_path):
    assert matched(None, ["a", "b"], outputs=3, option="b,c,a")[0] == [2, 0]
    (tmp_path / "labels.txt").write_text("b\n\na\n")
    assert matched(["x", "y"], ["a", "b"], option=str(tmp_path / "labels.txt"))[0] == [1, 0]
    indices, said = matched(["b", "a"], ["a", "b"], option="position")
    assert indices == [0, 1] and "as asked" in said


@pytest.mark.parametrize(
    ("labels", "classes", "how", "message"),
    [
        (["cat", "dog"], ["cat", "unicorn"], {}, r"1 of 2 classes .*unicorn; the model has cat, dog.*LABELS="),
        (None, ["a", "b"], {"outputs": 3}, r"has 3 outputs, the data 2 classes \(a, b\)"),
        (["cat", "dog"], ["cat", "dog"], {"outputs": 3}, r"2 names for 3 outputs"),
        (None, ["a", "b"], {"option": "a,b,c"}, r"3 names for 2 outputs"),
        (["cat", "dog"], ["cat", "Cat"], {}, r"several classes of the data are its output 'cat'"),
        (["a", "b", "c"], ["0", "1", "01"], {}, r"several classes of the data are its output 'b'"),
    ],
)
def test_what_does_not_match_is_listed(labels, classes, how, message):
    with pytest.raises(InputError, match=message):
        matched(labels, classes, **how)


# ---- what the model answers ----

NAMES = [f"class-{k}" for k in range(10)]


def answers(accuracy, *, n=400, seed=0, order=range(10)):
    """Logits of a model that is right on a share of the samples, its outputs in another order, and labels."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 10
    found = np.where(generator.random(n) < accuracy, labels, generator.integers(0, 10, n))
    return np.eye(10)[np.asarray(order)[found]] * 5 - 1, labels


def test_a_model_that_knows_its_classes_passes():
    assert check_order(*answers(0.5), NAMES, where="net") > 0.4


def test_the_accuracy_in_another_order_is_that_of_the_order_that_is_named():
    # Half of these samples choose another order than all of them: a, c, b.
    outputs = np.array([int(digit) for digit in "110220121121001120022120010121"])
    labels = np.arange(30) % 3
    with pytest.raises(InputError, match=r"20\.0% right, 60\.0% after a -> c, b -> a, c -> b"):
        check_order(np.eye(3)[outputs], labels, ["a", "b", "c"], where="net")


@pytest.mark.parametrize("order", [[1, 0, *range(2, 10)], np.roll(np.arange(10), 3)])
def test_classes_that_are_mixed_up_are_found_and_named(order):
    with pytest.raises(InputError, match=r"net: answers fit .* another order .*class-"):
        check_order(*answers(0.8, order=order), NAMES, where="net")


def test_guessing_is_refused_with_likely_causes():
    with pytest.raises(InputError, match=r"no more than by guessing among 10 classes.*--preprocessing"):
        check_order(*answers(0.0, seed=1), NAMES, where="net")


def test_the_most_frequent_class_is_no_answer():
    labels = np.where(np.arange(400) % 10 == 0, np.arange(400) // 10 % 10, 0)
    always = np.eye(10)[np.zeros(400, dtype=int)]
    assert (labels == 0).mean() > 0.9
    with pytest.raises(InputError, match=r"no more than by guessing"):
        check_order(always, labels, NAMES, where="net")


def test_a_right_order_is_rarely_refused():
    """A weak model that confuses classes in one direction only looks like another order to an assignment."""
    refused = 0
    for seed in range(300):
        try:
            check_order(*answers(0.25, seed=seed, n=200), NAMES, where="net")
        except InputError:
            refused += 1
    assert refused <= 300 * 0.01 + 3 * np.sqrt(300 * 0.01)


def test_probabilities_and_numbers_that_are_none_are_refused():
    logits, labels = answers(0.5)
    check_logits(logits, labels, where="net")
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    with pytest.raises(InputError, match=r"net: .*probabilities.*before the softmax"):
        check_logits(shares, labels, where="net")
    with pytest.raises(InputError, match=r"net: row 0"):
        check_logits(np.full_like(logits, np.nan), labels, where="net")
