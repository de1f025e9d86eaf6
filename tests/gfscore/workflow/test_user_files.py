"""Files of users that a run watches: images, lists, and all files of an ONNX model."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.workflow import user_files
from gfscore.workflow.entries import PlannedDataset, PlannedModel
from gfscore.workflow.plan import Run
from gfscore.workflow.replaced_files import missing_files
from gfscore.workflow.user_files import present, state
from helpers.configurations import completed


@pytest.mark.parametrize("source", ["npz", "parquet", "labels"])
def test_images_in_one_file_are_watched_whatever_their_source(tmp_path, source):
    path = tmp_path / "images"
    dataset = PlannedDataset("d", {"source": source, "path": str(path)})
    assert dataset.stored_images() == []
    path.write_bytes(b"one")
    assert dataset.stored_images() == str(path)
    before = state(str(path))
    path.write_bytes(b"two")
    assert state(str(path)) != before


def test_of_a_folder_of_images_the_list_is_watched(tmp_path):
    (tmp_path / "list.txt").touch()
    entry = {"source": "image_folder", "path": str(tmp_path), "list": str(tmp_path / "list.txt")}
    assert PlannedDataset("d", entry).stored_images() == str(tmp_path / "list.txt")
    assert PlannedDataset("d", entry | {"list": None}).stored_images() == []


def test_a_file_from_the_future_is_named_with_what_to_do(tmp_path):
    path = tmp_path / "labels.npy"
    path.touch()
    assert present(str(path)) == str(path)
    in_two_hours = time.time() + 7200
    os.utime(path, (in_two_hours, in_two_hours))
    with pytest.raises(InputError, match=r"labels\.npy: .* is 2\.0 hours in the future.* with: touch .*labels\.npy$"):
        present(str(path))


def test_a_path_that_no_file_can_have_is_to_be_corrected():
    with pytest.raises(InputError, match=r"^a{100}: no file can have this path \(File name too long\); correct it$"):
        present(300 * "a")


def test_a_missing_file_in_results_is_named_as_snakemake_knows_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {
        "datasets": {"own": {"source": "npz", "path": "./results/own.npz", "models_of": "own"}},
        "models": {"own": {"none": {"X": {"path": "./results//x.npz"}, "Y": {"path": "y.npz"}}}},
        "audits": {"own": {"dataset": "own", "measures": ["clean"]}},
    }
    messages = missing_files([Run(completed(config)).audits["own"]])
    assert messages[0].endswith("of dataset own; if a step makes it, write results/own.npz")
    assert messages[1].endswith("of model none/X; if a step makes it, write results/x.npz")
    assert messages[2].endswith("of model none/Y")


def test_a_model_that_the_workflow_trains_has_no_file_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("None").touch()
    entry = {"source": "trained", "train_on": "d", "evaluate_on": "d", "training": {"method": "ERM"}}
    assert PlannedModel(ModelName("z", "none", "M"), "z", entry).placed_files() == []


@pytest.fixture
def model(tmp_path):
    """An ONNX model whose weights are in a file beside it."""
    weights = numpy_helper.from_array(np.ones((12, 3), np.float32), "w")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 2, 2])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    network = helper.make_model(helper.make_graph(nodes, "g", [image], [logits], [weights]))
    path = tmp_path / "net.onnx"
    onnx.save(network, path, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    return PlannedModel(ModelName("z", "none", "M"), "z", {"source": "onnx", "path": str(path), "url": None})


def test_all_files_of_a_model_are_watched(model, tmp_path):
    path, data = tmp_path / "net.onnx", tmp_path / "net.onnx.data"
    assert model.placed_files() == [str(path), str(data)]
    before = model.checkpoint_state()
    content = bytearray(data.read_bytes())
    content[0] ^= 1
    data.write_bytes(content)
    assert model.checkpoint_state() != before
    data.unlink()
    assert model.placed_files() == [str(path)]


def test_a_model_in_one_file_is_told_by_the_state_of_that_file(model, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(onnx.load(path), path)
    assert model.placed_files() == [str(path)]
    assert model.checkpoint_state() == state(str(path))


def test_the_files_are_found_without_heavy_packages(model, tmp_path):
    program = (
        "import sys; from gfscore.networks.onnx_files import data_files; "
        f"assert data_files({str(tmp_path / 'net.onnx')!r}); "
        "print(sorted({'numpy', 'onnx', 'torch', 'google.protobuf'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(user_files.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
