"""Classifiers of every foreign source, tiny and with random weights, put into a copy of the repository."""

import math

import numpy as np

LAYERS = """
from torch import nn


def linear(size, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(size, classes))
"""
UNPUBLISHED = {"published_clean_accuracy": None, "published_robust_accuracy": None}
PIXELS = {"channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
FILE = {"url": None, "sha256": None, **UNPUBLISHED, "clean_accuracy_tolerance": 0.005}
WEIGHTS = {"weights": "model", "trust_pickle": False, **FILE, **PIXELS}


def checkpoints(folder):
    """Folder of the checkpoints, made when missing."""
    (folder / "checkpoints").mkdir(exist_ok=True)
    return folder / "checkpoints"


def place_network(folder, name, *, image_shape, classes, seed=0):
    """Write weights of a linear network, and the files that define it; returns its entry of source torch."""
    import torch

    size = math.prod(image_shape)
    (folder / "architectures").mkdir(exist_ok=True)
    (folder / "architectures/layers.py").write_text(LAYERS)
    (folder / "architectures/mine.py").write_text("from .layers import linear\n")
    torch.manual_seed(seed)
    layer = torch.nn.Linear(size, classes)
    path = checkpoints(folder) / f"{name}.pt"
    torch.save({"1.weight": layer.weight.detach(), "1.bias": layer.bias.detach()}, path)
    return {
        "source": "torch",
        "path": f"checkpoints/{name}.pt",
        "architecture": "architectures.mine:linear",
        "arguments": {"size": size, "classes": classes},
        "image_shape": list(image_shape),
        **WEIGHTS,
    }


def place_transformer(folder, name, *, classes):
    """Write weights of timm's smallest vision transformer for images of 32; returns its entry of source timm."""
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    path = checkpoints(folder) / f"{name}.safetensors"
    save_file(timm.create_model("test_vit", img_size=32, num_classes=classes).state_dict(), path)
    return {
        "source": "timm",
        "path": f"checkpoints/{name}.safetensors",
        "architecture": "test_vit",
        "arguments": {"img_size": 32},
        "image_shape": [3, 32, 32],
        **WEIGHTS,
    }


def place_graph(folder, name, *, image_shape, classes):
    """Write a linear ONNX graph; returns its entry of source onnx."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    size = math.prod(image_shape)
    weights = np.random.default_rng(0).normal(size=(size, classes)).astype(np.float32)
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", *image_shape])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", classes])
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    graph = helper.make_graph(nodes, "g", [given], [made], [numpy_helper.from_array(weights, "w")])
    path = checkpoints(folder) / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return {
        "source": "onnx",
        "path": f"checkpoints/{name}.onnx",
        "output": None,
        "image_shape": list(image_shape),
        **FILE,
        **PIXELS,
    }


def place_logits(folder, name, *, labels, classes, seed=0):
    """Write random logits with a signal; returns their entry of source logits."""
    logits = np.random.default_rng(seed).normal(size=(len(labels), classes)) + 2 * np.eye(classes)[labels]
    np.save(folder / f"{name}.npy", logits)
    return {
        "source": "logits",
        "path": f"{name}.npy",
        "allow_probabilities": False,
        **UNPUBLISHED,
        "clean_accuracy_tolerance": 0.005,
    }


def place_radii(folder, name, *, labels):
    """Write a file of certified radii; returns its entry of source samples."""
    lines = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    lines += [f"{i}\t{y}\t{y}\t{0.1 * (i % 5):.1f}\t1\t0:00:01" for i, y in enumerate(labels)]
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return {"source": "samples", "path": f"{name}.tsv", **UNPUBLISHED}
