"""Rotated copies of real images, whose EXIF orientation a real network tells to be right or wrong."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from torch import nn

from gfscore.core.errors import InputError
from gfscore.images.datasets import open_images
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.new_audit.data_files import find_data
from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.orientation import in_better_orientation
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.plan import Run
from helpers import own_files

TAG = 0x0112
ACCURACY = "57.4%"
"""Of the network on its 500 images as they should be seen."""

ENDINGS = {"jpg": {"quality": 100, "subsampling": 0}, "png": {}, "webp": {"lossless": True}}

pytestmark = pytest.mark.usefixtures("project")


def write_folder(folder, images, labels, *, stored, marked, ending="png"):
    """Class folders of images, which `stored` turns, with orientation 6 in those that `marked` says."""
    for row, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        path = folder / own_files.CLASSES[label] / f"{row:04d}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        exif = Image.Exif()
        if marked(row):
            exif[TAG] = 6
        Image.fromarray(stored(pixels.transpose(1, 2, 0))).save(path, exif=exif, **ENDINGS[ending])
    return folder


def quarter_turn(pixels):
    """Pixels that orientation 6 turns back."""
    return np.ascontiguousarray(np.rot90(pixels))


@pytest.fixture(scope="module")
def folders(tmp_path_factory, real_data):
    """Folders of the same images: stored turned and marked so, stored upright but marked, and few marked."""
    images, labels = own_files.real_images(real_data)
    made = tmp_path_factory.mktemp("orientation")
    for ending in ENDINGS:
        write_folder(made / ending, images, labels, stored=quarter_turn, marked=lambda row: True, ending=ending)
    write_folder(made / "upright", images, labels, stored=np.asarray, marked=lambda row: True)
    write_folder(made / "few", images, labels, stored=np.asarray, marked=lambda row: row < 6)
    return made


def inspected(*files, **options):
    *models, data = map(str, files)
    return inspect(Request(tuple(models), data, **options), lambda line: None)


def orientation_line(inspection):
    (line,) = [line for line in inspection.lines if line.startswith("EXIF")]
    return line


def dataset_of(inspection):
    (entry,) = yaml.safe_load(inspection.text)["datasets"].values()
    return entry


@pytest.mark.parametrize("ending", ENDINGS)
def test_images_that_are_stored_turned_are_turned_back_and_right_again(own, folders, ending):
    inspection = inspected(own / "net.onnx", folders / ending)
    line = orientation_line(inspection)
    assert "500 of 500" in line and "turned" in line
    (answers,) = [line for line in inspection.lines if line.startswith("answers")]
    # JPEG at its best quality still changes some pixels.
    accuracy = float(answers.split("%")[0].split()[-1])
    assert accuracy == pytest.approx(57.4, abs=1.0 if ending == "jpg" else 0.01)
    entry = dataset_of(inspection)
    assert entry["preprocessing"] == {"method": "none", "orientation": "exif"}


def test_the_step_reads_the_images_as_the_look_did(own, folders, real_data):
    inspection = inspected(own / "net.onnx", folders / "png")
    Path("written.yaml").write_text(inspection.text)
    config = resolved_configuration(["written.yaml"], {}, thorough=True).config
    dataset = Run(config).datasets[inspection.name]
    images = open_images(dataset.image_settings(), dataset.images, classes=list(own_files.CLASSES))
    rows = [int(Path(name).stem) for name in images.sample_id]
    expected, _ = own_files.real_images(real_data)
    read = np.concatenate(list(images.batches(100)))
    np.testing.assert_array_equal(read, expected[rows].astype(np.float32) / np.float32(255))
    assert "turned by EXIF" in images.preprocessing


def test_a_wrong_orientation_is_left_alone_since_that_surely_fits_better(own, folders):
    inspection = inspected(own / "net.onnx", folders / "upright")
    assert "500 of 500" in orientation_line(inspection) and "as stored" in orientation_line(inspection)
    assert any(ACCURACY in line for line in inspection.lines if line.startswith("answers"))
    assert "preprocessing" not in dataset_of(inspection)


def test_where_neither_reading_is_surely_better_torchvisions_is_taken_and_the_option_named(own, folders):
    inspection = inspected(own / "net.onnx", folders / "few")
    line = orientation_line(inspection)
    assert "6 of 500" in line and "--orientation exif" in line and "ORIENTATION=exif" in line
    assert "preprocessing" not in dataset_of(inspection)


def test_the_option_decides(own, folders):
    inspection = inspected(own / "net.onnx", folders / "few", orientation="exif")
    assert dataset_of(inspection)["preprocessing"]["orientation"] == "exif"
    inspection = inspected(own / "net.onnx", folders / "png", orientation="stored", preprocessing="none")
    assert "preprocessing" not in dataset_of(inspection)
    assert any("22.6% of 500" in line for line in inspection.lines)


def test_without_an_orientation_nothing_is_said(own):
    inspection = inspected(own / "net.onnx", own / "images")
    assert not [line for line in inspection.lines if line.startswith("EXIF")]


def test_models_that_fit_opposite_readings_are_told_apart_with_the_option(own, folders, tmp_path, real_data):
    class Turned(nn.Module):
        """The network, for images that are stored turned."""

        def __init__(self):
            super().__init__()
            self.network = own_files.network(real_data)

        def forward(self, x):
            return self.network(x.rot90(-1, (2, 3)))

    torch.jit.trace(Turned().eval(), torch.zeros(2, 3, 32, 32)).save(tmp_path / "turned.pt")
    with pytest.raises(InputError, match=r"(?s)net.*turned.*--orientation exif.*--orientation stored"):
        inspected(own / "net.onnx", tmp_path / "turned.pt", folders / "png", trust_code=True)


def test_images_that_would_have_several_sizes_are_turned_with_the_size_that_is_named(own, tmp_path, real_data):
    images, labels = own_files.real_images(real_data, 200)

    def wide(pixels):
        return np.pad(pixels, ((0, 0), (8, 8), (0, 0)))

    folder = write_folder(tmp_path / "wide", images, labels, stored=wide, marked=lambda row: row % 2)
    inspection = inspected(own / "net.onnx", folder, size=32, preprocessing="none")
    assert "100 of 200" in orientation_line(inspection)
    inspection = inspected(own / "net.onnx", folder, size=32, preprocessing="none", orientation="exif")
    expected = {"method": "center_crop", "resize": 32, "size": 32, "orientation": "exif"}
    assert dataset_of(inspection)["preprocessing"] == expected


def test_without_a_size_images_that_would_have_several_are_read_as_stored_and_the_options_named(tmp_path, real_data):
    images, labels = own_files.real_images(real_data, 200)
    folder = write_folder(tmp_path / "wide", images[:, :, :24], labels, stored=np.asarray, marked=lambda row: row % 2)
    request = Request(("a",), str(folder))
    data, (line,) = in_better_orientation(find_data(str(folder), request), [], request, lambda line: None)
    assert "100 of 200" in line and "as stored" in line
    assert "--orientation exif --size 24" in line and "ORIENTATION=exif SIZE=24" in line
    assert "preprocessing" not in data.entry


@pytest.mark.parametrize(("model", "data"), [("net.onnx", "images.npz"), ("logits.npz", "images.npz")])
def test_arrays_and_logits_have_no_orientation_to_choose(own, model, data):
    with pytest.raises(InputError, match=r"--orientation"):
        inspected(own / model, own / data, orientation="exif")
