"""Tables of images and labels as people have them."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images.datasets import load_all
from gfscore.workflow.new_audit.data_files import find_data
from gfscore.workflow.new_audit.request import Request

LABELS = ["cat", "dog", "cat", "dog", "cat", "dog"]


def data_of(path, **options):
    return find_data(str(path), Request(("net.onnx",), str(path), **options))


def write_images(folder, ending=".png", names=None):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        image = Image.new("RGB", (4, 4), (40 * number, 0, 0))
        image.save(folder / f"{names[number] if names else f'{number:03d}'}{ending}", "PNG")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "mine"


def require_same(data, labels=(0, 1, 0, 1, 0, 1)):
    x, y = load_all(data.images)
    np.testing.assert_allclose(x[:, 0, 0, 0], np.arange(6) * 40 / 255, atol=1e-6)
    assert y.tolist() == list(labels)


def write_table(folder, frame, name="labels.csv", **options):
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / name, **{"index": False, **options})
    return folder / name


def rows(image="image", label="label", names="{:03d}.png", labels=LABELS):
    return pd.DataFrame({image: [names.format(number) for number in range(6)], label: labels})


def test_a_column_for_each_class_is_named_with_how_to_make_one_of_labels(folder):
    write_images(folder)
    table = rows().drop(columns="label").assign(MEL=[1.0, 0, 1, 0, 1, 0], NV=[0.0, 1, 0, 1, 0, 1])
    write_table(folder, table)
    with pytest.raises(InputError, match=r"labels\.csv: a column for each class \(MEL, NV\), one-hot"):
        data_of(folder)
    write_table(folder, table.assign(label=table[["MEL", "NV"]].idxmax(axis=1)))
    require_same(data_of(folder))


@pytest.mark.parametrize("ending", [".png", ".JPG"])
def test_names_may_lack_their_ending(folder, ending):
    write_images(folder / "train", ending)
    path = write_table(folder, rows("id", names="{:03d}"))
    data = data_of(folder)
    assert data.entry == {
        "source": "image_csv", "path": str(path), "images": str(folder / "train"), "image": "id",
    }  # fmt: skip
    assert str(folder / "train") in data.words
    assert data.images.sample_id[0] == "000"
    require_same(data)


def test_names_with_points_are_no_endings(folder):
    names = [f"patient.{number}" for number in range(6)]
    write_images(folder, names=names)
    path = write_table(folder, pd.DataFrame({"image": names, "label": LABELS}))
    require_same(data_of(path))


def test_the_column_that_counts_the_rows_is_left_out_and_told(folder):
    write_images(folder)
    data = data_of(write_table(folder, rows("file", "class"), index=True))
    assert (data.entry["image"], data.entry["label"]) == ("file", "class")
    assert "counts the rows" in data.words
    require_same(data)
    # With it there are three columns, and the labels are those of the only one that is left.
    data = data_of(write_table(folder, rows("file", "diagnosis"), index=True))
    assert data.entry["label"] == "diagnosis"
    require_same(data)


def test_a_first_column_without_a_name_that_counts_nothing_is_not_left_out(folder):
    write_images(folder)
    frame = rows("file", "diagnosis").assign(number=[5, 3, 1, 2, 4, 0])
    path = write_table(folder, frame[["number", "file", "diagnosis"]].rename(columns={"number": ""}))
    with pytest.raises(InputError, match=r"labels\.csv: no column labels, label.*it has .*file, diagnosis"):
        data_of(path)


@pytest.mark.parametrize(("separator", "name"), [(";", "labels.csv"), ("\t", "labels.csv"), ("\t", "labels.tsv")])
def test_other_separators_are_found(folder, separator, name):
    write_images(folder)
    data = data_of(write_table(folder, rows("Filename", "Label"), name, sep=separator))
    assert data.entry["separator"] == {";": "semicolon", "\t": "tab"}[separator]
    require_same(data)


@pytest.mark.parametrize(
    ("labels", "expected", "classes"),
    [
        (["0", "1", "0", "1", "0", "1"], (0, 1, 0, 1, 0, 1), ["0", "1"]),
        (["2", "1", "0", "2", "1", "0"], (2, 1, 0, 2, 1, 0), ["0", "1", "2"]),
        (["NA", "cat", "NA", "cat", "NA", "cat"], (0, 1, 0, 1, 0, 1), ["NA", "cat"]),
    ],
)
def test_labels_are_numbers_or_names(folder, labels, expected, classes):
    write_images(folder)
    data = data_of(write_table(folder, rows(labels=labels)))
    assert list(data.classes) == classes
    require_same(data, expected)


def test_images_are_looked_for_below_the_table(folder):
    write_images(folder / "data/images")
    write_table(folder, rows(names="{:03d}.png"))
    data = data_of(folder / "labels.csv")
    assert data.entry["images"] == str(folder / "data/images")
    require_same(data)


def test_images_in_two_folders_are_asked_for(folder):
    for name in ("large", "small"):
        write_images(folder / name)
    path = write_table(folder, rows(names="{:03d}"))
    with pytest.raises(InputError, match=r"2 folders.*--image-folder .*large or --image-folder .*small.*IMAGE_FOLDER="):
        data_of(path)
    data = data_of(path, image_folder=str(folder / "small"))
    assert data.entry["images"] == str(folder / "small")
    require_same(data)


def test_images_elsewhere_are_named(folder, tmp_path):
    write_images(tmp_path / "elsewhere")
    path = write_table(folder, rows())
    with pytest.raises(InputError, match=r"labels\.csv: row 0 names '000\.png'.*--image-folder"):
        data_of(path)
    require_same(data_of(path, image_folder=str(tmp_path / "elsewhere")))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda folder: (folder / "000.jpg").write_bytes(b""), {}, r"row 0 is '000', .*000\.jpg or 000\.png"),
        (lambda folder: (folder / "003.png").unlink(), {}, r"row 3 names '003'"),
        (
            lambda folder: (folder / "003.png").unlink(),
            {"image_folder": "mine"},
            r"row 3 is '003', and mine has no such",
        ),
        (lambda folder: None, {"image_folder": "nowhere"}, r"nowhere: there is no such folder"),
        (lambda folder: None, {"arrays": "x,y"}, r"--arrays x,y: .*images listed in labels\.csv"),
        (lambda folder: write_table(folder, rows(names="../{:03d}")), {}, r"row 0 is '\.\./000'; write paths within"),
        (lambda folder: write_table(folder, rows(names="/{:03d}")), {}, r"row 0 is '/000'; write paths within"),
        (lambda folder: write_table(folder, rows(labels=list("123123"))), {}, r"no sample of class '0'.*subtract 1"),
        (lambda folder: write_table(folder, rows("a", "b")), {}, r"labels\.csv: no column image, img"),
    ],
)
def test_what_does_not_fit_is_refused(folder, change, options, message, monkeypatch):
    write_images(folder)
    write_table(folder, rows(names="{:03d}"))
    monkeypatch.chdir(folder.parent)
    change(folder)
    with pytest.raises(InputError, match=message):
        data_of(folder / "labels.csv", **options)


def test_a_table_beside_class_folders_says_the_same_or_stops_the_run(folder):
    for name in ("cat", "dog"):
        write_images(folder / name)
    same = pd.DataFrame({"path": ["cat/000.png", "dog/001.png"], "label": ["cat", "dog"]})
    write_table(folder, same)
    assert data_of(folder).entry["source"] == "image_folder"
    write_table(folder, same.assign(label=["old", "young"]))
    with pytest.raises(InputError, match=r"labels\.csv: its labels are not the folders.*cat, dog.*in place of"):
        data_of(folder)
    assert data_of(folder / "labels.csv").entry["source"] == "image_csv"
    # A table of something else changes nothing.
    write_table(folder, pd.DataFrame({"camera": ["a"], "year": [2001]}))
    assert data_of(folder).entry["source"] == "image_folder"


def test_a_table_beside_the_folders_of_a_split_lists_the_images(folder):
    for name in ("train", "test"):
        write_images(folder / name)
    write_table(folder, rows(names="train/{:03d}.png"))
    data = data_of(folder)
    assert data.entry["source"] == "image_csv" and "images" not in data.entry
    require_same(data)
