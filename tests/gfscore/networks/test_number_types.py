"""Networks in float16, bfloat16 and float64: they answer in their own number type, attacks search in float32."""

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from torch import nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.measures.adversarial import KIND as ADVERSARIAL
from gfscore.measures.minimal import KIND as MINIMAL
from gfscore.measures.targeted import KIND as TARGETED
from gfscore.networks import inference
from gfscore.networks.architecture_files import FOLDER_VARIABLE
from gfscore.networks.classifier import from_network, open_classifier
from gfscore.networks.number_types import NetworkWithSearch, number_words, search_alone
from gfscore.networks.torch_models import with_preprocessing

RNG = np.random.default_rng(0)
# Multiples of 1/255, as images are.
IMAGES = (RNG.integers(0, 256, (6, 3, 8, 8)) / 255).astype(np.float32)
LABELS = np.arange(6) % 5
RAW = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
TYPES = {
    "float16": (TensorProto.FLOAT16, np.float16, torch.float16),
    "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16, torch.bfloat16),
    "float64": (TensorProto.DOUBLE, np.float64, torch.float64),
}
# Rounding, relative to the largest logit, from below: that of the type itself.
ROUNDING = {"float16": 0.01, "bfloat16": 0.1, "float64": 1e-6}
DEFINITION = """
import torch
from torch import nn

def made(number_type):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)]
    return nn.Sequential(*layers).to(getattr(torch, number_type))

def float32(): return made("float32")
def float16(): return made("float16")
def bfloat16(): return made("bfloat16")
def float64(): return made("float64")
"""


def image_set():
    return from_arrays(IMAGES, LABELS, sample_id=list("abcdef"), preprocessing="none")


def torch_network(number_type):
    module = {}
    exec(DEFINITION, module)
    return module["made"](number_type).eval()


def answers_of(number_type):
    """Logits of the network as it is."""
    with torch.no_grad():
        images = torch.from_numpy(IMAGES).to(getattr(torch, number_type))
        return torch_network(number_type)(images).float().numpy()


def graph(path, weights, inputs=None, *, pixels=False):
    """The same network as an ONNX graph, with weights of a type, and inputs of that type or another."""
    onnx_type, numpy_type, _ = TYPES.get(weights, (TensorProto.FLOAT, np.float32, None))
    input_type = inputs or onnx_type
    network = torch_network("float32")
    named = {"w": network[0].weight, "b": network[0].bias, "v": network[3].weight.T, "c": network[3].bias}
    stored = [numpy_helper.from_array(value.detach().numpy().astype(numpy_type), name) for name, value in named.items()]
    first = "image"
    nodes = []
    if input_type != onnx_type:
        nodes.append(helper.make_node("Cast", ["image"], ["cast"], to=onnx_type))
        first = "cast"
    if pixels:
        stored.append(numpy_helper.from_array(np.array(1 / 255, numpy_type), "scale"))
        nodes.append(helper.make_node("Mul", [first, "scale"], ["scaled"]))
        first = "scaled"
    nodes += [
        helper.make_node("Conv", [first, "w", "b"], ["conv"]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("Flatten", ["relu"], ["flat"]),
        helper.make_node("Gemm", ["flat", "v", "c"], ["logits"]),
    ]
    given = helper.make_tensor_value_info("image", input_type, ["n", 3, 8, 8])
    made = helper.make_tensor_value_info("logits", onnx_type, ["n", 5])
    content = helper.make_graph(nodes, "g", [given], [made], stored)
    onnx.save(helper.make_model(content, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), path)


def opened_graph(path, **more):
    settings = {**RAW, "output": None, "gradients": True, **more}
    manifest = {"source": "onnx", "path": str(path), "sha256": sha256_of_file(path), "architecture": "onnx"}
    return open_classifier({**manifest, "settings": settings}, image_shape=[3, 8, 8], classes=5)


def gradient_of(network, images=IMAGES):
    points = torch.from_numpy(images).requires_grad_()
    network(points)[:, 0].sum().backward()
    return points.grad.numpy()


@pytest.mark.parametrize("number_type", TYPES)
def test_an_onnx_graph_answers_in_its_own_number_type(tmp_path, number_type):
    path = tmp_path / "net.onnx"
    graph(path, number_type)
    for gradients in (False, True):
        classifier = opened_graph(path, gradients=gradients)
        assert classifier.number_type == number_type
        logits = classifier.logits(IMAGES)
        expected = answers_of("float32")
        largest = np.abs(expected).max()
        np.testing.assert_allclose(logits, expected, rtol=0, atol=ROUNDING[number_type] * largest)
        if number_type != "float64":
            assert np.abs(logits - expected).max() > 1e-6 * largest
    # Attacks see the same answers, and gradients of float32.
    points = torch.from_numpy(IMAGES).requires_grad_()
    np.testing.assert_array_equal(classifier.network(points).detach().numpy(), logits)
    np.testing.assert_allclose(
        gradient_of(classifier.network), gradient_of(torch_network("float32")), atol=ROUNDING[number_type]
    )
    conversion = inference.require_agreement(classifier, image_set(), logits, where=path)["conversion"]
    assert "onnx2fx" in conversion and number_type in conversion
    assert number_type in number_words(classifier) and "float32" in number_words(classifier)


def test_inputs_of_another_type_than_the_weights_are_converted(tmp_path):
    path = tmp_path / "net.onnx"
    expected = answers_of("float32")
    largest = np.abs(expected).max()
    for inputs, number_type in ((TensorProto.FLOAT16, "float16"), (TensorProto.DOUBLE, "float64")):
        graph(path, "float32", inputs)
        classifier = opened_graph(path)
        assert classifier.number_type == number_type
        np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=0, atol=0.01 * largest)
    graph(path, "float16", TensorProto.FLOAT)
    assert opened_graph(path).number_type == "float16"


def test_inputs_of_8_bits_get_images_from_0_to_255(tmp_path):
    path = tmp_path / "net.onnx"
    graph(path, "float32", TensorProto.UINT8, pixels=True)
    classifier = opened_graph(path, value_range=255)
    assert classifier.number_type == "uint8"
    expected = answers_of("float32")
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    # A change of less than half a level is none for the network.
    np.testing.assert_array_equal(
        classifier.logits(IMAGES * 0.9 + 0.05),
        classifier.logits(np.rint((IMAGES * 0.9 + 0.05) * 255).astype(np.float32) / 255),
    )
    assert np.abs(gradient_of(classifier.network)).sum() > 0


def test_a_graph_in_float32_is_what_it_was(tmp_path):
    path = tmp_path / "net.onnx"
    graph(path, "float32")
    classifier = opened_graph(path)
    assert classifier.number_type == "float32" and number_words(classifier) == ""
    assert classifier.original is not None


@pytest.mark.parametrize("number_type", ["float32", *TYPES])
@pytest.mark.parametrize("stored", ["float32", "float16"])
def test_weights_are_those_of_the_network_that_a_file_defines(tmp_path, monkeypatch, number_type, stored):
    (tmp_path / "mine.py").write_text(DEFINITION)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    path = tmp_path / "weights.safetensors"
    weights = torch_network("float32").to(getattr(torch, stored)).state_dict()
    save_file(weights, path)
    settings = {"architecture": f"architectures.mine:{number_type}", "arguments": {}, "weights": "model", **RAW}
    manifest = {"source": "torch", "path": str(path), "sha256": sha256_of_file(path)}
    manifest |= {"architecture": settings["architecture"], "settings": {**settings, "trust_pickle": False}}
    classifier = open_classifier(manifest, image_shape=[3, 8, 8], classes=5)
    assert classifier.number_type == number_type
    network = torch_network(number_type)
    network.load_state_dict(weights)
    with torch.no_grad():
        expected = network(torch.from_numpy(IMAGES).to(getattr(torch, number_type))).float().numpy()
    np.testing.assert_array_equal(classifier.logits(IMAGES), expected)
    assert np.abs(gradient_of(classifier.network)).sum() > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("number_type", TYPES)
@pytest.mark.parametrize("kind", ["script", "export"])
def test_a_program_answers_in_its_own_number_type(tmp_path, kind, number_type):
    path = tmp_path / "net.pt2"
    network = torch_network(number_type)
    images = torch.from_numpy(IMAGES).to(getattr(torch, number_type))
    if kind == "script":
        torch.jit.trace(network, images).save(path)
    else:
        torch.export.save(torch.export.export(network, (images,)), path)
    digest = sha256_of_file(path)
    settings = {"trust_pickle": True, "sha256": digest, **RAW}
    manifest = {"source": "program", "path": str(path), "sha256": digest, "architecture": "program"}
    classifier = open_classifier({**manifest, "settings": settings}, image_shape=[3, 8, 8], classes=5)
    assert classifier.number_type == number_type
    np.testing.assert_array_equal(classifier.logits(IMAGES), answers_of(number_type))
    assert np.abs(gradient_of(classifier.network)).sum() > 0


class Stubborn(nn.Module):
    """Names its number type in its code, so that it cannot run in another."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(192, 5).half()

    def forward(self, images):
        return self.linear(images.half().flatten(1))


def test_a_network_that_cannot_run_in_float32_is_searched_as_it_is():
    torch.manual_seed(0)
    network = Stubborn().eval()
    classifier = with_preprocessing(network, RAW, "net.pt", architecture="stubborn")
    assert classifier.number_type == "float16"
    assert number_words(classifier).count("float16") == 2
    assert np.abs(gradient_of(classifier.network)).sum() > 0


# ---- what counts ----


class Shifted(nn.Module):
    """Two classes by the mean pixel, the border at `border`."""

    def __init__(self, border):
        super().__init__()
        self.border = border

    def forward(self, images):
        mean = images.flatten(1).mean(1)
        return torch.stack([self.border - mean, mean - self.border], dim=1)


def disagreeing():
    """A search that sees the border at 0.5, where the network as it is has it at 0.52."""
    network = NetworkWithSearch(Shifted(0.5), Shifted(0.52), "float16")
    return with_preprocessing(network, {**RAW, "image_shape": [1, 4, 4]}, "net", architecture="pair")


def measured(kind, classifier, **settings):
    images = np.full((1, 1, 4, 4), 0.49, dtype=np.float32)
    entry = kind.parse({"kind": kind.name, **settings})
    seeds = np.arange(1, dtype=np.uint64)
    return kind.load()(classifier, images, np.array([0]), settings=entry, seeds=seeds)


def test_a_point_counts_only_where_the_network_as_it_is_is_wrong():
    classifier = disagreeing()
    ball = {"norm": "linf"}
    # The search crosses its own border at a distance of 0.01, the network at 0.03.
    for eps, survives in ((0.02, 1.0), (0.04, 0.0)):
        assert measured(ADVERSARIAL, classifier, eps=eps, **ball)["value"] == survives
        assert measured(TARGETED, classifier, eps=eps, **ball)["value"] == survives
    distance = measured(MINIMAL, classifier, **ball)["value"]
    np.testing.assert_allclose(distance, 0.03, atol=1e-3)
    with search_alone(classifier.network):
        assert measured(ADVERSARIAL, classifier, eps=0.02, **ball)["value"] == 0.0


def test_a_search_that_overflows_leaves_the_logits_as_they_are():
    class Huge(Shifted):
        def forward(self, images):
            return super().forward(images) * 1e39

    images = torch.full((1, 1, 4, 4), 0.4).requires_grad_()
    logits = NetworkWithSearch(Huge(0.5), Shifted(0.5).double(), "float64")(images)
    torch.testing.assert_close(logits, Shifted(0.5)(images), rtol=0, atol=0)


def test_a_copy_that_answers_otherwise_is_refused():
    classifier = disagreeing()
    images = from_arrays(np.full((1, 1, 4, 4), 0.49, np.float32), np.array([0]), sample_id=["a"], preprocessing="none")
    logits = classifier.logits(np.full((1, 1, 4, 4), 0.49, np.float32))
    with pytest.raises(InputError, match=r"net: .*float16.*float32"):
        inference.require_agreement(classifier, images, logits, where="net")


def test_the_copy_is_compared_in_float32_in_batches_that_memory_holds():
    passes = []

    class Recording(Shifted):
        def forward(self, images):
            if images.dtype == torch.float32:
                passes.append((len(images), torch.backends.cudnn.allow_tf32))
                if len(images) > 2:
                    raise torch.OutOfMemoryError("CUDA out of memory")
            return super().forward(images)

    network = NetworkWithSearch(Recording(0.5), Shifted(0.5).double(), "float64")
    pixels = RNG.random((5, 1, 4, 4), dtype=np.float32)
    images = from_arrays(pixels, np.zeros(5, int), sample_id=np.arange(5), preprocessing="")
    classifier = from_network(network, number_type="float64")
    with torch.inference_mode():
        logits = network(torch.from_numpy(pixels)).numpy()
    inference.require_agreement(classifier, images, logits, where="net")
    assert passes == [(5, False), (3, False), (2, False), (2, False), (1, False)]
