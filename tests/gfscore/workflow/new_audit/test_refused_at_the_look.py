"""Faults of images and logits that the run would find are found before anything is written."""

import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, PngImagePlugin

from gfscore.workflow.command import ERROR, main
from gfscore.workflow.new_audit import data_files
from helpers import own_files


@pytest.fixture(autouse=True)
def in_this_process(project, monkeypatch):
    """The look runs here, and so with the limits that a test sets."""
    from gfscore.core.errors import InputError
    from gfscore.workflow.new_audit import command
    from gfscore.workflow.new_audit.inspection import inspect

    def inspected(request):
        inspection = inspect(request, lambda line: None)
        raise InputError(f"not refused: {inspection.lines}")

    monkeypatch.setattr(command, "inspected", inspected)


def refusal(capsys, project, *arguments):
    """What is said of a command that is refused, with nothing written."""
    assert main(["audit", *map(str, arguments), "--dry-run"]) == ERROR
    assert not (project / "audits").exists()
    said = capsys.readouterr().err
    assert "not refused" not in said
    return said


@pytest.fixture
def folder(own, tmp_path):
    shutil.copytree(own / "images", tmp_path / "mine")
    return tmp_path / "mine"


def reencoded(path, target):
    """The same pixels in a file of other bytes."""
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", "again")
    Image.open(path).save(target, pnginfo=about, compress_level=1)
    assert target.read_bytes() != path.read_bytes()


def test_the_same_pixels_under_two_labels(own, folder, project, capsys):
    path = next((folder / "cat").glob("*.png"))
    reencoded(path, folder / "dog/again.png")
    said = refusal(capsys, project, own / "net.onnx", folder)
    assert f"cat/{path.name}" in said and "dog/again.png" in said


def test_the_same_files_under_two_labels_among_more_images_than_are_decoded(own, folder, project, capsys, monkeypatch):
    monkeypatch.setattr(data_files, "ALL", 20)
    monkeypatch.setattr(data_files, "SHOWN", (10, 10))
    path = sorted((folder / "cat").glob("*.png"))[7]
    shutil.copy(path, folder / "dog/again.png")
    said = refusal(capsys, project, own / "net.onnx", folder)
    assert f"cat/{path.name}" in said and "dog/again.png" in said


def test_the_same_pixels_under_two_labels_beside_logits(own, folder, project, capsys, tmp_path):
    path = next((folder / "cat").glob("*.png"))
    reencoded(path, folder / "dog/again.png")
    np.savez(tmp_path / "logits.npz", logits=np.random.default_rng(0).normal(size=(501, 10)))
    assert "dog/again.png" in refusal(capsys, project, tmp_path / "logits.npz", folder)


def test_equal_arrays_under_two_labels(own, project, capsys, tmp_path, real_data):
    x, y = own_files.real_images(real_data, 200)
    x, y = np.concatenate([x, x[:1]]), np.append(y, (y[0] + 1) % 10)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    assert "mine.npz" in refusal(capsys, project, own / "net.onnx", tmp_path / "mine.npz")


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_logits_beyond_float32(project, capsys, tmp_path, ending):
    labels = np.arange(60) % 3
    logits = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[labels]
    logits[7, 1] = 1e39
    path = tmp_path / f"logits.{ending}"
    if ending == "npz":
        np.savez(path, logits=logits, labels=labels)
    else:
        pd.DataFrame(logits, columns=["cat", "dog", "frog"]).assign(label=labels).to_csv(path, index=False)
    said = refusal(capsys, project, path)
    assert path.name in said and "row 7" in said and "float32" in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("saved/data-00000-of-00001.arrow", "to_parquet"),
        ("shards/00000.tar.gz", "an archive; unpack it"),
        ("images.zip", "an archive; unpack it"),
        ("records/val.tfrecord-00000-of-00001", "numpy.savez"),
        ("test.pt", "labels.numpy()"),
    ],
)
def test_data_in_other_formats_are_named_with_how_to_convert_them(own, project, capsys, name, words):
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"content")
    said = refusal(capsys, project, own / "net.onnx", path.parent if "/" in name else path)
    assert f"{name}: " in said and words in said


def test_splits_of_a_dataset_are_named(own, project, capsys, tmp_path):
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits/dataset_dict.json").touch()
    assert "give the folder of one" in refusal(capsys, project, own / "net.onnx", tmp_path / "splits")


class Whole(torch.nn.Linear):
    """A network that is saved whole, with the name of its code."""


def test_what_is_no_file_of_weights_is_told_before_an_architecture_is_asked_for(own, project, capsys, tmp_path):
    torch.save(Whole(2, 2), tmp_path / "whole.pth")
    said = refusal(capsys, project, tmp_path / "whole.pth", own / "images.npz")
    assert "Whole, which could run code" in said and "model.state_dict()" in said
    (tmp_path / "learner.pkl").touch()
    said = refusal(capsys, project, tmp_path / "learner.pkl", own / "images.npz")
    assert "ends in .pkl" in said and "model.state_dict()" in said
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip/open_clip_config.json").touch()
    assert "of open_clip" in refusal(capsys, project, tmp_path / "clip", own / "images.npz")


def test_a_checkpoint_that_unpacks_to_much_more_than_its_file(own, project, capsys, tmp_path):
    path = tmp_path / "weights.pth"
    torch.save({"weight": torch.zeros(4)}, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("archive/data/7", "w") as file:
        for _ in range(2**9):
            file.write(bytes(2**20))
    architecture = f"{own}/my_networks.py:marabou"
    said = refusal(capsys, project, path, own / "images.npz", "--architecture", architecture)
    assert "weights.pth" in said and "torch.save" in said


def test_an_image_of_more_pixels_than_photographs_have(own, folder, project, capsys):
    Image.new("1", (13_300, 13_300)).save(folder / "cat/9999.png")
    said = refusal(capsys, project, own / "net.onnx", folder)
    assert "cat/9999.png" in said and "13300x13300" in said
