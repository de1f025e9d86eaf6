"""A dataset is described as mlcroissant reads it, and no more is said of it than is known."""

import hashlib
import json

import pandas as pd
import pytest

from gfscore.core.dataset_manifest import DatasetManifest
from gfscore.show.exports import DatasetStatement
from gfscore.show.exports.croissant import write_croissant
from helpers.validators import of_validator

pytestmark = pytest.mark.seconds(10)

CLASSES = ["cat", "<b>dog</b>", '"frog"\n']
SAMPLES = pd.DataFrame(
    {
        "sample_id": ["cat/1 é.png", "=dog", "frog,3"],
        "label": [0, 1, 2],
        "image_digest": ["0a", "1b", "2c"],
        "pixel_digest": ["0a", "1b", "2c"],
    }
)


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "toy.npz"
    path.write_bytes(b"images and labels")
    return {
        "dataset": "toy",
        "path": str(path),
        "digest": "d" * 64,
        "digest_covers": "pixels, labels and identifiers",
        "samples": 3,
        "classes": CLASSES,
    }


def test_the_validator_finds_no_error_and_reads_labels_with_the_names_of_their_classes(tmp_path, manifest):
    stated = DatasetStatement(hub="someone/toy", licence="CC-BY-4.0")
    write_croissant(tmp_path / "toy", DatasetManifest(**manifest), SAMPLES, stated=stated)
    samples = of_validator("croissant_records.py", str(tmp_path / "toy/croissant.json"), "samples")
    assert (samples["name"], samples["errors"]) == ("toy", [])
    assert "CC-BY-4.0" in str(samples["licence"])
    assert [record["samples/label"] for record in samples["records"]] == [0, 1, 2]
    assert samples["records"][0]["samples/sample_id"] == "cat/1 é.png"
    classes = of_validator("croissant_records.py", str(tmp_path / "toy/croissant.json"), "classes")
    assert [record["classes/name"] for record in classes["records"]][:2] == CLASSES[:2]
    for name, digest in samples["files"].items():
        folder = tmp_path if name == "toy.npz" else tmp_path / "toy"
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert set(samples["files"]) == {"samples.csv", "toy.npz"}


def test_a_dataset_in_a_file_of_the_same_name_as_its_description_is_another_file(tmp_path, manifest):
    path = tmp_path / "samples.csv"
    path.write_text("name,label\n")
    write_croissant(
        tmp_path / "toy", DatasetManifest(**manifest | {"path": str(path)}), SAMPLES, stated=DatasetStatement()
    )
    description = json.loads((tmp_path / "toy/croissant.json").read_text(encoding="utf-8"))
    made, given = description["distribution"]
    assert made["@id"] != given["@id"] and made["sha256"] != given["sha256"]
    assert all(field["source"]["fileObject"]["@id"] == made["@id"] for field in description["recordSet"][1]["field"])
    assert of_validator("croissant_records.py", str(tmp_path / "toy/croissant.json"), "samples")["errors"] == []


def test_what_is_unknown_is_left_out(tmp_path, manifest):
    manifest["path"] = None
    without_images = SAMPLES.assign(image_digest=None, pixel_digest=None)
    write_croissant(tmp_path / "toy", DatasetManifest(**manifest), without_images, stated=DatasetStatement())
    description = json.loads((tmp_path / "toy/croissant.json").read_text(encoding="utf-8"))
    assert not {"license", "url", "version", "datePublished"} & description.keys()
    assert [file["name"] for file in description["distribution"]] == ["samples.csv"]
    assert [field["name"] for field in description["recordSet"][1]["field"]] == ["sample_id", "label"]
    assert str(tmp_path) not in json.dumps(description)
    read = of_validator("croissant_records.py", str(tmp_path / "toy/croissant.json"), "samples")
    assert read["errors"] == [] and len(read["records"]) == 3
