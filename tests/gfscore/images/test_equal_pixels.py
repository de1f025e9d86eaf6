"""Images are equal by their pixels, however they are encoded, and identified by their files."""

import io

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from fetch_dataset import fetch_dataset
from gfscore.audit.samples import SampleList
from gfscore.core.errors import InputError
from gfscore.images.datasets import open_images
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import DATASET

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
def folder(tmp_path):
    """Two images of each class, the first cat in eight encodings."""
    for seed, name in enumerate(["cat/0", "cat/1", "dog/0", "dog/1"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(list(encodings(seed))[: 8 if name == "cat/0" else 1]):
            path.with_name(f"{path.name}-{number}.png").write_bytes(content)
    return tmp_path / "images"


def fetched(folder, preprocessing):
    made = folder.parent / "manifest.json", folder.parent / "samples.parquet"
    fetch_dataset(settings_with(preprocessing), CLASSES, *made, dataset="pets", path_to_images=folder)
    return read_table(made[1], DATASET)


@pytest.mark.parametrize("preprocessing", [{"method": "none"}, SQUASH])
def test_one_image_in_several_encodings_is_one_sample_and_several_files(folder, preprocessing, capsys):
    table = fetched(folder, preprocessing)
    assert len(table) == 11
    assert table["pixel_digest"].nunique() == 4
    assert table["image_digest"].nunique() >= 10
    assert SampleList(table, source="samples").counted.tolist() == [0, 8, 9, 10]
    assert "7 of 11 rows repeat an image" in capsys.readouterr().out


def test_the_file_of_an_image_stays_its_identity(folder):
    before = open_images(settings_with({"method": "none"}), folder, classes=CLASSES)
    digest, pixels = before.digest, before.pixel_digests()
    path = folder / "dog/0-0.png"
    path.write_bytes(list(encodings(2))[5])
    after = open_images(settings_with({"method": "none"}), folder, classes=CLASSES)
    assert after.digest != digest
    np.testing.assert_array_equal(after.pixel_digests(), pixels)


def test_the_same_pixels_under_two_labels_are_refused_by_both_names(folder):
    (folder / "dog/again.png").write_bytes(list(encodings(0))[7])
    with pytest.raises(InputError, match=r"cat/0-0\.png \(label 0\) and dog/again\.png \(label 1\) are one image"):
        fetched(folder, {"method": "none"})
    assert not (folder.parent / "samples.parquet").exists()


def test_images_of_other_sizes_are_other_images_though_their_bytes_agree(folder):
    grey = np.full((6, 6, 3), 7, dtype=np.uint8)
    Image.fromarray(grey).save(folder / "cat/square.png")
    Image.fromarray(grey.reshape(4, 9, 3)).save(folder / "dog/wide.png")
    digests = open_images(settings_with({"method": "none"}), folder, classes=CLASSES).pixel_digests()
    assert len(set(digests)) == 6
