"""Inputs as people bring them to gfscore audit: default exports, usual folders, near misses, ambiguous and damaged files.

Each function writes one input into a folder that holds `images` (class folders) and `images.npz` of the same 200 real
CIFAR-10 images, and returns what plain code answers for it; None where no audit can be made of it as it stands.
"""

import csv
import json
import os
import shutil
import warnings
import zipfile
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageOps, PngImagePlugin
from safetensors.torch import save_file
from torch import nn

from helpers import own_files
from helpers.own_files import CLASSES

COUNT = 200
"""Images of the material: enough to tell ways of preprocessing apart."""

LOGITS, FEATURES = "scores", "v8"
"""Values of the graph that own_files.write_onnx makes: its logits (n, 10), and the layer before them (n, 64)."""

REORDERED = (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)
"""Class of each output of a network whose outputs stand in another order than the classes of the data."""

WNIDS = (
    "n01440764", "n01443537", "n01484850", "n01491361", "n01494475", "n01496331", "n01498041", "n01514668", "n01514859",
    "n01518878",
)  # fmt: skip
"""Names of ten classes of ImageNet in its order, which stand for CIFAR-10's here."""

MEANINGS = (
    "tench", "goldfish", "great white shark", "tiger shark", "hammerhead", "electric ray", "stingray", "cock", "hen",
    "ostrich",
)  # fmt: skip

VEHICLES = (0, 1, 8, 9)
"""Classes of CIFAR-10 that are vehicles; the others are animals."""


@dataclass(frozen=True)
class Plain:
    """What plain code answers: `images` (n, C, H, W) float32 in [0, 1], `labels` (n,), `logits` (n, K).

    Labels and columns of the logits are in the order of the data's classes, those without images included.
    """

    images: np.ndarray
    labels: np.ndarray
    logits: np.ndarray

    @property
    def accuracy(self):
        """Share of the images that are classified correctly."""
        return float((self.logits.argmax(axis=1) == self.labels).mean())

    def of(self, rows, columns=None):
        """Plain answers for some images, among some classes, whose labels count anew."""
        columns = list(range(self.logits.shape[1])) if columns is None else list(columns)
        number_of = {column: number for number, column in enumerate(columns)}
        labels = np.array([number_of[label] for label in self.labels[rows]])
        return Plain(self.images[rows], labels, self.logits[rows][:, columns])


@dataclass(frozen=True)
class Material:
    """The trained network and the real images that every input is made of; `folder` holds images and images.npz."""

    data: Path
    folder: Path
    pixels: np.ndarray
    labels: np.ndarray
    network: nn.Module

    @cached_property
    def images(self):
        """Images (n, 3, 32, 32) float32 in [0, 1]."""
        return self.pixels.astype(np.float32) / 255

    @cached_property
    def plain(self):
        """What the network answers."""
        return Plain(self.images, self.labels, answers(self.network, self.images))

    @cached_property
    def binary(self):
        """Network with one logit (n, 1), above 0 for a vehicle."""
        layer = nn.Linear(10, 1)
        with torch.no_grad():
            layer.bias.zero_()
            for label in range(10):
                layer.weight[0, label] = 1 / 4 if label in VEHICLES else -1 / 6
        return nn.Sequential(*self.network, layer).eval()

    @cached_property
    def plain_binary(self):
        """What the binary network answers: logits (0, z), animals first."""
        logit = answers(self.binary, self.images)[:, 0]
        labels = np.isin(self.labels, VEHICLES).astype(int)
        return Plain(self.images, labels, np.stack([np.zeros_like(logit), logit], axis=1))

    @cached_property
    def reordered(self):
        """The network with its outputs in the order REORDERED."""
        last = nn.Linear(64, 10)
        with torch.no_grad():
            last.weight.copy_(self.network[-1].weight[list(REORDERED)])
            last.bias.copy_(self.network[-1].bias[list(REORDERED)])
        return nn.Sequential(*self.network[:-1], last).eval()

    @property
    def names_of_reordered(self):
        """Name of each output of the reordered network."""
        return [CLASSES[label] for label in REORDERED]


def material(data, folder, count=COUNT):
    """Material of so many images in a folder, made of the folder of real data."""
    pixels, labels = own_files.real_images(data, count)
    folder = Path(folder)
    write_class_folders(folder / "images", pixels, [CLASSES[label] for label in labels])
    np.savez(folder / "images.npz", x=pixels, y=labels)
    return Material(Path(data), folder, pixels, labels, own_files.network(data))


def place_material(real, folder):
    """Place images and images.npz in a folder."""
    shutil.copytree(real.folder / "images", folder / "images", copy_function=os.link)
    os.link(real.folder / "images.npz", folder / "images.npz")


def answers(network, images):
    """Logits of a torch network."""
    with torch.inference_mode():
        return network(torch.from_numpy(images)).numpy()


def answers_of_file(path, images):
    """First output of an ONNX file by onnxruntime alone."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images})[0]


def write_class_folders(folder, pixels, names, *, ending=".png", **options):
    """Write images (n, 3, H, W) uint8 into a folder for each name."""
    for row, (picture, name) in enumerate(zip(pixels, names, strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.transpose(1, 2, 0)).save(folder / name / f"{row:04d}{ending}", **options)


def two_folders(real, folder):
    """Write kinds/, with the class folders animal and vehicle."""
    names = np.where(np.isin(real.labels, VEHICLES), "vehicle", "animal")
    write_class_folders(folder / "kinds", real.pixels, names)


# ---- ONNX graphs, by hand ----


def graph_of(network, folder, **options):
    """The network as an ONNX graph."""
    own_files.write_onnx(network, folder / "net.onnx", **options)
    return onnx.load(folder / "net.onnx")


def with_tail(graph, nodes, outputs, weights=(), kind=TensorProto.FLOAT):
    """Graph with more nodes and other outputs: names with the sizes that follow the batch."""
    graph.graph.node.extend(nodes)
    graph.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights)
    del graph.graph.output[:]
    for name, sizes in outputs.items():
        graph.graph.output.append(helper.make_tensor_value_info(name, kind, ["n", *sizes]))
    return graph


def saved(graph, folder):
    """Write net.onnx, after the checks of onnx."""
    onnx.checker.check_model(graph)
    onnx.save(graph, folder / "net.onnx")


def headed(real, folder, *nodes, name="answers"):
    """Write net.onnx whose output is that of more nodes after the logits."""
    saved(with_tail(graph_of(real.network, folder), nodes, {name: [10]}), folder)


def write_beside(real, folder, **options):
    """Write net.onnx with its weights in other files."""
    graph = graph_of(real.network, folder)
    onnx.save_model(graph, folder / "net.onnx", save_as_external_data=True, size_threshold=0, **options)


def change_places(path, **values):
    """Change where the tensors of an ONNX file are said to be stored."""
    graph = onnx.load(path, load_external_data=False)
    for tensor in graph.graph.initializer:
        for entry in tensor.external_data:
            entry.value = values.get(entry.key, entry.value)
    onnx.save(graph, path)


# ---- 1. weights in files beside the graph ----


def onnx_by_todays_exporter(real, folder):
    """torch.onnx.export as it is called by default: net.onnx and net.onnx.data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            real.network,
            (torch.zeros(2, 3, 32, 32),),
            folder / "net.onnx",
            dynamic_shapes=({0: torch.export.Dim("n")},),
            verbose=False,
        )
    assert (folder / "net.onnx.data").is_file()
    return real.plain


def onnx_with_onnx_data(real, folder):
    """All weights in net.onnx_data, as other tools call it."""
    write_beside(real, folder, all_tensors_to_one_file=True, location="net.onnx_data")
    return real.plain


def onnx_with_a_file_per_tensor(real, folder):
    """One file beside the graph for every tensor."""
    write_beside(real, folder, all_tensors_to_one_file=False)
    assert (folder / "0.weight").is_file()
    return real.plain


def onnx_with_constants_beside(real, folder):
    """Weights as attributes of Constant nodes, stored in another file."""
    graph = graph_of(real.network, folder)
    constants = [
        helper.make_node("Constant", [], [tensor.name], value=tensor, name=tensor.name)
        for tensor in graph.graph.initializer
    ]
    nodes = [*constants, *graph.graph.node]
    del graph.graph.initializer[:]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
    onnx.save_model(
        graph, folder / "net.onnx", save_as_external_data=True, location="net.bin", size_threshold=0, convert_attribute=True
    )  # fmt: skip
    return real.plain


def onnx_without_its_data_file(real, folder):
    """net.onnx copied alone, as happens with a browser."""
    write_beside(real, folder, location="weights.bin")
    (folder / "weights.bin").unlink()


def onnx_with_a_short_data_file(real, folder):
    """A download of the weights that was cut off."""
    write_beside(real, folder, location="weights.bin")
    os.truncate(folder / "weights.bin", 50_000)


def onnx_with_a_linked_data_file(real, folder):
    """The weights behind a link."""
    write_beside(real, folder, location="weights.bin")
    (folder / "elsewhere").mkdir()
    shutil.move(folder / "weights.bin", folder / "elsewhere/weights.bin")
    (folder / "weights.bin").symlink_to("elsewhere/weights.bin")


def onnx_with_data_in_another_folder(real, folder):
    """Weights that are said to be in ../weights.bin."""
    (folder / "model").mkdir()
    write_beside(real, folder / "model", location="weights.bin")
    shutil.move(folder / "model/weights.bin", folder / "weights.bin")
    change_places(folder / "model/net.onnx", location="../weights.bin")


def onnx_with_data_at_an_absolute_path(real, folder):
    """Weights that are said to be at an absolute path."""
    write_beside(real, folder, location="weights.bin")
    change_places(folder / "net.onnx", location=str(folder.resolve() / "weights.bin"))


def onnx_with_data_in_a_folder_below(real, folder):
    """Weights that are said to be in data/weights.bin."""
    write_beside(real, folder, location="weights.bin")
    (folder / "data").mkdir()
    shutil.move(folder / "weights.bin", folder / "data/weights.bin")
    change_places(folder / "net.onnx", location="data/weights.bin")


def onnx_with_an_offset_beyond_the_file(real, folder):
    """Tensors that are said to start behind the end of the file."""
    write_beside(real, folder, location="weights.bin")
    change_places(folder / "net.onnx", offset="999999999")


def onnx_with_a_negative_offset(real, folder):
    """Tensors that are said to start before the file."""
    write_beside(real, folder, location="weights.bin")
    change_places(folder / "net.onnx", offset="-4096")


# ---- 2. heads ----


def onnx_ending_in_softmax(real, folder):
    """As Keras' classifiers are exported."""
    own_files.write_onnx(real.network, folder / "net.onnx", head="Softmax")
    return real.plain


def onnx_ending_in_softmax_with_channels_last(real, folder):
    """As tf2onnx writes Keras' classifiers: channels last, and a name for the probabilities."""
    graph = graph_of(real.network, folder, channels_last=True)
    last = graph.graph.output[0].name
    nodes = [helper.make_node("Softmax", [last], ["s"], axis=-1), helper.make_node("Identity", ["s"], ["dense_2"])]
    saved(with_tail(graph, nodes, {"dense_2": [10]}), folder)
    return real.plain


def onnx_ending_in_log_softmax(real, folder):
    """As networks are that were trained with the negative log likelihood."""
    headed(real, folder, helper.make_node("LogSoftmax", [LOGITS], ["answers"], axis=1))
    return real.plain


def onnx_ending_in_sigmoids(real, folder):
    """Ten probabilities that do not sum to 1."""
    headed(real, folder, helper.make_node("Sigmoid", [LOGITS], ["answers"]))
    return real.plain


def onnx_with_a_softmax_of_many_operators(real, folder):
    """A softmax as ReduceMax, Sub, Exp, ReduceSum and Div: nothing in the graph names it."""
    nodes = [
        helper.make_node("ReduceMax", [LOGITS], ["largest"], axes=[1], keepdims=1),
        helper.make_node("Sub", [LOGITS, "largest"], ["shifted"]),
        *softmax_of("shifted"),
    ]
    return write_softmax(real, folder, nodes)


def onnx_with_a_softmax_that_overflows(real, folder):
    """A softmax as Exp, ReduceSum and Div, which is no number where images are shown in another range."""
    return write_softmax(real, folder, softmax_of(LOGITS))


def softmax_of(name):
    """Nodes of a softmax written by hand."""
    return [
        helper.make_node("Exp", [name], ["powers"]),
        helper.make_node("ReduceSum", ["powers", "axis"], ["total"], keepdims=1),
        helper.make_node("Div", ["powers", "total"], ["answers"]),
    ]


def write_softmax(real, folder, nodes):
    """Write net.onnx with these nodes after its logits; plain code takes logarithms of what they give."""
    graph = with_tail(graph_of(real.network, folder), nodes, {"answers": [10]}, [("axis", np.array([1]))])
    saved(graph, folder)
    return replace(real.plain, logits=log_softmax(real.plain.logits))


def onnx_of_an_average_of_two(real, folder):
    """An ensemble: the mean of two softmaxes, before which no logits stand."""
    nodes = [
        helper.make_node("Mul", [LOGITS, "factor"], ["cooler"]),
        helper.make_node("Softmax", [LOGITS], ["first"], axis=1),
        helper.make_node("Softmax", ["cooler"], ["second"], axis=1),
        helper.make_node("Mean", ["first", "second"], ["answers"]),
    ]
    factor = [("factor", np.array(0.5, np.float32))]
    saved(with_tail(graph_of(real.network, folder), nodes, {"answers": [10]}, factor), folder)
    logits = real.plain.logits.astype(np.float64)
    mean = (np.exp(log_softmax(logits)) + np.exp(log_softmax(logits / 2))) / 2
    return replace(real.plain, logits=np.log(mean))


def log_softmax(logits):
    """Logarithms of the softmax of logits (n, K)."""
    return torch.log_softmax(torch.from_numpy(logits), dim=1).numpy()


def torchscript_ending_in_softmax(real, folder):
    """TorchScript of a network with nn.Softmax at its end."""
    whole = nn.Sequential(real.network, nn.Softmax(dim=1)).eval()
    torch.jit.trace(whole, torch.zeros(2, 3, 32, 32)).save(folder / "net.pt")
    return replace(real.plain, logits=log_softmax(real.plain.logits))


def exported_program_ending_in_softmax(real, folder):
    """A program of torch.export of a network with nn.Softmax at its end."""
    export_program(nn.Sequential(real.network, nn.Softmax(dim=1)).eval(), folder / "net.pt2")
    return real.plain


def export_program(network, path, dtype=torch.float32):
    """Save a program of torch.export that takes any number of images."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = ({0: torch.export.Dim("n")},)
        exported = torch.export.export(network, (torch.zeros(2, 3, 32, 32, dtype=dtype),), dynamic_shapes=shapes)
        torch.export.save(exported, path)


def python_file_ending_in_softmax(real, folder):
    """Weights, and a Python file whose network returns probabilities."""
    write_python(real, folder, "with_softmax", "return self.network(images).softmax(dim=1)")
    return replace(real.plain, logits=log_softmax(real.plain.logits))


def write_python(real, folder, module, *forward, network=None):
    """Write weights.pth and a Python file of this module, whose function `build` makes the network.

    `forward`: lines of a method that has `images` and `self.network`, whose last layer is self.network[9].
    """
    lines = "\n".join(f"        {line}" for line in forward)
    text = f"""{own_files.DEFINITION.lstrip()}

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = marabou()

    def forward(self, images):
{lines}


def build():
    return Whole()
"""
    (folder / f"{module}.py").write_text(text)
    weights = (network or real.network).state_dict()
    torch.save({f"network.{name}": value for name, value in weights.items()}, folder / "weights.pth")


def onnx_with_predicted_classes(real, folder):
    """As skl2onnx writes binary classifiers: the class that is predicted, and a probability."""
    two_folders(real, folder)
    graph = graph_of(real.binary, folder)
    nodes = [
        helper.make_node("Greater", [LOGITS, "zero"], ["second"]),
        helper.make_node("Cast", ["second"], ["label"], to=TensorProto.INT64),
        helper.make_node("Sigmoid", [LOGITS], ["probability"]),
    ]
    with_tail(graph, nodes, {"probability": [1]}, [("zero", np.zeros(1, np.float32))])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, ["n", 1])
    graph.graph.output.insert(0, label)
    saved(graph, folder)
    return real.plain_binary


def onnx_of_predicted_classes(real, folder):
    """A graph that ends in ArgMax."""
    node = helper.make_node("ArgMax", [LOGITS], ["label"], axis=1, keepdims=0)
    saved(with_tail(graph_of(real.network, folder), [node], {"label": []}, kind=TensorProto.INT64), folder)


def file_of_probabilities(real, folder):
    """An .npz of softmax outputs and labels, under the name `logits`."""
    probabilities = torch.softmax(torch.from_numpy(real.plain.logits), dim=1).numpy()
    np.savez(folder / "answers.npz", logits=probabilities, labels=real.labels)
    return replace(real.plain, logits=np.log(probabilities))


def csv_of_probabilities(real, folder):
    """A CSV file with a column of probabilities for each class, and the label's name."""
    probabilities = torch.softmax(torch.from_numpy(real.plain.logits), dim=1).numpy().astype(np.float64)
    rows = [[*row, CLASSES[label]] for row, label in zip(probabilities.tolist(), real.labels, strict=True)]
    write_csv(folder / "answers.csv", [[*CLASSES, "label"], *rows])
    return replace(real.plain, logits=np.log(probabilities))


def write_csv(path, rows, delimiter=","):
    """Write rows of cells."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


def onnx_of_logits(real, folder):
    """The plain network as an ONNX graph: nothing about it is unusual."""
    own_files.write_onnx(real.network, folder / "net.onnx")
    return real.plain


# ---- 3. one output ----


def write_binary(real, folder, *nodes, name=None, sizes=(1,)):
    two_folders(real, folder)
    graph = graph_of(real.binary, folder)
    last = graph.graph.output[0].name
    placed = [helper.make_node(kind, [last, *inputs], [name]) for kind, *inputs in nodes]
    weights = [("axes", np.array([1]))]
    saved(with_tail(graph, placed, {name or last: list(sizes)}, weights), folder)
    return real.plain_binary


def onnx_with_one_logit(real, folder):
    """A binary classifier with one logit (n, 1)."""
    return write_binary(real, folder)


def onnx_with_one_sigmoid(real, folder):
    """A binary classifier as Keras makes it: one sigmoid (n, 1)."""
    return write_binary(real, folder, ("Sigmoid",), name="probability")


def onnx_with_one_flat_logit(real, folder):
    """A binary classifier whose output has no second axis: (n,)."""
    return write_binary(real, folder, ("Squeeze", "axes"), name="logit", sizes=())


def onnx_with_one_logit_for_ten_classes(real, folder):
    """One logit, and ten class folders."""
    write_binary(real, folder)


def python_file_with_one_logit(real, folder):
    """A binary classifier in torch that returns `squeeze(1)`."""
    two_folders(real, folder)
    lines = [
        "logits = self.network(images)",
        "score = logits[:, [0, 1, 8, 9]].mean(dim=1) - logits[:, 2:8].mean(dim=1)",
        "return score",
    ]
    write_python(real, folder, "one_logit", *lines)
    return real.plain_binary


def python_file_with_one_sigmoid(real, folder):
    """A binary classifier in torch that returns one probability (n, 1)."""
    two_folders(real, folder)
    lines = [
        "logits = self.network(images)",
        "score = logits[:, [0, 1, 8, 9]].mean(dim=1) - logits[:, 2:8].mean(dim=1)",
        "return score.sigmoid().unsqueeze(1)",
    ]
    write_python(real, folder, "one_sigmoid", *lines)
    logit = torch.from_numpy(real.plain_binary.logits[:, 1])
    logits = torch.stack([nn.functional.logsigmoid(-logit), nn.functional.logsigmoid(logit)], dim=1).numpy()
    return replace(real.plain_binary, logits=logits)


def exported_program_with_one_sigmoid(real, folder):
    """A program of torch.export that ends in one sigmoid."""
    two_folders(real, folder)
    export_program(nn.Sequential(real.binary, nn.Sigmoid()).eval(), folder / "net.pt2")
    return real.plain_binary


def csv_of_one_probability(real, folder):
    """A CSV file with one probability, that of class 1, and labels 0 and 1."""
    logit = torch.from_numpy(real.plain_binary.logits[:, 1].astype(np.float64))
    cells = zip(torch.sigmoid(logit).tolist(), real.plain_binary.labels.tolist(), strict=True)
    write_csv(folder / "answers.csv", [["probability", "label"], *cells])
    logits = torch.stack([nn.functional.logsigmoid(-logit), nn.functional.logsigmoid(logit)], dim=1).numpy()
    return replace(real.plain_binary, logits=logits)


# ---- 4. several outputs ----


def onnx_with_features_first(real, folder):
    """Features (n, 64) before the logits (n, 10)."""
    saved(with_tail(graph_of(real.network, folder), [], {FEATURES: [64], LOGITS: [10]}), folder)
    return real.plain


def onnx_with_logits_and_probabilities(real, folder):
    """Logits and their softmax, both (n, 10)."""
    softmax = helper.make_node("Softmax", [LOGITS], ["probabilities"], axis=1)
    saved(with_tail(graph_of(real.network, folder), [softmax], {"probabilities": [10], LOGITS: [10]}), folder)
    return real.plain


def onnx_with_an_auxiliary_head(real, folder):
    """Two heads of ten logits, of which the second is right."""
    weights = [("aux", np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32))]
    aux = helper.make_node("MatMul", [FEATURES, "aux"], ["auxiliary"])
    saved(with_tail(graph_of(real.network, folder), [aux], {"auxiliary": [10], LOGITS: [10]}, weights), folder)
    return real.plain


def onnx_with_features_alone(real, folder):
    """A network cut before its last layer: two outputs, neither of ten columns."""
    saved(with_tail(graph_of(real.network, folder), [], {FEATURES: [64], "v6": [128]}), folder)


WITH_FEATURES = "features = self.network[:9](images)"


def python_file_with_a_tuple(real, folder):
    """A network that returns (logits, features), as MadryLab's do."""
    write_python(real, folder, "with_tuple", WITH_FEATURES, "return self.network[9](features), features")
    return real.plain


def python_file_with_a_dict(real, folder):
    """A network that returns a dict."""
    returned = 'return {"features": features, "logits": self.network[9](features)}'
    write_python(real, folder, "with_dict", WITH_FEATURES, returned)
    return real.plain


def python_file_with_an_object(real, folder):
    """A network that returns an object with .logits, as transformers' do."""
    lines = ["from types import SimpleNamespace", WITH_FEATURES]
    returned = "return SimpleNamespace(loss=None, logits=self.network[9](features), hidden_states=features)"
    write_python(real, folder, "with_object", *lines, returned)
    return real.plain


def python_file_with_an_auxiliary_head(real, folder):
    """A network that returns two tensors of ten columns, as Inception does in training; the second is right."""
    lines = [WITH_FEATURES, "return features[:, :10], self.network[9](features)"]
    write_python(real, folder, "with_auxiliary", *lines)
    return real.plain


class WithFeatures(nn.Module):
    """A network that returns its features beside its logits."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        """Features (n, 64) and logits (n, 10)."""
        features = self.network[:9](images)
        return features, self.network[9](features)


def torchscript_with_a_tuple(real, folder):
    """TorchScript of a network that returns features and logits."""
    torch.jit.trace(WithFeatures(real.network).eval(), torch.zeros(2, 3, 32, 32)).save(folder / "net.pt")
    return real.plain


def exported_program_with_a_tuple(real, folder):
    """A program of torch.export of a network that returns features and logits."""
    export_program(WithFeatures(real.network).eval(), folder / "net.pt2")
    return real.plain


# ---- 5. number types ----


def write_in_type(real, folder, kind):
    graph = graph_of(real.network, folder)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for tensor in graph.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))
    for value in (*graph.graph.input, *graph.graph.output):
        value.type.tensor_type.elem_type = kind
    saved(graph, folder)


def onnx_in_half_precision(real, folder):
    """Images, weights and logits in float16."""
    write_in_type(real, folder, TensorProto.FLOAT16)
    logits = answers_of_file(folder / "net.onnx", real.images.astype(np.float16))
    return replace(real.plain, logits=logits.astype(np.float32))


def onnx_with_weights_in_half_precision(real, folder):
    """Weights in float16 between images and logits in float32, as converters keep them."""
    write_in_type(real, folder, TensorProto.FLOAT16)
    graph = onnx.load(folder / "net.onnx")
    graph.graph.node[0].input[0] = "halved"
    graph.graph.node.insert(0, helper.make_node("Cast", ["images"], ["halved"], to=TensorProto.FLOAT16))
    graph.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    cast = helper.make_node("Cast", [LOGITS], ["logits"], to=TensorProto.FLOAT)
    saved(with_tail(graph, [cast], {"logits": [10]}), folder)
    return replace(real.plain, logits=answers_of_file(folder / "net.onnx", real.images))


def with_images_of(real, folder, kind, *scaling):
    """Write net.onnx for images of another type, which its first operators make float32."""
    graph = graph_of(real.network, folder)
    first = [helper.make_node("Cast", ["images"], ["cast"], to=TensorProto.FLOAT), *scaling]
    graph.graph.node[0].input[0] = first[-1].output[0]
    nodes = [*first, *graph.graph.node]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
    graph.graph.initializer.append(numpy_helper.from_array(np.array(255, np.float32), "white"))
    graph.graph.input[0].type.tensor_type.elem_type = kind
    saved(graph, folder)
    return real.plain


def onnx_for_double_images(real, folder):
    """Images in float64, as numpy has them by default."""
    return with_images_of(real, folder, TensorProto.DOUBLE)


def onnx_for_images_of_bytes(real, folder):
    """Images of 8 bits, which the graph divides by 255."""
    return with_images_of(real, folder, TensorProto.UINT8, helper.make_node("Div", ["cast", "white"], ["scaled"]))


def onnx_in_bfloat16(real, folder):
    """Images and weights in bfloat16, whose convolutions onnxruntime does not have on a CPU, but torch has."""
    write_in_type(real, folder, TensorProto.BFLOAT16)
    with torch.inference_mode():
        logits = deepcopy(real.network).bfloat16()(torch.from_numpy(real.images).bfloat16()).float().numpy()
    return replace(real.plain, logits=logits)


def in_type(network, dtype):
    """The network with weights that were rounded to a type, in float32."""
    rounded = deepcopy(network)
    for parameter in rounded.parameters():
        parameter.data = parameter.data.to(dtype).float()
    return rounded


def weights_in_half_precision(real, folder):
    """weights.pth saved after network.half()."""
    (folder / "halved.py").write_text(own_files.DEFINITION.lstrip())
    weights = {name: value.half() for name, value in real.network.state_dict().items()}
    torch.save(weights, folder / "weights.pth")
    return replace(real.plain, logits=answers(in_type(real.network, torch.float16), real.images))


def safetensors_in_bfloat16(real, folder):
    """weights.safetensors in bfloat16, as large networks are published."""
    (folder / "brain.py").write_text(own_files.DEFINITION.lstrip())
    save_file({name: value.bfloat16() for name, value in real.network.state_dict().items()}, folder / "net.safetensors")
    return replace(real.plain, logits=answers(in_type(real.network, torch.bfloat16), real.images))


def weights_in_double_precision(real, folder):
    """weights.pth saved after network.double()."""
    (folder / "doubled.py").write_text(own_files.DEFINITION.lstrip())
    torch.save({name: value.double() for name, value in real.network.state_dict().items()}, folder / "weights.pth")
    return real.plain


def torchscript_in_half_precision(real, folder):
    """TorchScript saved after network.half()."""
    halved = deepcopy(real.network).half()
    torch.jit.trace(halved, torch.zeros(2, 3, 32, 32, dtype=torch.float16)).save(folder / "net.pt")
    logits = answers(halved, real.images.astype(np.float16)).astype(np.float32)
    return replace(real.plain, logits=logits)


def exported_program_in_double_precision(real, folder):
    """A program of torch.export that takes float64."""
    doubled = deepcopy(real.network).double()
    export_program(doubled, folder / "net.pt2", torch.float64)
    return replace(real.plain, logits=answers(doubled, real.images.astype(np.float64)))


# ---- 6. names of the outputs ----


def write_reordered(real, folder):
    own_files.write_onnx(real.reordered, folder / "net.onnx")
    return real.plain


def names_in_lines(real, folder):
    """A name in each line."""
    (folder / "names.txt").write_text("\n".join(real.names_of_reordered))
    return write_reordered(real, folder)


def names_in_lines_with_numbers(real, folder):
    """Lines such as "0 airplane"."""
    lines = [f"{number} {name}" for number, name in enumerate(real.names_of_reordered)]
    (folder / "names.txt").write_text("\n".join(lines) + "\n")
    return write_reordered(real, folder)


def names_in_lines_with_numbers_and_colons(real, folder):
    """Lines such as "0: airplane", from Windows."""
    lines = [f"{number}: {name}" for number, name in enumerate(real.names_of_reordered)]
    (folder / "names.txt").write_bytes("\r\n".join(["\ufeff" + lines[0], *lines[1:]]).encode())
    return write_reordered(real, folder)


def names_behind_wnids(real, folder):
    """synset.txt, as many ImageNet models have it: "n01440764 tench"; the class folders are wnids."""
    lines = [f"{WNIDS[label]} {MEANINGS[label]}" for label in REORDERED]
    (folder / "synset.txt").write_text("\n".join(lines))
    write_class_folders(folder / "val", real.pixels, [WNIDS[label] for label in real.labels])
    return write_reordered(real, folder)


def names_in_a_json_list(real, folder):
    """A JSON list of names."""
    (folder / "names.json").write_text(json.dumps(real.names_of_reordered))
    return write_reordered(real, folder)


def names_in_json_by_number(real, folder):
    """JSON from numbers to names, sorted as text."""
    by_number = {str(number): name for number, name in enumerate(real.names_of_reordered)}
    (folder / "names.json").write_text(json.dumps(by_number, sort_keys=True))
    return write_reordered(real, folder)


def names_in_json_by_name(real, folder):
    """JSON from names to numbers, as class_to_idx of torchvision's ImageFolder."""
    by_name = {name: number for number, name in enumerate(real.names_of_reordered)}
    (folder / "class_to_idx.json").write_text(json.dumps(by_name, sort_keys=True))
    return write_reordered(real, folder)


def names_in_a_config(real, folder):
    """config.json of transformers beside an ONNX file: id2label and label2id among other keys."""
    names = real.names_of_reordered
    about = {
        "model_type": "resnet",
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    (folder / "config.json").write_text(json.dumps(about))
    return write_reordered(real, folder)


def names_as_keras_has_them(real, folder):
    """imagenet_class_index.json: numbers to wnid and name; the class folders are wnids."""
    index = {str(number): [WNIDS[label], MEANINGS[label].replace(" ", "_")] for number, label in enumerate(REORDERED)}
    (folder / "class_index.json").write_text(json.dumps(index))
    write_class_folders(folder / "val", real.pixels, [WNIDS[label] for label in real.labels])
    return write_reordered(real, folder)


def names_in_yaml_list(real, folder):
    """data.yaml of YOLO with a list of names."""
    names = ", ".join(real.names_of_reordered)
    (folder / "data.yaml").write_text(f"path: ../cifar\nnc: 10\nnames: [{names}]\n")
    return write_reordered(real, folder)


def names_in_yaml_by_number(real, folder):
    """data.yaml of YOLO with names by number."""
    lines = "".join(f"  {number}: {name}\n" for number, name in enumerate(real.names_of_reordered))
    (folder / "data.yaml").write_text(f"nc: 10\nnames:\n{lines}")
    return write_reordered(real, folder)


def names_in_csv(real, folder):
    """CSV of index and name, with a header."""
    write_csv(folder / "names.csv", [["index", "name"], *enumerate(real.names_of_reordered)])
    return write_reordered(real, folder)


def names_in_csv_without_header(real, folder):
    """CSV of name and index, in no order and without a header."""
    rows = [[name, number] for number, name in enumerate(real.names_of_reordered)]
    write_csv(folder / "names.csv", sorted(rows))
    return write_reordered(real, folder)


def a_name_too_few(real, folder):
    """Nine names for ten outputs."""
    (folder / "names.txt").write_text("\n".join(real.names_of_reordered[:9]))
    write_reordered(real, folder)


def a_name_twice(real, folder):
    """Two outputs of one name."""
    names = real.names_of_reordered
    (folder / "names.txt").write_text("\n".join([*names[:9], names[0]]))
    write_reordered(real, folder)


def a_number_twice(real, folder):
    """JSON from names to numbers in which two names have one number."""
    by_name = {name: min(number, 8) for number, name in enumerate(real.names_of_reordered)}
    (folder / "names.json").write_text(json.dumps(by_name))
    write_reordered(real, folder)


def numbers_that_are_names_and_places(real, folder):
    """Class folders 0 to 9, and a list that calls output 0 by the number 3."""
    (folder / "names.json").write_text(json.dumps([str(label) for label in REORDERED]))
    write_class_folders(folder / "numbered", real.pixels, [str(label) for label in real.labels])
    write_reordered(real, folder)


def numbers_in_json_that_fit_two_orders(real, folder):
    """JSON from numbers to numbers, which may be read in either direction."""
    (folder / "names.json").write_text(json.dumps({str(number): label for number, label in enumerate(REORDERED)}))
    write_class_folders(folder / "numbered", real.pixels, [str(label) for label in real.labels])
    write_reordered(real, folder)


def outputs_in_an_unstated_order(real, folder):
    """A network with its outputs in another order, whose names nobody states."""
    write_reordered(real, folder)


def frogs_and_ships(real, folder):
    """Images of two classes for a network of ten."""
    rows = np.flatnonzero(np.isin(real.labels, (6, 8)))
    write_class_folders(folder / "two", real.pixels[rows], [CLASSES[label] for label in real.labels[rows]])
    names_in_lines(real, folder)
    return real.plain.of(rows, (6, 8))


def animals_as_the_first_classes(real, folder):
    """Images of six classes for a network of ten whose names nobody states."""
    rows = np.flatnonzero(~np.isin(real.labels, VEHICLES))
    write_class_folders(folder / "animals", real.pixels[rows], [CLASSES[label] for label in real.labels[rows]])
    own_files.write_onnx(real.network, folder / "net.onnx")


def ten_of_a_thousand(real, folder):
    """A network with ImageNet's 1,000 outputs, and folders of ten of its classes, by their wnids."""
    wide = nn.Linear(10, 1000)
    with torch.no_grad():
        wide.weight.zero_()
        wide.weight[:10] = torch.eye(10)
        wide.bias.fill_(-20)
        wide.bias[:10] = 0
    graph = graph_of(nn.Sequential(*real.network, wide), folder)
    saved(with_tail(graph, [], {graph.graph.output[0].name: [1000]}), folder)
    write_class_folders(folder / "val", real.pixels, [WNIDS[label] for label in real.labels])
    return real.plain


def a_class_folder_without_images(real, folder):
    """Ten class folders, of which that of the trucks is empty."""
    rows = np.flatnonzero(real.labels != 9)
    write_class_folders(folder / "pictures", real.pixels[rows], [CLASSES[label] for label in real.labels[rows]])
    (folder / "pictures/truck").mkdir()
    own_files.write_onnx(real.network, folder / "net.onnx")
    return real.plain.of(rows)


def class_folders_by_number(real, folder):
    """Class folders 0 to 9."""
    write_class_folders(folder / "numbered", real.pixels, [str(label) for label in real.labels])
    return onnx_of_logits(real, folder)


# ---- 7. arrays ----


def write_arrays(real, folder, **arrays):
    np.savez(folder / "data.npz", **arrays)
    return onnx_of_logits(real, folder)


def arrays_images_and_labels(real, folder):
    """.npz of images and labels."""
    return write_arrays(real, folder, images=real.pixels, labels=real.labels)


def arrays_imgs_and_targets(real, folder):
    """.npz of imgs and targets, channels last."""
    return write_arrays(real, folder, imgs=real.pixels.transpose(0, 2, 3, 1), targets=real.labels)


def arrays_data_and_label(real, folder):
    """.npz of data and label."""
    return write_arrays(real, folder, data=real.pixels, label=real.labels)


def arrays_for_training_and_test(real, folder):
    """.npz of x_train, y_train, x_test and y_test, as Keras' are; the training labels are wrong here."""
    wrong = (real.labels[:50] + 1) % 10
    parts = {"x_train": real.pixels[:50], "y_train": wrong, "x_test": real.pixels, "y_test": real.labels}
    return write_arrays(real, folder, **parts)


def arrays_as_medmnist_has_them(real, folder):
    """.npz of train_images, train_labels, val_images, ..., with labels (n, 1)."""
    arrays = {}
    for part, shift in (("train", 1), ("val", 2), ("test", 0)):
        arrays[f"{part}_images"] = real.pixels.transpose(0, 2, 3, 1)
        arrays[f"{part}_labels"] = ((real.labels + shift) % 10)[:, None].astype(np.uint8)
    return write_arrays(real, folder, **arrays)


def labels_in_a_column(real, folder):
    """Labels (n, 1), as Keras' CIFAR-10 has them."""
    return write_arrays(real, folder, x=real.pixels, y=real.labels[:, None])


def labels_one_hot(real, folder):
    """Labels (n, 10), one-hot."""
    return write_arrays(real, folder, x=real.pixels, y=np.eye(10, dtype=np.float32)[real.labels])


def labels_nearly_one_hot(real, folder):
    """Labels (n, 10) smoothed or mixed: no row has a single 1."""
    smoothed = np.eye(10)[real.labels] * 0.9 + 0.01
    write_arrays(real, folder, x=real.pixels, y=smoothed)


def floats_up_to_255(real, folder):
    """Pixels as floats from 0 to 255, channels last."""
    return write_arrays(real, folder, x=real.pixels.transpose(0, 2, 3, 1).astype(np.float32), y=real.labels)


def floats_from_minus_one(real, folder):
    """Pixels from -1 to 1, which were normalised before they were saved."""
    return write_arrays(real, folder, x=real.images * 2 - 1, y=real.labels)


def npy_files_in_a_folder(real, folder):
    """A folder with x.npy and y.npy."""
    (folder / "arrays").mkdir()
    np.save(folder / "arrays/x.npy", real.pixels)
    np.save(folder / "arrays/y.npy", real.labels)
    return onnx_of_logits(real, folder)


def npy_files_of_test_data(real, folder):
    """A folder with test_images.npy, test_labels.npy and their like for training."""
    (folder / "arrays").mkdir()
    for part, labels in (("train", (real.labels + 1) % 10), ("test", real.labels)):
        np.save(folder / f"arrays/{part}_images.npy", real.pixels)
        np.save(folder / f"arrays/{part}_labels.npy", labels)
    return onnx_of_logits(real, folder)


def arrays_of_two_kinds(real, folder):
    """.npz with clean and noisy images and one array of labels, which no usual name tells apart."""
    noise = np.random.default_rng(0).integers(0, 40, real.pixels.shape)
    noisy = np.clip(real.pixels + noise, 0, 255).astype(np.uint8)
    return write_arrays(real, folder, clean=real.pixels, noisy=noisy, truth=real.labels)


def arrays_of_unequal_length(real, folder):
    """One label fewer than images."""
    write_arrays(real, folder, images=real.pixels, labels=real.labels[:-1])


def array_of_images_without_labels(real, folder):
    """Images alone."""
    write_arrays(real, folder, images=real.pixels)


def labels_as_text_numbers(real, folder):
    """Labels '0' to '9' as text."""
    return write_arrays(real, folder, x=real.pixels, y=real.labels.astype(str))


def labels_as_objects(real, folder):
    """Labels as Python objects, which numpy pickles."""
    write_arrays(real, folder, x=real.pixels, y=np.array([CLASSES[label] for label in real.labels], dtype=object))


def arrays_beside_objects(real, folder):
    """.npz of images and labels, with a dict of notes beside them, which numpy pickles."""
    notes = np.array({"camera": "none"}, dtype=object)
    return write_arrays(real, folder, x=real.pixels, y=real.labels, notes=notes)


def npy_files_beside_objects(real, folder):
    """The same as .npy files of a folder."""
    own_files.write_onnx(real.network, folder / "net.onnx")
    (folder / "arrays").mkdir()
    np.save(folder / "arrays/images.npy", real.pixels)
    np.save(folder / "arrays/labels.npy", real.labels)
    np.save(folder / "arrays/notes.npy", np.array([{}] * len(real.labels), dtype=object))
    return real.plain


# ---- 8. CSV ----


def write_listed(real, folder, *below, ending=".png", skip=()):
    """Write data/, with flat images in the folders `below` and names of theirs without the ending."""
    for name in below:
        (folder / "data" / name).mkdir(parents=True, exist_ok=True)
        for row, picture in enumerate(real.pixels):
            if row not in skip:
                path = folder / "data" / name / f"img{row:04d}{ending}"
                Image.fromarray(picture.transpose(1, 2, 0)).save(path)
    own_files.write_onnx(real.network, folder / "net.onnx")
    return [f"img{row:04d}" for row in range(len(real.labels))], [CLASSES[label] for label in real.labels]


def csv_as_kaggle_has_it(real, folder):
    """labels.csv of id and label without endings, images in train/."""
    ids, names = write_listed(real, folder, "train")
    write_csv(folder / "data/labels.csv", [["id", "label"], *zip(ids, names, strict=True)])
    return real.plain


def csv_with_names_without_ending_in_the_same_folder(real, folder):
    """labels.csv of id and label without endings beside the images."""
    ids, names = write_listed(real, folder, ".")
    write_csv(folder / "data/labels.csv", [["id", "label"], *zip(ids, names, strict=True)])
    return real.plain


def csv_with_two_files_for_a_name(real, folder):
    """Names without endings, one of which fits a .png and a .jpg."""
    ids, names = write_listed(real, folder, ".")
    Image.new("RGB", (32, 32)).save(folder / "data/img0007.jpg")
    write_csv(folder / "data/labels.csv", [["id", "label"], *zip(ids, names, strict=True)])


def csv_with_an_image_twice(real, folder):
    """The first image once more, under another label."""
    ids, names = write_listed(real, folder, ".")
    other = "ship" if names[0] != "ship" else "frog"
    write_csv(folder / "data/labels.csv", [["id", "label"], *zip(ids, names, strict=True), [ids[0], other]])


def csv_with_a_missing_image(real, folder):
    """Names without endings, one of which fits no file."""
    ids, names = write_listed(real, folder, ".", skip=(7,))
    write_csv(folder / "data/labels.csv", [["id", "label"], *zip(ids, names, strict=True)])


def csv_with_the_index_of_pandas(real, folder):
    """DataFrame.to_csv as it is called by default: a first column without a name counts the rows."""
    ids, names = write_listed(real, folder, ".")
    rows = [[number, f"{name}.png", label] for number, (name, label) in enumerate(zip(ids, names, strict=True))]
    write_csv(folder / "data/labels.csv", [["", "path", "label"], *rows])
    return real.plain


def csv_with_an_unnamed_column_of_data(real, folder):
    """DataFrame.to_csv with names of files as the index: the first column has no name, and counts nothing."""
    ids, names = write_listed(real, folder, ".")
    write_csv(folder / "data/labels.csv", [["", "label"], *zip((f"{name}.png" for name in ids), names, strict=True)])
    return real.plain


def csv_beside_one_folder_of_images(real, folder):
    """Paths that are relative to images/, which stands beside the CSV file."""
    ids, names = write_listed(real, folder, "images")
    write_csv(folder / "data/labels.csv", [["filename", "label"], *zip((f"{n}.png" for n in ids), names, strict=True)])
    return real.plain


def csv_beside_two_folders_that_fit(real, folder):
    """Two folders that hold every file of the list, small and large images, say."""
    ids, names = write_listed(real, folder, "original", "sharpened")
    write_csv(folder / "data/labels.csv", [["filename", "label"], *zip((f"{n}.png" for n in ids), names, strict=True)])
    return real.plain


def csv_with_semicolons(real, folder):
    """A list as spreadsheets write it where the comma separates decimals."""
    ids, names = write_listed(real, folder, ".")
    rows = [["path", "label"], *([f"{name}.png", label] for name, label in zip(ids, names, strict=True))]
    write_csv(folder / "data/labels.csv", rows, delimiter=";")
    return real.plain


def csv_with_labels_in_numbers(real, folder):
    """Labels as numbers 0 to 9."""
    ids, _ = write_listed(real, folder, ".")
    rows = [[f"{name}.png", label] for name, label in zip(ids, real.labels, strict=True)]
    write_csv(folder / "data/labels.csv", [["path", "label"], *rows])
    return real.plain


def csv_leading_out_of_its_folder(real, folder):
    """A path with `..` in the list."""
    ids, names = write_listed(real, folder, ".")
    shutil.copy(folder / "data/img0000.png", folder / "img0000.png")
    rows = [[f"{name}.png", label] for name, label in zip(ids, names, strict=True)]
    rows[0][0] = "../img0000.png"
    write_csv(folder / "data/labels.csv", [["path", "label"], *rows])


# ---- 9. orientation ----

TURNED = 6
"""EXIF orientation of a photograph that is stored turned a quarter to the left."""


def orientation_tag(number):
    """EXIF data with this orientation and nothing else."""
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


def write_photographs(real, folder, rows, *, turned, ending=".jpg", **options):
    """Write photos/, of which the images `rows` have the tag; returns pixels as stored, and as the tag turns them."""
    stored, upright = [], []
    for row, (pixels, label) in enumerate(zip(real.pixels, real.labels, strict=True)):
        picture = pixels.transpose(1, 2, 0)
        tagged = row in rows
        if tagged and turned:
            picture = np.rot90(picture)
        inside = folder / "photos" / CLASSES[label]
        inside.mkdir(parents=True, exist_ok=True)
        path = inside / f"{row:04d}{ending}"
        tag = {"exif": orientation_tag(TURNED)} if tagged else {}
        Image.fromarray(np.ascontiguousarray(picture)).save(path, **tag, **options)
        with Image.open(path) as image:
            stored.append(np.asarray(image.convert("RGB")))
            upright.append(np.asarray(ImageOps.exif_transpose(image).convert("RGB")))
    own_files.write_onnx(real.network, folder / "net.onnx")
    return stored, upright


def plain_pictures(real, pictures):
    """What the network answers for pictures (H, W, 3) uint8."""
    images = np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32) / 255
    return Plain(images, real.labels, answers(real.network, images))


def photographs_that_are_turned(real, folder):
    """JPEG of which 120 are stored turned, as cameras do."""
    _, upright = write_photographs(real, folder, range(120), turned=True, quality=95)
    return plain_pictures(real, upright)


def photographs_with_a_stale_tag(real, folder):
    """PNG that a tool turned upright, leaving the tag."""
    stored, _ = write_photographs(real, folder, range(120), turned=False, ending=".png")
    return plain_pictures(real, stored)


def three_photographs_that_are_turned(real, folder):
    """Three turned images: too few to tell what is right."""
    stored, _ = write_photographs(real, folder, range(3), turned=True, ending=".png")
    return plain_pictures(real, stored)


def three_photographs_to_be_turned(real, folder):
    """The same, where the user says what is right."""
    _, upright = write_photographs(real, folder, range(3), turned=True, ending=".png")
    return plain_pictures(real, upright)


# ---- 11. names, copies, sizes, values ----

SECTIONS_AS_A_NAME = "pictures\nintervals:\n  confidence: 0.5\n# "
ENDS_OF_LINES_AS_A_NAME = "pic\x85tures\u2028intervals: 0\rx"


def link_images(real, folder, name):
    """The class folders under another name."""
    shutil.copytree(real.folder / "images", folder / name, copy_function=os.link)
    return onnx_of_logits(real, folder)


def folder_with_line_breaks_in_its_name(real, folder):
    """A folder whose name would be sections of a configuration."""
    return link_images(real, folder, SECTIONS_AS_A_NAME)


def folder_with_other_ends_of_lines_in_its_name(real, folder):
    """NEL, U+2028 and a carriage return in a name."""
    return link_images(real, folder, ENDS_OF_LINES_AS_A_NAME)


def folder_with_a_blank_and_an_accent(real, folder):
    """A name that is merely unusual."""
    return link_images(real, folder, "mes données (1)")


def folder_with_braces_in_its_name(real, folder):
    """A name that Snakemake would take for a wildcard."""
    link_images(real, folder, "pictures{1}")


def image_whose_name_is_no_utf8(real, folder):
    """A file name in Latin-1."""
    onnx_of_logits(real, folder)
    shutil.copytree(real.folder / "images", folder / "latin")
    first = sorted((folder / "latin/cat").iterdir())[0]
    first.rename(first.with_name(os.fsdecode(b"caf\xe9.png")))


def same_pixels_under_two_labels(real, folder):
    """An image stored again under another label, with a comment in the PNG."""
    link_images(real, folder, "mixed")
    comment = PngImagePlugin.PngInfo()
    comment.add_text("Comment", "copied")
    first = sorted((folder / "mixed/cat").iterdir())[0]
    with Image.open(first) as image:
        image.save(folder / "mixed/dog/copy.png", pnginfo=comment)


def same_file_under_two_labels(real, folder):
    """An image copied byte by byte under another label."""
    link_images(real, folder, "mixed")
    first = sorted((folder / "mixed/cat").iterdir())[0]
    shutil.copy(first, folder / "mixed/dog/copy.png")


def same_pixels_under_one_label(real, folder):
    """Copies of one cat in other compressions."""
    onnx_of_logits(real, folder)
    shutil.copytree(real.folder / "images", folder / "copies")
    row = int(np.flatnonzero(real.labels == 3)[0])
    for level in (0, 1, 9):
        picture = Image.fromarray(real.pixels[row].transpose(1, 2, 0))
        picture.save(folder / f"copies/cat/copy{level}.png", compress_level=level)
    rows = [*range(len(real.labels)), row, row, row]
    return real.plain.of(rows)


def picture_of_150_megapixels(real, folder):
    """A few kilobytes of PNG that unpack to 150 million pixels."""
    link_images(real, folder, "large")
    Image.new("1", (15_000, 10_000)).save(folder / "large/cat/poster.png")


def arrays_that_declare_more_than_they_hold(real, folder):
    """.npz whose header declares 1.5 TB."""
    onnx_of_logits(real, folder)
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (10000000, 3, 224, 224), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(1 << 16)
    with zipfile.ZipFile(folder / "data.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", content)
        with file.open("y.npy", "w") as inside:
            np.lib.format.write_array(inside, real.labels)


def transformers_with_a_kernel_from_the_hub(real, folder):
    """config.json that names an attention kernel of somebody else."""
    del real
    (folder / "vit").mkdir()
    about = {
        "model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16, "num_labels": 10, "architectures": ["ViTForImageClassification"],
        "_attn_implementation": "kernels-community/flash-attn3", "attn_implementation": "kernels-community/flash-attn3",
    }  # fmt: skip
    (folder / "vit/config.json").write_text(json.dumps(about))
    save_file({"classifier.bias": torch.zeros(10)}, folder / "vit/model.safetensors")


def logits_beyond_float32(real, folder):
    """A logit of 1e39 in a CSV file."""
    rows = [[*row, CLASSES[label]] for row, label in zip(real.plain.logits.tolist(), real.labels, strict=True)]
    rows[5][2] = "1e39"
    write_csv(folder / "answers.csv", [[*CLASSES, "label"], *rows])


def logits_that_are_all_equal(real, folder):
    """A model that answers nothing."""
    np.savez(folder / "answers.npz", logits=np.zeros_like(real.plain.logits), labels=real.labels)


def logits_that_are_always_right(real, folder):
    """A perfect model whose scores saturate."""
    logits = 200 * np.eye(10, dtype=np.float32)[real.labels]
    np.savez(folder / "answers.npz", logits=logits, labels=real.labels)
    return replace(real.plain, logits=logits)


def logits_with_an_infinite_value(real, folder):
    """An overflow of half precision."""
    logits = real.plain.logits.copy()
    logits[4, 2] = np.inf
    np.savez(folder / "answers.npz", logits=logits, labels=real.labels)


# ---- neighbours ----


def pickled_network(real, folder):
    """torch.save(network): code, not weights."""
    torch.save(real.network, folder / "net.pth")


def keras_file(real, folder):
    """A .keras file, which has to be exported."""
    del real
    (folder / "net.keras").write_bytes(b"PK\x03\x04")


def page_in_place_of_a_model(real, folder):
    """The page of a download in place of the file."""
    del real
    (folder / "net.onnx").write_text("<!DOCTYPE html><html><body>Sign in</body></html>")


def pointer_in_place_of_a_model(real, folder):
    """A pointer of Git LFS in place of the file."""
    del real
    (folder / "net.onnx").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456\n"
    )


def folders_for_training_and_test(real, folder):
    """train/ and test/ with class folders in each."""
    link_images(real, folder, "parts/train")
    shutil.copytree(real.folder / "images", folder / "parts/test", copy_function=os.link)


def network_that_is_compiled(real, folder):
    """Weights saved from torch.compile(nn.DataParallel(network))."""
    (folder / "wrapped.py").write_text(own_files.DEFINITION.lstrip())
    weights = {f"_orig_mod.module.{name}": value for name, value in real.network.state_dict().items()}
    torch.save({"epoch": 3, "state_dict": weights}, folder / "weights.pth")
    return real.plain
