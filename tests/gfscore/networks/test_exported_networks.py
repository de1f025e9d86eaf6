"""Architectures of torchvision as both of PyTorch's exporters write them to ONNX, converted with gradients."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import onnxruntime
import pytest

from gfscore.networks.compatibility import import_torchvision

import_torchvision()

import torch  # noqa: E402
from torchvision import models  # noqa: E402
from torchvision.models.convnext import CNBlockConfig, ConvNeXt  # noqa: E402
from torchvision.models.efficientnet import MBConvConfig  # noqa: E402
from torchvision.models.mobilenetv3 import InvertedResidualConfig  # noqa: E402
from torchvision.models.resnet import BasicBlock  # noqa: E402

from gfscore.networks.checkpoint_files import describe_checkpoint  # noqa: E402
from gfscore.networks.classifier import open_classifier  # noqa: E402

pytestmark = pytest.mark.seconds(40)

SIDE, CLASSES = 32, 7
PIXELS = {"image_shape": [3, SIDE, SIDE], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
IDENTITY = {"dataset": "z", "threat": "none", "model": "M"}


def of_name(name, **arguments):
    return lambda: getattr(models, name)(num_classes=CLASSES, **arguments)


# Few layers of each kind, since an export takes a second for ten of them. What others are made of is in these:
# inverted residuals of MNASNet in MobileNet, squeezes of RegNet in EfficientNet, branches side by side of GoogLeNet
# and DenseNet in SqueezeNet.
NETWORKS = {
    "resnet": lambda: models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=CLASSES),
    "mobilenet_v2": of_name("mobilenet_v2", inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2]]),
    "mobilenet_v3": lambda: models.MobileNetV3(
        [
            InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
            InvertedResidualConfig(16, 5, 48, 24, True, "HS", 2, 1, 1.0),
        ],
        last_channel=32,
        num_classes=CLASSES,
    ),
    "efficientnet": lambda: models.EfficientNet(
        [MBConvConfig(1, 3, 1, 32, 16, 1, 1.0, 1.0), MBConvConfig(6, 5, 2, 16, 24, 2, 1.0, 1.0)],
        0.2,
        num_classes=CLASSES,
    ),
    "shufflenet_v2": lambda: models.ShuffleNetV2([2, 2, 2], [24, 16, 32, 64, 128], num_classes=CLASSES),
    "squeezenet1_1": of_name("squeezenet1_1"),
    "swin_t": lambda: models.SwinTransformer([4, 4], 24, [1, 2], [3, 6], [4, 4], num_classes=CLASSES),
    "convnext": lambda: ConvNeXt([CNBlockConfig(24, 48, 2), CNBlockConfig(48, None, 2)], num_classes=CLASSES),
}


def network_of(name):
    """A network of random weights, whose layers of normalisation have seen images."""
    torch.manual_seed(0)
    network = NETWORKS[name]()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    with torch.no_grad():
        network.train()(torch.rand(16, 3, SIDE, SIDE))
    return network.eval()


def exported(network, path, *, dynamo, number_type=torch.float32):
    """Write a network as its users do; the new exporter writes its weights to a file of their own."""
    images = torch.rand(2, 3, SIDE, SIDE, dtype=number_type)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        axes = {"dynamic_shapes": ({0: torch.export.Dim("n")},)} if dynamo else {"dynamic_axes": {"image": {0: "n"}}}
        torch.onnx.export(network, (images,), path, dynamo=dynamo, input_names=["image"], **axes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_exported_network_is_converted_with_its_logits_and_gradients(tmp_path, name, dynamo):
    network = network_of(name)
    path = tmp_path / "net.onnx"
    exported(network, path, dynamo=dynamo)
    settings = {"source": "onnx", "path": str(path), "url": None, "sha256": None, "output": None, **PIXELS}
    manifest = describe_checkpoint({**settings, "gradients": True}, identity=IDENTITY, record=False)
    assert len(manifest["files"]) == (2 if dynamo else 1)
    classifier = open_classifier(manifest, image_shape=[3, SIDE, SIDE], classes=CLASSES)

    images = torch.rand(3, 3, SIDE, SIDE)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]
    largest = np.abs(expected).max()
    assert largest > 0
    np.testing.assert_allclose(classifier.logits(images.numpy()), expected, rtol=0, atol=1e-4 * largest)

    images.requires_grad_()
    classifier.network(images)[:, 0].sum().backward()
    converted = images.grad.clone()
    images.grad = None
    network(images)[:, 0].sum().backward()
    assert (converted - images.grad).norm() < 0.01 * images.grad.norm()


def wide_head():
    """A network most of whose weights are no convolution's, into which a normalisation may be folded."""
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(3, 4, 3, stride=4), layers.BatchNorm2d(4), layers.ReLU(), layers.Flatten(), layers.Linear(256, CLASSES)
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("build", [wide_head, NETWORKS["resnet"]], ids=["few in float32", "most in float32"])
def test_a_network_whose_exporter_mixed_its_number_types_is_computed_in_float32(tmp_path, build):
    torch.manual_seed(0)
    network = build().eval().to(torch.bfloat16)
    exported(network, tmp_path / "net.onnx", dynamo=True, number_type=torch.bfloat16)
    entry = {
        "source": "onnx",
        "path": str(tmp_path / "net.onnx"),
        "url": None,
        "sha256": None,
        "output": None,
        **PIXELS,
    }
    images = torch.rand(3, 3, SIDE, SIDE)
    expected = network.float()(images).detach().numpy()
    for gradients in (False, True):
        manifest = describe_checkpoint({**entry, "gradients": gradients}, identity=IDENTITY, record=False)
        classifier = open_classifier(manifest, image_shape=[3, SIDE, SIDE], classes=CLASSES)
        assert "float32" in classifier.outputs and (classifier.network is not None) == gradients
        # The exporter folds in its own precision.
        np.testing.assert_allclose(
            classifier.logits(images.numpy()), expected, rtol=0, atol=0.05 * np.abs(expected).max()
        )
    np.testing.assert_allclose(
        classifier.original.run(images.numpy()), classifier.logits(images.numpy()), rtol=1e-4, atol=1e-4
    )
