"""Manifests: images read again after a run, and images that are equal however they are encoded."""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from fetch_dataset import fetch_dataset
from gfscore.audit.samples import SampleList
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.images import encoded
from gfscore.images.datasets import open_images
from gfscore.images.manifests import open_and_compare, watched_paths
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET

STORED = {"preprocessing": {"method": "none"}}
MANIFEST = "d.json"


def png(seed):
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)).save(content, "png")
    return content.getvalue()


def folder():
    for seed in range(6):
        path = Path(f"images/{'ab'[seed % 2]}/{seed}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed))
    return {"source": "image_folder", "folders": None, "list": None, **STORED}, "images"


def listed():
    folder()
    names = [f"{'ab'[seed % 2]}/{seed}.png" for seed in range(6)]
    pd.DataFrame({"image": names, "label": [0, 1] * 3}).to_csv("labels.csv", index=False)
    settings = {"source": "image_csv", "images": "images", "image": "image", "label": "label"}
    return settings | STORED, "labels.csv"


def without_endings():
    settings, path = listed()
    table = pd.read_csv(path)
    table.assign(image=table["image"].str.removesuffix(".png")).to_csv(path, index=False)
    return settings, path


def celeba():
    attributes = ["6", "Smiling"]
    partition = []
    for seed in range(6):
        image = Path(f"celeba/img_align_celeba/{seed}.png")
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(png(seed))
        attributes.append(f"{image.name} {1 if seed % 2 else -1}")
        # The last two are images of another split.
        partition.append(f"{image.name} {2 if seed < 4 else 0}")
    Path("celeba/list_attr_celeba.txt").write_text("\n".join(attributes))
    Path("celeba/list_eval_partition.txt").write_text("\n".join(partition))
    settings = {"source": "celeba", "images": "img_align_celeba", "split": "test", "task": "Smiling"}
    return settings | STORED, "celeba"


def fog():
    folder()
    for severity in range(1, 3):
        shutil.copytree("images", f"corrupted/fog/{severity}")
    return {"source": "corrupted", "corruption": "fog", "severity": 2, **STORED}, "corrupted"


def shards():
    Path("shards").mkdir()
    for shard in range(2):
        blobs = pa.array([{"bytes": png(3 * shard + row), "path": None} for row in range(3)])
        pq.write_table(pa.table({"image": blobs, "label": [0, 1, 0]}), f"shards/{shard}.parquet")
    return {"source": "parquet", "image": "image", "label": "label", "part": None, **STORED}, "shards"


def arrays():
    x = np.random.default_rng(0).random((6, 3, 4, 4), dtype=np.float32)
    np.savez("images.npz", x=x, y=[0, 1] * 3)
    settings = {"source": "npz", "value_range": 1, "channels": "first"}
    return settings, "images.npz"


def other_shard():
    table = pq.read_table("shards/1.parquet")
    blobs = [{"bytes": png(9), "path": None}, *table["image"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, "image", pa.array(blobs)), "shards/1.parquet")


def other_array():
    with np.load("images.npz") as file:
        x, y = file["x"], file["y"]
    np.savez("images.npz", x=1 - x, y=y)


SOURCES = {
    "a folder": (folder, lambda: Path("images/b/3.png").write_bytes(png(9)), "images/b/3.png"),
    "a folder with one more": (folder, lambda: Path("images/a/9.png").write_bytes(png(9)), "images/a/9.png"),
    "a CSV file": (listed, lambda: Path("images/b/3.png").write_bytes(png(9)), "images/b/3.png"),
    "a CSV file without endings": (
        without_endings,
        lambda: Path("images/b/3.png").write_bytes(png(9)),
        "images/b/3.png",
    ),
    "CelebA": (
        celeba,
        lambda: Path("celeba/img_align_celeba/3.png").write_bytes(png(9)),
        "celeba/img_align_celeba/3.png",
    ),
    "a corruption": (fog, lambda: Path("corrupted/fog/2/b/3.png").write_bytes(png(9)), "corrupted/fog/2/b/3.png"),
    "a corruption with one less": (fog, lambda: Path("corrupted/fog/2/b/3.png").unlink(), "corrupted/fog/2/b/3.png"),
    "Parquet files": (shards, other_shard, "shards (1/000000)"),
    "arrays": (arrays, other_array, "images.npz"),
}


@pytest.mark.parametrize(("make", "change", "name"), SOURCES.values(), ids=SOURCES)
def test_the_first_image_that_is_another_one_is_named(tmp_path, monkeypatch, make, change, name):
    monkeypatch.chdir(tmp_path)
    settings, path = make()
    fetch_dataset(settings, None, MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    images, changed = open_and_compare(MANIFEST)
    assert changed is None
    files = watched_paths(images, read_json(MANIFEST))
    assert files and all(Path(file).exists() for file in files)
    change()
    _, changed = open_and_compare(MANIFEST)
    assert changed is not None and changed.startswith(name)


@pytest.mark.parametrize("images", ["images", None])
def test_images_that_a_csv_file_names_without_endings_are_watched(tmp_path, monkeypatch, images):
    monkeypatch.chdir(tmp_path)
    settings, path = listed()
    table = pd.read_csv(path)
    if images is None:
        table["image"] = "images/" + table["image"]
    table.assign(image=table["image"].str.removesuffix(".png")).to_csv(path, index=False)
    settings["images"] = images
    opened = fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    files = watched_paths(opened, read_json(MANIFEST))
    assert {f"images/{'ab'[seed % 2]}/{seed}.png" for seed in range(6)} <= set(map(os.path.normpath, files))


@pytest.mark.parametrize("make", [folder, listed])
def test_all_images_behind_a_half_are_watched(tmp_path, monkeypatch, make):
    # The draw of the halves depends on the pixels of both.
    monkeypatch.chdir(tmp_path)
    settings, path = make()
    settings["half"] = "judging"
    images = fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    files = watched_paths(images, read_json(MANIFEST))
    assert {f"images/{'ab'[seed % 2]}/{seed}.png" for seed in range(6)} <= set(files)


def test_a_class_folder_without_images_is_watched(tmp_path, monkeypatch):
    # An image that is put there changes no other file or folder.
    monkeypatch.chdir(tmp_path)
    settings, path = folder()
    Path("images/c").mkdir()
    Path("images/.hidden").mkdir()
    images = fetch_dataset(settings, ["a", "b", "c"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    files = watched_paths(images, read_json(MANIFEST))
    assert files[-4:] == ["images", "images/a", "images/b", "images/c"]


@pytest.mark.parametrize("half", [None, "judging"])
def test_lists_and_images_of_one_split_of_celeba_are_watched(tmp_path, monkeypatch, half):
    monkeypatch.chdir(tmp_path)
    settings, path = celeba()
    settings["half"] = half
    opened = fetch_dataset(settings, None, MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    files = watched_paths(opened, read_json(MANIFEST))
    assert sorted(files) == [
        "celeba",
        "celeba/img_align_celeba",
        *[f"celeba/img_align_celeba/{seed}.png" for seed in range(4)],
        "celeba/list_attr_celeba.txt",
        "celeba/list_eval_partition.txt",
    ]


def test_a_new_class_folder_of_a_corruption_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, path = fog()
    opened = fetch_dataset(settings, None, MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    assert "corrupted/fog/2" in watched_paths(opened, read_json(MANIFEST))


def test_images_that_are_gone_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, path = folder()
    fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    Path("images").rename("taken")
    with pytest.raises(InputError, match="images"):
        open_and_compare(MANIFEST)


@pytest.mark.parametrize("half", [None, "judging"])
def test_a_dataset_is_hashed_and_decoded_in_one_reading_each(tmp_path, monkeypatch, half):
    monkeypatch.chdir(tmp_path)
    settings, path = folder()
    settings["half"] = half
    read = []
    monkeypatch.setattr(encoded, "regular_bytes", lambda file: read.append(file) or Path(file).read_bytes())
    fetch_dataset(settings, ["a", "b"], MANIFEST, "d.parquet", dataset="d", path_to_images=path)
    # The first image gives the shape, of the whole and of a half.
    assert len(read) == 2 * 6 + (1 if half is None else 2)
    read.clear()
    open_and_compare(MANIFEST)
    assert len(read) == 6 + (1 if half is None else 2)


CLASSES = ["cat", "dog"]
SQUASH = {"method": "squash", "size": 4, "interpolation": "bilinear"}


def settings_with(preprocessing):
    return {"source": "image_folder", "folders": None, "list": None, "preprocessing": preprocessing}


def encodings(seed):
    """The same pixels in eight PNG files of other bytes."""
    image = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8))
    for number in range(8):
        about = PngImagePlugin.PngInfo()
        about.add_text("Comment", f"copy {number}")
        buffer = io.BytesIO()
        image.save(buffer, "PNG", pnginfo=about if number % 2 else None, compress_level=number)
        yield buffer.getvalue()


@pytest.fixture
def copies(tmp_path):
    """Two images of each class, the first cat in eight encodings."""
    for seed, name in enumerate(["cat/0", "cat/1", "dog/0", "dog/1"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(list(encodings(seed))[: 8 if name == "cat/0" else 1]):
            path.with_name(f"{path.name}-{number}.png").write_bytes(content)
    return tmp_path / "images"


def fetched(copies, preprocessing):
    made = copies.parent / "manifest.json", copies.parent / "samples.parquet"
    fetch_dataset(settings_with(preprocessing), CLASSES, *made, dataset="pets", path_to_images=copies)
    return read_table(made[1], DATASET)


@pytest.mark.parametrize("preprocessing", [{"method": "none"}, SQUASH])
def test_one_image_in_several_encodings_is_one_sample_and_several_files(copies, preprocessing, capsys):
    table = fetched(copies, preprocessing)
    assert len(table) == 11
    assert table["pixel_digest"].nunique() == 4
    assert table["image_digest"].nunique() >= 10
    assert SampleList(table, source="samples").counted.tolist() == [0, 8, 9, 10]
    assert "7 of 11 rows repeat an image" in capsys.readouterr().out


def test_the_file_of_an_image_stays_its_identity(copies):
    before = open_images(settings_with({"method": "none"}), copies, classes=CLASSES)
    digest, pixels = before.digest, before.pixel_digests
    path = copies / "dog/0-0.png"
    path.write_bytes(list(encodings(2))[5])
    after = open_images(settings_with({"method": "none"}), copies, classes=CLASSES)
    assert after.digest != digest
    np.testing.assert_array_equal(after.pixel_digests, pixels)


def test_the_same_pixels_under_two_labels_are_refused_by_both_names(copies):
    (copies / "dog/again.png").write_bytes(list(encodings(0))[7])
    with pytest.raises(InputError, match=r"cat/0-0\.png \(label 0\) and dog/again\.png \(label 1\) are one image"):
        fetched(copies, {"method": "none"})
    assert not (copies.parent / "samples.parquet").exists()


def test_images_of_other_sizes_are_other_images_though_their_bytes_agree(copies):
    grey = np.full((6, 6, 3), 7, dtype=np.uint8)
    Image.fromarray(grey).save(copies / "cat/square.png")
    Image.fromarray(grey.reshape(4, 9, 3)).save(copies / "dog/wide.png")
    digests = open_images(settings_with({"method": "none"}), copies, classes=CLASSES).pixel_digests
    assert len(set(digests)) == 6
