"""CelebA's own files, made small: images with the task as label, and attributes."""

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from gfscore.core.errors import InputError
from gfscore.images.attribute_values import Dataset, attributes_of
from gfscore.images.datasets import load_all, open_images
from gfscore.images.manifests import open_and_describe
from gfscore.images.sources.celeba import CelebA

NAMES = [f"{number:06d}.jpg" for number in range(1, 7)]
ROWS = ["-1  1 -1", " 1  1  1", "-1 -1  1", " 1 -1 -1", "-1  1  1", " 1  1 -1"]
PARTS = [0, 2, 2, 1, 2, 2]


@pytest.fixture
def folder(tmp_path):
    listed = "\n".join(f"{name} {row}" for name, row in zip(NAMES, ROWS, strict=True))
    (tmp_path / "list_attr_celeba.txt").write_text(f"{len(NAMES)}\nMale Smiling Young \n{listed}\n")
    parts = "\n".join(f"{name} {part}" for name, part in zip(NAMES, PARTS, strict=True))
    (tmp_path / "list_eval_partition.txt").write_text(f"{parts}\n")
    (tmp_path / "img").mkdir()
    for shade, name in enumerate(NAMES):
        Image.fromarray(np.full((10, 8, 3), 40 * shade, dtype=np.uint8)).save(tmp_path / "img" / name, quality=95)
    return tmp_path


SETTINGS = {
    "source": "celeba", "images": "img", "split": "test", "task": "Smiling",
    "preprocessing": {"method": "squash", "size": 8, "interpolation": "bilinear"}, "subset": None, "digest": None,
}  # fmt: skip


def test_the_task_is_the_label_and_the_part_is_the_split(folder):
    images = open_images(SETTINGS, folder, classes=None)
    assert images.sample_id.tolist() == [NAMES[1], NAMES[2], NAMES[4], NAMES[5]]
    assert images.labels.tolist() == [1, 0, 1, 1]
    assert images.class_names == ("no Smiling", "Smiling")
    pixels, _ = load_all(images)
    assert pixels[:, 0, 0, 0] == pytest.approx(np.array([1, 2, 4, 5]) * 40 / 255, abs=0.01)
    assert open_and_describe(SETTINGS, folder, dataset="faces", classes=None)[1]["samples_per_class"] == [1, 3]


@pytest.mark.parametrize(("task", "classes"), [("Male", ["boy", "female"]), ("Attractive", ["pretty", "unattractive"])])
def test_a_name_that_contains_the_task_within_a_word_does_not_name_it(task, classes):
    with pytest.raises(ValidationError, match=f"is called '{classes[1]}'"):
        CelebA(task=task, classes=classes)
    CelebA(task=task, classes=[classes[1], f"{task.lower()}s"])


def test_attributes_of_the_same_images(folder):
    dataset = Dataset({"dataset": "faces", "digest": "d"}, open_images(SETTINGS, folder, classes=None))
    settings = {"source": "celeba", "path": str(folder / "list_attr_celeba.txt"), "columns": None, "missing": "drop"}
    attributes = attributes_of(settings, dataset)
    assert attributes.frame["Male"].tolist() == ["yes", "no", "no", "yes"]
    assert attributes.frame["Young"].tolist() == ["yes", "yes", "yes", "no"]
    assert attributes.categories == {name: ["no", "yes"] for name in ("Male", "Smiling", "Young")}
    assert attributes.missing == dict.fromkeys(("Male", "Smiling", "Young"), 0)
    young = attributes_of(settings | {"columns": ["Young"]}, dataset)
    assert list(young.frame) == ["sample_id", "Young"]


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("list_attr_celeba.txt", ("6\n", "7\n"), "line 1 must be the number of images below"),
        ("list_attr_celeba.txt", ("-1  1 -1", "-1  1"), "line 3 is not an image followed by 3 values"),
        ("list_attr_celeba.txt", ("-1  1 -1", "-1  0 -1"), "line 3 is not an image followed by 3 values"),
        ("list_attr_celeba.txt", ("Smiling", "Smile"), "attribute 'Smiling' is unknown; did you mean 'Smile'"),
        ("list_attr_celeba.txt", ("000002.jpg", "000001.jpg"), "000001.jpg is repeated"),
        ("list_attr_celeba.txt", ("Male Smiling", "Male Male"), "Male is repeated"),
        ("list_attr_celeba.txt", ("000001.jpg", "../01.jpg"), r"line 3: '../01.jpg' is no file name"),
        ("list_eval_partition.txt", ("000002.jpg", "000001.jpg"), "line 2 names 000001.jpg a second time"),
        ("list_eval_partition.txt", ("000001.jpg 0\n", ""), "names no part for 1 image of .*, the first is 000001.jpg"),
        ("list_eval_partition.txt", ("1.jpg 0", "1.jpg 3"), "line 1 is not an image followed by 0, 1 or 2"),
        ("list_eval_partition.txt", ("jpg 2", "jpg 1"), "no image of the split test"),
    ],
)
def test_damaged_lists_are_refused_by_line(folder, file, change, expected):
    path = folder / file
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(InputError, match=expected):
        open_images(SETTINGS, folder, classes=None)


def test_lists_may_start_with_the_mark_of_windows(folder):
    expected = open_images(SETTINGS, folder, classes=None).sample_id.tolist()
    for file in ("list_attr_celeba.txt", "list_eval_partition.txt"):
        (folder / file).write_text((folder / file).read_text(), encoding="utf-8-sig")
    assert open_images(SETTINGS, folder, classes=None).sample_id.tolist() == expected


def test_missing_files_are_named(folder):
    (folder / "img" / NAMES[1]).unlink()
    with pytest.raises(InputError, match=NAMES[1]):
        open_images(SETTINGS, folder, classes=None)
    (folder / "list_eval_partition.txt").unlink()
    with pytest.raises(InputError, match=r"list_eval_partition.txt: cannot be read"):
        open_images(SETTINGS, folder, classes=None)
