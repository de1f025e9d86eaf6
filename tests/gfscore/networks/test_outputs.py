"""Logits of networks that return something else: a softmax or sigmoid, one number, or several arrays."""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.networks import onnx_models, programs
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier
from gfscore.networks.inference import extract_logits
from gfscore.networks.model_source import model_sources
from gfscore.networks.onnx_graphs import onnx_head
from gfscore.networks.outputs import HEADS, TOLERANCE, Head, Output, SeveralOutputs, log_softmax, require_head
from gfscore.networks.wrappers import tensors_in
from gfscore.statistics.logits import FLOOR
from helpers import own_files

IMAGES = np.random.default_rng(0).random((5, 3, 32, 32), dtype=np.float32)
MODEL = {"dataset": "z", "threat": "none", "model": "M"}
ONNX_HEADS = {"softmax": "Softmax", "log_softmax": "LogSoftmax", "sigmoid": "Sigmoid"}

DEFINITION = '''
from collections import namedtuple
from types import SimpleNamespace

import torch
from torch import nn

Pair = namedtuple("Pair", ["scores", "features"])


class Returning(nn.Module):
    """The network `body`, and what `end` makes of its logits and features."""

    def __init__(self, end, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU(), nn.Flatten())
        self.last = nn.Linear(256, classes)
        self.end = end

    def forward(self, images):
        features = self.body(images)
        return self.end(self.last(features), features)


ENDS = {
    "logits": lambda z, features: z,
    "softmax": lambda z, features: z.softmax(1),
    "sigmoid": lambda z, features: z.sigmoid(),
    "flat": lambda z, features: z[:, 0],
    "flat_sigmoid": lambda z, features: z[:, 0].sigmoid(),
    "tuple": lambda z, features: (features, z),
    "dict": lambda z, features: {"features": features, "scores": z, "note": "text"},
    "mapping": lambda z, features: {"features": features, "scores": z},
    "named": lambda z, features: Pair(z, features),
    "object": lambda z, features: SimpleNamespace(logits=z, hidden_states=None),
    "nested": lambda z, features: (features, {"head": [z, z]}),
    "twice": lambda z, features: (z, -z),
}


def returning(end="logits", classes=4):
    return Returning(ENDS[end], classes)
'''


@pytest.fixture(autouse=True)
def architectures(tmp_path, monkeypatch):
    folder = tmp_path / "architectures"
    folder.mkdir()
    (folder / "mine.py").write_text(DEFINITION)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))


def made_network(end, classes):
    """A network with fixed weights, and the plain one of its logits."""
    space = {}
    exec(DEFINITION, space)
    torch.manual_seed(0)
    network = space["returning"](end, classes).eval()
    plain = nn.Sequential(*network.body, network.last).eval()
    # Logits far enough from each other that a softmax matters.
    with torch.no_grad():
        network.last.weight *= 10
    return network, plain


def logits_of(plain):
    with torch.inference_mode():
        return plain(torch.from_numpy(IMAGES)).numpy()


def saved(folder, kind, end, classes=4):
    """Settings of a network in a file of a kind, and its plain network."""
    network, plain = made_network(end, classes)
    path = folder / {"python": "m.pth", "script": "m.pt", "export": "m.pt2"}[kind]
    example = torch.zeros(2, 3, 32, 32)
    if kind == "python":
        torch.save(network.state_dict(), path)
        arguments = {"end": end, "classes": classes}
        return {"source": "torch", "path": str(path), "architecture": "architectures.mine:returning",
                "arguments": arguments}, plain  # fmt: skip
    if kind == "script":
        torch.jit.trace(network, example, strict=False).save(path)
    else:
        shapes = ({0: torch.export.Dim("n")},)
        torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), path)
    return {"source": "program", "path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}, plain


def saved_onnx(folder, classes=4, **changes):
    _, plain = made_network("logits", classes)
    path = folder / "m.onnx"
    own_files.write_onnx(plain, path, **changes)
    return {"source": "onnx", "path": str(path), "gradients": True}, plain


def opened(entry, **settings):
    checked = model_sources()[entry["source"]].settings.model_validate(entry | settings).explicit()
    manifest = describe_checkpoint(checked, identity=MODEL, record=False)
    return open_classifier(manifest, image_shape=(3, 32, 32), classes=4)


def assert_same(classifier, expected, plain, *, shift=False):
    """Logits, and the gradient of a difference of two of them, are those of the plain network."""
    logits = classifier.logits(IMAGES)
    if shift:
        logits, expected = (values - values[:, :1] for values in (logits, expected))
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    images = torch.from_numpy(IMAGES).requires_grad_()
    wanted = plain(images)
    wanted = (wanted[:, 1] - wanted[:, 0]).sum() if wanted.shape[1] > 1 else wanted.sum()
    values = classifier.network(images)
    assert values.shape == logits.shape
    of_plain, of_classifier = (
        torch.autograd.grad(value, images)[0] for value in (wanted, (values[:, 1] - values[:, 0]).sum())
    )
    torch.testing.assert_close(of_classifier, of_plain, rtol=1e-3, atol=1e-4)


# ---- heads ----


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("changes", [{}, {"batch": 1}, {"batch": 3, "channels_last": True}])
def test_the_logits_before_the_head_of_an_onnx_graph_are_those_of_the_network(tmp_path, head, changes):
    entry, plain = saved_onnx(tmp_path, head=ONNX_HEADS[head], **changes)
    assert onnx_models.head_of(entry, entry["path"]) == head
    classifier = opened(entry, head=head)
    assert_same(classifier, logits_of(plain), plain)
    np.testing.assert_allclose(classifier.original.run(IMAGES), logits_of(plain), rtol=1e-4, atol=1e-4)
    assert opened(entry, head=head, gradients=False).network is None
    assert head in classifier.outputs


@pytest.mark.parametrize("head", ["softmax", "sigmoid"])
def test_the_logits_before_the_head_of_a_program_are_those_of_the_network(tmp_path, head):
    entry, plain = saved(tmp_path, "export", head)
    assert programs.head_of({**entry, "image_shape": [3, 32, 32]}, entry["path"]) == head
    assert_same(opened(entry, head=head), logits_of(plain), plain)


def test_a_program_of_a_fixed_batch_gives_the_logits_before_its_head_too(tmp_path):
    network, plain = made_network("softmax", 4)
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(network, (torch.zeros(3, 3, 32, 32),)), path)
    entry = {"source": "program", "path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}
    assert_same(opened(entry, head="softmax"), logits_of(plain), plain)


def test_graphs_of_logits_have_no_head(tmp_path):
    entry, _ = saved_onnx(tmp_path)
    assert onnx_models.head_of(entry, entry["path"]) is None
    for kind in ("export", "script"):
        entry, _ = saved(tmp_path, kind, "logits")
        assert programs.head_of({**entry, "image_shape": [3, 32, 32]}, entry["path"]) is None


@pytest.mark.parametrize("head", ["sigmoid", "log_softmax"])
def test_a_head_that_the_graph_does_not_end_in_is_refused(tmp_path, head):
    onnx_entry, _ = saved_onnx(tmp_path, head="Softmax")
    program, _ = saved(tmp_path, "export", "softmax")
    for entry in (onnx_entry, program):
        with pytest.raises(InputError, match=rf"m\.(onnx|pt2): `head` is {head}"):
            opened(entry, head=head)


def ending_in(path, nodes, *, scale=1.0, **changes):
    """Write a graph of one linear layer whose result `z` these nodes turn into `scores`."""
    weights = np.random.default_rng(0).normal(scale=scale, size=(3072, 4)).astype(np.float32)
    constants = [numpy_helper.from_array(weights, "weights")]
    constants += [numpy_helper.from_array(value, name) for name, value in changes.items()]
    first = [helper.make_node("Flatten", ["images"], ["flat"]), helper.make_node("MatMul", ["flat", "weights"], ["z"])]
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32])
    made = helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)
    graph = helper.make_graph([*first, *nodes], "network", [given], [made], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return {"source": "onnx", "path": str(path)}, IMAGES.reshape(5, -1) @ weights


def test_a_head_before_a_change_of_shape_is_seen(tmp_path):
    nodes = [
        helper.make_node("Unsqueeze", ["z", "axes"], ["four"]),
        helper.make_node("Softmax", ["four"], ["p"], axis=1),
        helper.make_node("Identity", ["p"], ["same"]),
        helper.make_node("Flatten", ["same"], ["scores"]),
    ]
    entry, expected = ending_in(tmp_path / "m.onnx", nodes, axes=np.array([2, 3]))
    assert onnx_models.head_of(entry, entry["path"]) == "softmax"
    for gradients in (False, True):
        logits = opened(entry, head="softmax", gradients=gradients).logits(IMAGES)
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-3)


def test_a_head_that_does_not_give_back_the_output_is_refused(tmp_path):
    nodes = [
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
        helper.make_node("Cast", ["p"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Cast", ["whole"], ["scores"], to=TensorProto.FLOAT),
    ]
    entry, _ = ending_in(tmp_path / "m.onnx", nodes, scale=0.01)
    with pytest.raises(InputError, match=r"m\.onnx: its softmax, applied .* differs .*export the network without"):
        opened(entry, head="softmax")


@pytest.mark.parametrize(
    "nodes",
    [
        # over the images of a batch
        [helper.make_node("Softmax", ["z"], ["scores"], axis=0)],
        # an average of two networks
        [
            helper.make_node("Softmax", ["z"], ["p"], axis=1),
            helper.make_node("Sigmoid", ["z"], ["q"]),
            helper.make_node("Mean", ["p", "q"], ["scores"]),
        ],
    ],
)
def test_what_is_no_head_is_none(tmp_path, nodes):
    entry, _ = ending_in(tmp_path / "m.onnx", nodes)
    assert onnx_head(onnx.load(entry["path"]), "scores") is None


@pytest.mark.parametrize("scale", [1, 1000])
def test_the_message_on_a_head_compares_numbers_of_one_scale(scale):
    def logits_and_output(images):
        logits = np.tile([0.0, -scale], (len(images), 1))
        return logits, log_softmax(logits) + 3 * scale * TOLERANCE["float32"]

    head = Head("log_softmax", logits_and_output, "float32")
    with pytest.raises(InputError, match="differs") as refused:
        require_head(head, IMAGES, where="m.onnx")
    difference, allowed = map(float, re.findall(r"\d\S*\d(?=[,;])", str(refused.value)))
    assert 2 * allowed < difference < 4 * allowed


# ---- probabilities alone ----


@pytest.mark.parametrize("kind", ["python", "script", "export"])
def test_logarithms_of_probabilities_differ_from_logits_by_a_number_for_each_image(tmp_path, kind):
    entry, plain = saved(tmp_path, kind, "softmax")
    classifier = opened(entry, allow_probabilities="logarithms")
    assert_same(classifier, logits_of(plain), plain, shift=True)
    np.testing.assert_allclose(np.exp(classifier.logits(IMAGES)).sum(axis=1), 1, rtol=1e-5)
    assert "logarithms" in classifier.outputs


def test_a_probability_of_zero_counts_as_the_smallest_number(tmp_path):
    nodes = [helper.make_node("Softmax", ["z"], ["p"], axis=1), helper.make_node("Round", ["p"], ["scores"])]
    entry, values = ending_in(tmp_path / "m.onnx", nodes)
    logits = opened(entry, allow_probabilities="logarithms").logits(IMAGES)
    expected = np.full((5, 4), np.log(FLOOR))
    expected[np.arange(5), values.argmax(axis=1)] = 0
    np.testing.assert_allclose(logits, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["python", "script"])
@pytest.mark.parametrize("end", ["logits", "sigmoid"])
def test_logarithms_are_taken_of_distributions_alone(tmp_path, kind, end):
    entry, _ = saved(tmp_path, kind, end)
    with pytest.raises(InputError, match=r"m\.pth?: row 0 .*no distribution"):
        opened(entry, allow_probabilities="logarithms")


# ---- one output ----


@pytest.mark.parametrize("kind", ["python", "script", "export", "onnx"])
def test_one_logit_is_that_of_the_second_of_two_classes(tmp_path, kind):
    entry, plain = saved_onnx(tmp_path, 1) if kind == "onnx" else saved(tmp_path, kind, "logits", 1)
    z = logits_of(plain)
    classifier = opened(entry)
    assert classifier.classes == 2
    assert_same(classifier, np.hstack([np.zeros_like(z), z]), plain)
    flipped = opened(entry, outputs=[1, 0])
    np.testing.assert_allclose(flipped.logits(IMAGES), np.hstack([z, np.zeros_like(z)]), atol=1e-5)


@pytest.mark.parametrize("kind", ["python", "script", "export"])
def test_one_number_per_image_is_one_logit(tmp_path, kind):
    entry, plain = saved(tmp_path, kind, "flat", 1)
    z = logits_of(plain)
    assert_same(opened(entry), np.hstack([np.zeros_like(z), z]), plain)


def test_one_sigmoid_of_a_graph_is_its_logit(tmp_path):
    entry, plain = saved_onnx(tmp_path, 1, head="Sigmoid")
    z = logits_of(plain)
    assert_same(opened(entry, head="sigmoid"), np.hstack([np.zeros_like(z), z]), plain)
    entry, plain = saved(tmp_path, "export", "flat_sigmoid", 1)
    assert_same(opened(entry, head="sigmoid"), np.hstack([np.zeros_like(z), z]), plain)


@pytest.mark.parametrize("end", ["sigmoid", "flat_sigmoid"])
def test_logarithms_of_one_sigmoid_are_those_of_both_classes(tmp_path, end):
    entry, plain = saved(tmp_path, "python", end, 1)
    z = logits_of(plain)
    classifier = opened(entry, allow_probabilities="logarithms")
    assert_same(classifier, np.hstack([np.zeros_like(z), z]), plain, shift=True)


# ---- several outputs ----


def test_one_whole_number_of_a_batch_is_no_prediction():
    assert Output("classes", 0, (5,), whole_numbers=True).predicts_classes
    assert Output("classes", 0, (5, 1), whole_numbers=True).predicts_classes
    assert not Output("step", 0, (), whole_numbers=True).predicts_classes


def test_outputs_are_named_with_their_shapes():
    shapes = {(): "x ()", (2,): "x (n,)", (2, 3): "x (n, 3)", (2, 3, 4): "x (n, 3, 4)"}
    assert {shape: str(Output("x", 0, shape)) for shape in shapes} == shapes


SEVERAL = {
    "python": {"tuple": ("1", 1), "dict": ("scores", 1), "named": ("scores", 0), "object": ("logits", 0),
               "nested": ("1.head.0", 1)},
    "script": {"tuple": ("1", 1), "named": ("0", 0)},
    "export": {"tuple": ("1", 1), "mapping": ("scores", 1), "nested": ("1.head.0", 1)},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "end"), [(kind, end) for kind, ends in SEVERAL.items() for end in ends])
def test_an_output_is_named_or_counted(tmp_path, kind, end):
    name, place = SEVERAL[kind][end]
    entry, plain = saved(tmp_path, kind, end)
    for output in (name, place):
        assert_same(opened(entry, output=output), logits_of(plain), plain)


def test_an_output_of_an_onnx_graph_is_named_or_counted(tmp_path):
    entry, plain = saved_onnx(tmp_path, features=True, head="Softmax")
    for output in ("scores", 1):
        assert onnx_models.head_of({**entry, "output": output}, entry["path"]) == "softmax"
        assert_same(opened(entry, output=output, head="softmax"), logits_of(plain), plain)


def test_the_head_of_one_of_several_outputs_of_a_program_is_left_out(tmp_path):
    network, plain = made_network("tuple", 4)
    network.end = lambda z, features: (features, z.softmax(1))
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(network, (torch.zeros(3, 3, 32, 32),)), path)
    entry = {"source": "program", "path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}
    assert programs.head_of({**entry, "output": 1, "image_shape": [3, 32, 32]}, path) == "softmax"
    assert_same(opened(entry, output=1, head="softmax"), logits_of(plain), plain)


def test_the_only_array_of_an_object_needs_no_name(tmp_path):
    entry, plain = saved(tmp_path, "python", "object")
    assert_same(opened(entry), logits_of(plain), plain)


@pytest.mark.parametrize("kind", ["python", "script", "export"])
def test_several_outputs_are_listed_with_their_shapes(tmp_path, kind):
    entry, _ = saved(tmp_path, kind, "tuple")
    with pytest.raises(SeveralOutputs, match=r"m\.pth?2?: has 2 outputs: 0 \(n, 256\), 1 \(n, 4\)") as refused:
        opened(entry)
    assert [output.classes(refused.value.images) for output in refused.value.outputs] == [256, 4]
    with pytest.raises(InputError, match=r"no output 'other'; it has 0 \(n, 256\), 1 \(n, 4\); .*--output"):
        opened(entry, output="other")


def test_tensors_are_found_in_fields_and_attributes():
    @dataclass
    class Fields:
        scores: torch.Tensor
        rest: object = None

    class Attributes:
        __slots__ = ()

        @property
        def logits(self):
            return torch.ones(2)

    one, other = torch.zeros(1), torch.ones(1)
    assert tensors_in(Fields(one)) == {"scores": one}
    assert list(tensors_in({"a": (one, [other]), 2: SimpleNamespace(b=one)})) == ["a.0", "a.1.0", "2.b"]
    assert tensors_in(None) == tensors_in("text") == {}
    assert list(tensors_in(one)) == ["0"]
    endless = {}
    endless["itself"] = endless
    assert tensors_in(endless) == {}


def test_logits_of_a_whole_set_are_those_of_the_chosen_output(tmp_path):
    entry, plain = saved(tmp_path, "python", "dict")
    classifier = opened(entry, output="scores")
    images = from_arrays(IMAGES, np.arange(5) % 4, sample_id=list("abcde"), preprocessing="none")
    _, _, logits = extract_logits(classifier, images, device="cpu")
    np.testing.assert_allclose(logits, logits_of(plain), rtol=1e-4, atol=1e-4)
