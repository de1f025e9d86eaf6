"""Linear classifiers of images (3, 8, 8) into 4 classes, in files of several sources, and the code that defines one."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gfscore.core.digests import sha256_of_file
from gfscore.networks.classifier import open_classifier

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
RAW = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
"""Settings of no preprocessing."""

DEFINITION = """
import os
import torch
from torch import nn

VALUE = 3

class Flat(nn.Module):
    def __init__(self, classes=4, side=8):
        super().__init__()
        self.linear = nn.Linear(3 * side * side, classes)

    def forward(self, x):
        return self.linear(x.flatten(1))

class Pair(Flat):
    def forward(self, x):
        return super().forward(x), x

def flat(**arguments):
    return Flat(**arguments)

def number():
    return 7

def broken():
    raise RuntimeError("no luck")
"""
"""Content of architectures/mine.py."""


def write_architectures(folder):
    """A folder of architectures, with a file outside of it that must not run."""
    (folder / "deep").mkdir(parents=True)
    (folder / "mine.py").write_text(DEFINITION)
    (folder / "deep" / "other.py").write_text(
        "from architectures.mine import Flat\n\n\nclass Deeper(Flat):\n    pass\n"
    )
    outside = folder.parent
    (outside / "outside.py").write_text(f"open({str(outside / 'it-ran')!r}, 'w')\n")


def manifest_of(path, source, **settings):
    sha256 = sha256_of_file(path)
    common = {"arguments": {}, "weights": "model", "trust_pickle": False, "sha256": None, **RAW, "output": None}
    names = {"dataset": "z", "threat": "none", "model": "M", "architecture": settings.get("architecture", source)}
    return {**names, "source": source, "path": str(path), "sha256": sha256, "settings": {**common, **settings}}


def opened(manifest, *, classes=4):
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


def write_graph(path, *, batch="n", outputs=1, dtype=TensorProto.FLOAT, layout=(3, 8, 8)):
    """Linear classifier of flattened images into 4 classes; returns its weights."""
    size = int(np.prod(layout))
    weights = np.random.default_rng(2).normal(size=(size, 4)).astype(np.float32)
    image = helper.make_tensor_value_info("image", dtype, [batch, *layout])
    names = ["logits", "flat"][:outputs]
    shapes = {"logits": [batch, 4], "flat": [batch, size]}
    outputs_info = [helper.make_tensor_value_info(name, dtype, shapes[name]) for name in names]
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    kind = np.int32 if dtype == TensorProto.INT32 else np.float32
    content = helper.make_graph(nodes, "g", [image], outputs_info, [numpy_helper.from_array(weights.astype(kind), "w")])
    onnx.save(helper.make_model(content, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return weights
