"""Configurations: those that the repository ships with, what is refused of a changed one, small ones and their models.

Models of every foreign source are tiny, have random weights, and are put into a copy of the repository.
"""

import math
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.images.manifests import open_described
from gfscore.workflow.config_files import Mark, marked, read_configuration
from gfscore.workflow.configuration import require_consistent
from gfscore.workflow.resolving import resolve

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "config.yaml"
FILES = [DEMO, *sorted((ROOT / "configs").glob("*.yaml"))]

CONDITIONAL = {"kind": "conditional", "train_on": "digits-train", "evaluate_on": "digits"}
"""A mapper that no shipped audit uses."""


def shipped_configuration(**more):
    """Every shipped audit in one complete configuration that a test may change; it runs the demo.

    Takes sections with what is in no shipped file. Without remedies, whose halves of the data and models would have to
    follow each change.
    """
    added = {"run": ["digits"], "mappers": {"digits-conditional": CONDITIONAL}, "audits": {"digits": {"remedy": None}}}
    asked = read_configuration(FILES, {**added, **more})
    return resolve(asked).config


def written(path=DEMO):
    """Content of a shipped file as its author wrote it, which a test may change."""
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


def completed(config, *, thorough=True):
    """The complete configuration that a mapping makes; InputError for one that is refused."""
    resolution = resolve(marked(config, Mark("config.yaml")))
    require_consistent(resolution, thorough=thorough)
    return resolution.config


def refusal(config):
    """Words with which a configuration is refused."""
    with pytest.raises(InputError) as refused:
        completed(config)
    return str(refused.value)


def refusal_with(config, path, value):
    """Words with which a configuration is refused once this value stands at the end of a path of keys."""
    part = config
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return refusal(config)


def laid_over(below, above):
    """Mappings merged key by key, as Snakemake does for --configfile; everything else replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: laid_over(below.get(key), value) for key, value in above.items()}}


def gate_rule(measure, *, statistic="wcr", **changes):
    """Rule of a gate as config.yaml writes it, for one look; `changes` hold the threshold."""
    rule = {"measure": measure, "statistic": statistic, "confidence": 0.95}
    return rule | {"looks": {"planned": 1, "this": 1}, "on_inconclusive": "stop"} | changes


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


def small_audit(config, *, dataset, models, measures=("clean", "great-softmax")):
    """The default audit with other models and measures, and one objective of calibration that needs nothing more."""
    default = config["audits"]["digits"]
    calibration = default["calibration"] | {"measure": "great-softmax", "objectives": ["likelihood"]}
    return default | {
        "dataset": dataset,
        "models": models,
        "measures": list(measures),
        "calibration": calibration if "great-softmax" in measures else None,
        "groups": None,
        "projection": None,
        "remedy": None,
        "gate": [gate_rule(measures[-1], at_least=0.1)],
    }


def trained_for_one_epoch(config, names):
    """Entries of the digits zoo that train in a second."""
    entries = {name: deepcopy(config["models"]["digits"]["none"][name]) for name in names}
    for entry in entries.values():
        entry["training"]["epochs"] = 1
    return entries


def place_small_audit(repository):
    """Put models of three sources into a copy of the repository, and `one.yaml`, which audits them, beside config.yaml."""
    config = repository.config()
    repository.snakemake("--", "results/datasets/digits.json")
    images, _ = open_described(repository.path / "results/datasets/digits.json")
    models = trained_for_one_epoch(config, ["ERM"]) | {
        "Network": place_network(repository.path, "Network", image_shape=(1, 8, 8), classes=10),
        "Given": place_logits(repository.path, "Given", labels=images.labels, classes=10),
    }
    overlay = {
        "run": ["one"],
        "datasets": {"one": config["datasets"]["digits"] | {"models_of": "one"}},
        "models": {"one": {"none": models}},
        "audits": {"one": small_audit(config, dataset="one", models=[f"one/none/{name}" for name in models])},
    }
    (repository.path / "one.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False))
