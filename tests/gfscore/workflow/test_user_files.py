"""Which files of users a run knows: those of an ONNX model are all of its files."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from gfscore.workflow import user_files

PLACE = ("z", "none", "M")


@pytest.fixture
def config(tmp_path):
    """Configuration with one ONNX model, whose weights are in a file beside it."""
    weights = numpy_helper.from_array(np.ones((12, 3), np.float32), "w")
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 2, 2])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    model = helper.make_model(helper.make_graph(nodes, "g", [given], [made], [weights]))
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    return {"models": {"z": {"none": {"M": {"source": "onnx", "path": str(path), "url": None}}}}}


def test_all_files_of_a_model_are_watched(config, tmp_path):
    path, data = tmp_path / "net.onnx", tmp_path / "net.onnx.data"
    assert user_files.placed_checkpoint(config, *PLACE) == [str(path), str(data)]
    before = user_files.checkpoint_state(config, *PLACE)
    content = bytearray(data.read_bytes())
    content[0] ^= 1
    data.write_bytes(content)
    assert user_files.checkpoint_state(config, *PLACE) != before
    data.unlink()
    assert user_files.placed_checkpoint(config, *PLACE) == [str(path)]


def test_a_model_in_one_file_is_told_by_the_state_of_that_file(config, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(onnx.load(path), path)
    assert user_files.placed_checkpoint(config, *PLACE) == [str(path)]
    assert user_files.checkpoint_state(config, *PLACE) == user_files.state(str(path))


def test_the_files_are_found_without_heavy_packages(config, tmp_path):
    program = (
        "import sys; from gfscore.networks.onnx_files import data_files; "
        f"assert data_files({str(tmp_path / 'net.onnx')!r}); "
        "print(sorted({'numpy', 'onnx', 'torch', 'google.protobuf'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(user_files.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
