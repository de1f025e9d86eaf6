"""Names of models and classes, which come from outside."""

import pandas as pd
import pytest

from gfscore.core.names import (
    capitalised,
    class_phrase,
    enumeration,
    model_labels,
    printable,
    shortened,
    shortened_all,
    without_threat,
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cat", "cat"),
        ("two\nlines\tand  blanks ", "two lines and blanks"),
        ("é\x00\x1b[31m", "é��[31m"),
        ("right\u202eleft", "right�left"),
        ("\ud800", "�"),
        ("", "(unnamed)"),
        (" \n", "(unnamed)"),
        ("$x_1$ <b> & 日本語", "$x_1$ <b> & 日本語"),
        ("می\u200cخواهم 👨\u200d👩", "می\u200cخواهم 👨\u200d👩"),
    ],
)
def test_names_become_one_visible_line(name, shown):
    assert printable(name) == shown


def test_long_names_lose_their_middle():
    text = shortened("Rebuffi2021Fixing_70_16_cutmix_ddpm", 20)
    assert len(text) == 20
    assert text.startswith("Rebuffi202")
    assert text.endswith("tmix_ddpm")


def test_names_cut_alike_stay_apart():
    names = ["a" * 30 + "1" + "b" * 30, "a" * 30 + "2" + "b" * 30, "cat"]
    assert len(set(shortened_all(names, 12))) == 3


def test_names_that_differ_in_their_middle_keep_the_piece_that_tells_them_apart():
    names = [f"resnet50-adversarial-{letter}-epsilon-8-of-255-final" for letter in "abc"]
    short = shortened_all([*names, "vgg"], 17)
    assert short == ["resn…l-a-epsilon…", "resn…l-b-epsilon…", "resn…l-c-epsilon…", "vgg"]
    assert shortened_all([names[0], names[0]], 17) == ["resnet50…55-final", "resnet50…55-final (2)"]
    # In a sentence, where the others are not known, they stand whole.
    assert class_phrase(names[0]) == names[0]


def test_threat_appears_only_where_the_name_is_ambiguous():
    frame = pd.DataFrame({"dataset": "d", "threat": ["Linf", "L2"], "model": ["A", "B"]})
    assert model_labels(frame) == ["A", "B"]
    assert model_labels(frame.assign(model="A")) == ["Linf/A", "L2/A"]
    assert without_threat(["Linf/A", "L2/B"]) == ["A", "B"]
    assert without_threat(["Linf/A", "L2/A"]) == ["Linf/A", "L2/A"]


def test_classes_and_lists_in_a_sentence():
    assert class_phrase("8") == "class 8"
    assert class_phrase("1001") == "class 1001"
    assert class_phrase("cat") == "cat"
    assert capitalised("class 8 is weak") == "Class 8 is weak"
    assert capitalised("cat is weak") == "cat is weak"
    assert enumeration(["a"]) == "a"
    assert enumeration(["a", "b", "c"]) == "a, b and c"
