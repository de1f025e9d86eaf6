"""The source image_csv: a flat folder of images with a CSV file of labels."""

import numpy as np
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images.datasets import open_images


@pytest.fixture
def folder(tmp_path):
    """Six images of one colour each, 0 to 5, in one folder."""
    (tmp_path / "flat").mkdir()
    for number in range(6):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / f"flat/{number}.png")
    return tmp_path


def opened(folder, rows, *, header="image,label", classes=None, **settings):
    path = folder / "flat/labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    entry = {
        "source": "image_csv",
        "images": None,
        "image": "image",
        "label": "label",
        "preprocessing": {"method": "none"},
    }
    return open_images(entry | settings, path, classes=classes)


def test_images_come_in_the_order_of_the_file_with_their_labels(folder):
    images = opened(folder, ["3.png,1", "0.png,0", "5.png,1"])
    assert images.sample_id.tolist() == ["3.png", "0.png", "5.png"] and images.labels.tolist() == [1, 0, 1]
    pixels = np.concatenate(list(images.batches(2)))
    np.testing.assert_allclose(pixels[:, 0, 0, 0], np.array([3, 0, 5]) / 255)


def test_names_of_classes_are_sorted_or_in_the_order_that_is_declared(folder):
    rows = ["0.png,NA", "1.png,cat", "2.png,NA"]
    images = opened(folder, rows)
    assert images.class_names == ("NA", "cat") and images.labels.tolist() == [0, 1, 0]
    images = opened(folder, rows, classes=["cat", "NA"])
    assert images.labels.tolist() == [1, 0, 1]


def test_the_images_may_lie_elsewhere_under_other_columns(folder):
    rows = ["flat/0.png,0", "flat/1.png,1"]
    images = opened(folder, rows, header="file,class", images=str(folder), image="file", label="class")
    assert images.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["../0.png,0", "1.png,1"], r"labels\.csv: row 0 is .*within the folder"),
        (["/etc/passwd,0", "1.png,1"], r"labels\.csv: row 0 is .*within the folder"),
        (["0.png,0", "9.png,1"], r"9\.png: cannot be read"),
        (["0.png,0", "1.png,"], r"labels\.csv: row 1 has no label"),
        (["0.png,cat", "1.png,dgo"], r"labels\.csv: label: row 1 is 'dgo'.*nearest is 'dog'"),
        ([], r"labels\.csv: holds a header and no rows"),
        (["0.png,0,1"], r"labels\.csv"),
    ],
)
def test_bad_rows_are_named(folder, rows, message):
    classes = ["cat", "dog"] if "cat" in "".join(rows) else None
    with pytest.raises(InputError, match=message):
        images = opened(folder, rows, classes=classes)
        list(images.batches(8))


def test_a_missing_column_is_named(folder):
    with pytest.raises(InputError, match=r"labels\.csv: column 'label' is unknown"):
        opened(folder, ["0.png,0"], header="image,class")
